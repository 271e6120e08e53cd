import { findCondition } from '../../lib/kube/index.ts';
import { type ClusterConcern, failed, type Step, type StepContext, type StepResult, succeeded } from './steps.ts';

/** Up to three names in the original's form, more are counted. */
export function namesText(names: readonly string[]): string {
  if (names.length <= 3) {
    return `[${names.join(' ')}]`;
  }
  return `[${names.slice(0, 3).join(' ')}]... (${names.length} total)`;
}

function fleetStep(
  condition: string,
  concern: ClusterConcern,
  texts: { done: (clusters: number) => string; failed: string },
): Step {
  return {
    condition,
    purpose: texts.failed,
    run: (context) => summarise(context, condition, concern, texts),
  };
}

function summarise(
  { clusters, selection, spec, endpoint, authority, gitOpsCluster }: StepContext,
  condition: string,
  concern: ClusterConcern,
  texts: { done: (clusters: number) => string; failed: string },
): StepResult {
  if (spec.addOn.problem !== undefined && concern !== 'import') {
    return failed(`Failed to ${texts.failed}: ${spec.addOn.problem}`);
  }
  const bad = clusters.failed[concern];
  if (bad.length > 0) {
    const names = bad.map(({ cluster }) => cluster);
    return failed(`Failed to ${texts.failed} for clusters: ${namesText(names)}: ${bad[0]?.why ?? ''}`);
  }
  if (clusters.clusters.length === 0) {
    if (!selection.known) {
      return undefined;
    }
    return succeeded('No managed clusters selected by placement', 'NoClusters');
  }
  if (authority === undefined || (endpoint === undefined && concern === 'works')) {
    return failed(
      `Failed to ${texts.failed}: ${authority === undefined ? 'the CA certificate is not ready' : 'the server is not discovered'}`,
    );
  }
  if (clusters.pending.length > 0) {
    // What was said of the others stays until all have been looked at.
    const isKnown = findCondition(gitOpsCluster.status?.conditions, condition) !== undefined;
    return isKnown ? undefined : { status: 'Unknown', reason: 'InProgress', message: 'Reconciliation in progress' };
  }
  return succeeded(texts.done(clusters.clusters.length));
}

/** The Argo CD cluster Secrets, through which the hub's Argo CD knows the clusters. */
export const importStep = fleetStep('ClustersImported', 'import', {
  done: (clusters) => `Imported ${clusters} clusters to ArgoCD`,
  failed: 'import clusters',
});

/** The ManifestWorks. */
export const worksStep = fleetStep('ManifestWorkCreated', 'works', {
  done: (clusters) => `Created ManifestWorks for ${clusters} clusters`,
  failed: 'create ManifestWorks',
});

const deliveryStep = fleetStep('ArgoCDCRDelivered', 'works', {
  done: (clusters) => `Delivered ArgoCD to ${clusters} clusters`,
  failed: 'deliver ArgoCD',
});

/** Argo CD itself, which is one of the works. */
export const argoCdStep: Step = {
  ...deliveryStep,
  run: (context) => {
    const problem = context.spec.addOn.value?.payload?.problem;
    return problem === undefined ? deliveryStep.run(context) : failed(`Invalid ArgoCDCRManifestWork: ${problem}`);
  },
};

/** The ManagedClusterAddOns. */
export const addOnStep = fleetStep('AddonConfigured', 'addOn', {
  done: (clusters) => `Addon configured for ${clusters} clusters`,
  failed: 'configure addon',
});

/** Clusters that left. */
export const cleanUpStep: Step = {
  condition: 'RemovedClustersCleanedUp',
  purpose: 'clean up removed clusters',
  run: ({ clusters: { leaving, unseenLeaving, cleanedUp }, gitOpsCluster }): StepResult => {
    if (leaving.length > 0) {
      const names = leaving.map(({ cluster }) => cluster);
      const message = `Cleaning up ${names.length} removed cluster(s) ${namesText(names)}: ${leaving[0]?.waitingFor ?? ''}`;
      return { status: 'False', reason: 'InProgress', message };
    }
    if (unseenLeaving.length > 0) {
      return undefined;
    }
    const before = findCondition(gitOpsCluster.status?.conditions, 'RemovedClustersCleanedUp');
    // A controller that was stopped meanwhile may have done the last of it.
    const begun = before?.status === 'False' ? Number(/\d+/.exec(before.message)?.[0] ?? 1) : 0;
    const done = Math.max(cleanedUp, begun);
    return done > 0 ? succeeded(`Cleaned up ${done} removed cluster(s)`) : undefined;
  },
};

/** How the clusters fare: whether what was delivered runs, and the agents are connected. */
export const healthStep: Step = {
  condition: 'ClustersReady',
  purpose: 'look at the clusters',
  run: ({ clusters: { clusters, available, connected, pending }, selection, gitOpsCluster }): StepResult => {
    if (pending.length > 0 && findCondition(gitOpsCluster.status?.conditions, 'ClustersReady')) {
      return undefined;
    }
    const total = clusters.length;
    if (total === 0) {
      return selection.known ? succeeded('No managed clusters selected by placement', 'NoClusters') : undefined;
    }
    const message = `${available.length} of ${total} clusters available, ${connected.length} of ${total} agents connected`;
    const ready = available.length === total && connected.length === total;
    if (ready) {
      return succeeded(message);
    }
    const healthy = new Set(available.filter((cluster) => connected.includes(cluster)));
    const waiting = clusters.filter((cluster) => !healthy.has(cluster));
    return { status: 'False', reason: 'InProgress', message: `${message}; waiting for ${namesText(waiting)}` };
  },
};
