import { type Condition, isConditionTrue } from '../../lib/kube/index.ts';
import type { AddOnCondition, ManagedCluster, ManifestWork } from '../hub/index.ts';

interface Workload {
  readonly name: string;
  readonly ready: number | undefined;
  readonly replicas: number | undefined;
}

/** The condition Available by OCM's conventions, computed from the status that the work agent reports. */
export function availability(
  works: readonly ManifestWork[],
  cluster: ManagedCluster | undefined,
  before: Condition | undefined,
): AddOnCondition {
  const type = 'Available';
  if (cluster && !isConditionTrue(cluster.status?.conditions, 'ManagedClusterConditionAvailable')) {
    // OCM itself sets Unknown in this case. Its reason is kept, so that the two do not overwrite each other.
    if (before?.status === 'Unknown') {
      return { type, status: 'Unknown', reason: before.reason, message: before.message };
    }
    const message = `ManagedCluster ${cluster.metadata.name} does not report`;
    return { type, status: 'Unknown', reason: 'ManagedClusterNotAvailable', message };
  }
  if (works.length === 0) {
    return { type, status: 'Unknown', reason: 'WorkNotFound', message: 'no ManifestWork yet' };
  }
  const refused = works.map(refusal).find((text) => text !== undefined);
  if (refused !== undefined) {
    return { type, status: 'False', reason: 'WorkNotApplied', message: refused };
  }
  const absent = works.map(absence).find((text) => text !== undefined);
  if (absent !== undefined) {
    return { type, status: 'False', reason: 'ResourceNotAvailable', message: absent };
  }
  const pending = works.find((work) => !isConditionTrue(work.status?.conditions, 'Applied'));
  if (pending) {
    const message = `ManifestWork ${pending.metadata.name} is not applied yet`;
    return { type, status: 'Unknown', reason: 'WorkNotApplied', message };
  }
  const workloads = works.flatMap(workloadsOf);
  const silent = workloads.filter(({ ready, replicas }) => ready === undefined && replicas !== 0);
  if (silent.length > 0 && silent.length === workloads.length) {
    return { type, status: 'Unknown', reason: 'NoProbeResult', message: 'no status of a workload has come back yet' };
  }
  const down = workloads.filter(({ ready, replicas }) => replicas !== 0 && (ready ?? 0) < 1).map(({ name }) => name);
  if (down.length > 0) {
    return { type, status: 'False', reason: 'ProbeUnavailable', message: `not ready: ${down.join(', ')}` };
  }
  return { type, status: 'True', reason: 'ProbeAvailable', message: 'argocd-agent-addon add-on is available.' };
}

/** The condition Progressing: whether all works are applied. */
export function progress(works: readonly ManifestWork[], problem: string | undefined): AddOnCondition {
  const type = 'Progressing';
  if (problem !== undefined) {
    return { type, status: 'False', reason: 'Failed', message: problem };
  }
  if (works.length === 0) {
    return { type, status: 'True', reason: 'Progressing', message: 'progressing... no addon works' };
  }
  const behind = works.find(
    ({ metadata, status }) =>
      !['Applied', 'Available'].every((condition) =>
        status?.conditions?.some(
          (found) =>
            found.type === condition &&
            found.status === 'True' &&
            (found.observedGeneration ?? 0) >= (metadata.generation ?? 0),
        ),
      ),
  );
  if (behind) {
    const text = refusal(behind) ?? `${behind.metadata.name} is not ready`;
    return { type, status: 'True', reason: 'Progressing', message: `progressing... work is not ready: ${text}` };
  }
  return { type, status: 'False', reason: 'Completed', message: 'completed with no errors.' };
}

/**
 * The condition ManifestApplied: whether the works were written, and applied by the cluster. The reason distinguishes a
 * first application from an update.
 */
