import { findCondition } from '../../lib/kube/index.ts';
import { type FleetReasons, failed, namesText, type StepResult, succeeded } from '../hub/index.ts';
import type { ClusterConcern, ClusterSelection, ClusterSummary } from '../ownership/index.ts';
import type { Fleet, FoundationFindings } from './fleet-deps.ts';
import { conflictText } from './placement-steps.ts';
import type { FallibleConditionType, Step } from './run-step.ts';

/** The input of the conditions about clusters. */
interface SummaryInput {
  readonly fleet: Pick<Fleet, 'selection' | 'spec' | 'gitOpsCluster'>;
  readonly found: FoundationFindings;
  readonly summary: ClusterSummary;
}

interface SummaryStep<Type extends FallibleConditionType = FallibleConditionType> extends Step<Type> {
  readonly run: (input: SummaryInput) => StepResult<FleetReasons[Type]>;
}

/** The conditions that sum up what was made for the clusters, and their reasons. */
type ConcernType = 'ClustersImported' | 'ManifestWorkCreated' | 'ArgoCDCRDelivered' | 'AddonConfigured';
type ConcernReason = FleetReasons[ConcernType];

interface ConcernTexts {
  readonly done: (clusters: number) => string;
  readonly failed: string;
}

function concernStep(condition: ConcernType, concern: ClusterConcern, texts: ConcernTexts): SummaryStep<ConcernType> {
  return { condition, purpose: texts.failed, run: (input) => summarise(input, condition, concern, texts) };
}

function summarise(
  { fleet: { selection, spec, gitOpsCluster }, found: { endpoint, authority }, summary: clusters }: SummaryInput,
  condition: ConcernType,
  concern: ClusterConcern,
  texts: ConcernTexts,
): StepResult<ConcernReason> {
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
    return noClusters(selection);
  }
  if (authority === undefined || (endpoint === undefined && concern === 'works')) {
    return failed(
      `Failed to ${texts.failed}: ${authority === undefined ? 'the CA certificate is not ready' : 'the server is not discovered'}`,
    );
  }
  if (clusters.pending.length > 0) {
    // The condition keeps its status until all clusters have been reconciled.
    const isKnown = findCondition(gitOpsCluster.status?.conditions, condition) !== undefined;
    return isKnown ? undefined : { status: 'Unknown', reason: 'InProgress', message: 'Reconciliation in progress' };
  }
  return succeeded(texts.done(clusters.clusters.length));
}

/** The result of a step without clusters. */
function noClusters(selection: ClusterSelection): StepResult<'NoClusters'> {
  const selected = selection.known ? selection.clusters.size : 0;
  const message =
    selected === 0
      ? 'No managed clusters selected by placement'
      : `This GitOpsCluster enrolls none of the ${selected} selected clusters: see PlacementEvaluated`;
  return succeeded(message, 'NoClusters');
}

/** The Argo CD cluster Secrets, by which the hub's Argo CD knows the clusters. */
const importStep = concernStep('ClustersImported', 'import', {
  done: (clusters) => `Imported ${clusters} clusters to ArgoCD`,
  failed: 'import clusters',
});

/** The ManifestWorks. */
const worksStep = concernStep('ManifestWorkCreated', 'works', {
  done: (clusters) => `Created ManifestWorks for ${clusters} clusters`,
  failed: 'create ManifestWorks',
});

const deliveryStep = concernStep('ArgoCDCRDelivered', 'works', {
  done: (clusters) => `Delivered ArgoCD to ${clusters} clusters`,
  failed: 'deliver ArgoCD',
});

/** Argo CD itself, one of the works. */
const argoCdStep: SummaryStep<ConcernType> = {
  ...deliveryStep,
  run: (input) => {
    const problem = input.fleet.spec.addOn.value?.payload?.problem;
    return problem === undefined ? deliveryStep.run(input) : failed(`Invalid ArgoCDCRManifestWork: ${problem}`);
  },
};

/** The ManagedClusterAddOns. */
const addOnStep = concernStep('AddonConfigured', 'addOn', {
  done: (clusters) => `Addon configured for ${clusters} clusters`,
  failed: 'configure addon',
});

/** Clusters that are detached. */
const cleanUpStep: SummaryStep<'RemovedClustersCleanedUp'> = {
  condition: 'RemovedClustersCleanedUp',
  purpose: 'clean up removed clusters',
  run: ({ summary: { detaching, unseenDetaching, cleanedUp }, fleet: { gitOpsCluster } }) => {
    if (detaching.length > 0) {
      const names = detaching.map(({ cluster }) => cluster);
      const message = `Cleaning up ${names.length} removed cluster(s) ${namesText(names)}: ${detaching[0]?.waitingFor ?? ''}`;
      return { status: 'False', reason: 'InProgress', message };
    }
    if (unseenDetaching.length > 0) {
      return undefined;
    }
    const before = findCondition(gitOpsCluster.status?.conditions, 'RemovedClustersCleanedUp');
    // Another controller may have completed the rest in the meantime.
    const begun = before?.status === 'False' ? Number(/\d+/.exec(before.message)?.[0] ?? 1) : 0;
    const done = Math.max(cleanedUp, begun);
    return done > 0 ? succeeded(`Cleaned up ${done} removed cluster(s)`) : undefined;
  },
};

/** The health of the clusters: whether the delivered workloads run and the agents are connected. */
const healthStep: SummaryStep<'ClustersReady'> = {
  condition: 'ClustersReady',
  purpose: 'look at the clusters',
  run: ({ summary, fleet: { selection, gitOpsCluster } }) => {
    const { clusters, available, connected, pending, failing, lost } = summary;
    if (pending.length > 0 && findCondition(gitOpsCluster.status?.conditions, 'ClustersReady')) {
      return undefined;
    }
    const total = clusters.length;
    if (total === 0) {
      const conflicts = conflictText(lost);
      if (conflicts !== undefined) {
        return failed(conflicts, 'Conflict');
      }
      return selection.known ? noClusters(selection) : undefined;
    }
    const message = `${available.length} of ${total} clusters available, ${connected.length} of ${total} agents connected`;
    const ready = available.length === total && connected.length === total;
    if (ready) {
      return succeeded(message);
    }
    const healthy = new Set(available.filter((cluster) => connected.includes(cluster)));
    const failures = new Set(failing.map(({ cluster }) => cluster));
    const waiting = clusters.filter((cluster) => !healthy.has(cluster) && !failures.has(cluster));
    const parts = [
      message,
      ...(failing.length > 0 ? [`failing: ${namesText([...failures])}: ${failing[0]?.message}`] : []),
      ...(waiting.length > 0 ? [`waiting for ${namesText(waiting)}`] : []),
    ];
    const reason = failing.length > 0 ? 'Failed' : 'InProgress';
    return { status: 'False', reason, message: parts.join('; ') };
  },
};

/** The conditions about the clusters of a GitOpsCluster, in the order of its status. */
export const summarySteps: readonly SummaryStep[] = [
  importStep,
  worksStep,
  argoCdStep,
  addOnStep,
  cleanUpStep,
  healthStep,
];