export function manifestApplied(
  works: readonly ManifestWork[],
  problem: string | undefined,
  before: Condition | undefined,
): AddOnCondition {
  const type = 'ManifestApplied';
  if (problem !== undefined) {
    return { type, status: 'False', reason: 'ManifestWorkApplyFailed', message: problem };
  }
  const refused = works.map(refusal).find((text) => text !== undefined);
  if (refused !== undefined) {
    return { type, status: 'False', reason: 'AddonManifestAppliedFailed', message: refused };
  }
  const isApplied = works.length > 0 && works.every((work) => isConditionTrue(work.status?.conditions, 'Applied'));
  if (!isApplied) {
    const reason = before?.status === 'True' || before?.reason === 'Updating' ? 'Updating' : 'Progressing';
    return { type, status: 'Unknown', reason, message: 'the works are being applied' };
  }
  return {
    type,
    status: 'True',
    reason: 'AddonManifestApplied',
    message: 'manifests of addon are applied successfully',
  };
}

/** The reason why the cluster refused a work or one of its manifests; undefined when it did not. */
function refusal(work: ManifestWork): string | undefined {
  const applied = work.status?.conditions?.find(({ type }) => type === 'Applied');
  if (applied?.status !== 'False') {
    return undefined;
  }
  const manifests = work.status?.resourceStatus?.manifests ?? [];
  for (const { resourceMeta, conditions } of manifests) {
    const found = conditions.find(({ type, status }) => type === 'Applied' && status === 'False');
    if (found) {
      const { kind, namespace, name } = resourceMeta;
      const what = `${kind} ${namespace ? `${namespace}/` : ''}${name}`;
      return `ManifestWork ${work.metadata.name}: ${what}: ${found.message}${whatToGrant(found.message)}`;
    }
  }
  return `ManifestWork ${work.metadata.name}: ${applied.message}`;
}

/** An object that the cluster lacks although its work is applied, as a message; undefined when there is none. */
function absence(work: ManifestWork): string | undefined {
  const found = work.status?.resourceStatus?.manifests?.find(({ conditions }) =>
    conditions.some(({ type, status }) => type === 'Available' && status === 'False'),
  );
  if (found === undefined) {
    return undefined;
  }
  const { kind, namespace, name } = found.resourceMeta;
  return `ManifestWork ${work.metadata.name}: the cluster does not have ${kind} ${namespace ? `${namespace}/` : ''}${name}`;
}

/** Kinds whose status shows whether the delivered workloads run. argocd-operator writes the status of an ArgoCD. */
const workloadKinds = new Set(['Deployment', 'StatefulSet', 'ArgoCD']);

/**
 * Instructions for an administrator of the cluster when the work agent lacks a right. OCM aggregates ClusterRoles with
 * this label into the rights of its work agent.
 */
function whatToGrant(message: string): string {
  const found = /cannot (\S+) resource "([^"]+)" in API group "([^"]*)"/.exec(message);
  if (found === null) {
    return '';
  }
  const [, verb = '', resource = '', group = ''] = found;
  const kind = group === '' ? resource : `${resource}.${group}`;
  return `; grant it on the cluster: a ClusterRole that allows to ${verb} ${kind}, labelled open-cluster-management.io/aggregate-to-work: "true"`;
}

function workloadsOf(work: ManifestWork): Workload[] {
  const watched = new Set(
    (work.spec.manifestConfigs ?? [])
      .filter(({ feedbackRules }) => feedbackRules !== undefined)
      .map(({ resourceIdentifier: { name } }) => name),
  );
  const reported = work.status?.resourceStatus?.manifests ?? [];
  return work.spec.workload.manifests
    .filter(({ kind, metadata }) => workloadKinds.has(kind ?? '') && watched.has(metadata.name))
    .map(({ kind, metadata }) => {
      const values = reported.find(({ resourceMeta: m }) => m.kind === kind && m.name === metadata.name)?.statusFeedback
        ?.values;
      const number = (name: string) => values?.find((value) => value.name === name)?.fieldValue.integer;
      if (kind === 'ArgoCD') {
        const phase = values?.find((value) => value.name === 'Phase')?.fieldValue.string;
        const ready = phase === undefined ? undefined : Number(phase === 'Available');
        return { name: metadata.name, ready, replicas: undefined };
      }
      return { name: metadata.name, ready: number('ReadyReplicas'), replicas: number('Replicas') };
    });
}
