import { isDeepStrictEqual } from 'node:util';
import type { Logger } from '../../lib/base/index.ts';
import { isInvalid, type KubeClient, rfc3339, setCondition } from '../../lib/kube/index.ts';
import { type FleetStatus, fieldManager, type GitOpsCluster, gitOpsClusters } from '../hub/index.ts';
import type { ClusterSelection, ClusterSummary } from '../ownership/index.ts';
import { ownerText } from './placement-steps.ts';
import { readiness } from './readiness.ts';
import type { StepOutcome } from './run-step.ts';

/** Number of failing clusters in the status. The CRD allows no more. */
const maxListed = 10;
/** Length of a message in that list, in characters. The CRD allows no more. */
const maxMessage = 1024;

/** The state of a GitOpsCluster's clusters at the time of a reconcile. */
interface ClustersNow {
  readonly summary: ClusterSummary;
  readonly selection: ClusterSelection;
  readonly now: Date;
}

/** The status at the end of a reconcile: all conditions, `Ready` as their summary, and the counts of clusters. */
export function nextStatus(
  gitOpsCluster: GitOpsCluster,
  outcomes: readonly StepOutcome[],
  clusters: ClustersNow,
): NonNullable<GitOpsCluster['status']> {
  const { status, metadata } = gitOpsCluster;
  const observed = metadata.generation === undefined ? {} : { observedGeneration: metadata.generation };
  let conditions = status?.conditions ?? [];
  for (const { condition: type, result } of outcomes) {
    if (result === undefined) {
      continue;
    }
    const { status: value, reason, message } = result;
    conditions = setCondition(conditions, { type, status: value, reason, message, ...observed }, clusters.now);
  }
  conditions = setCondition(conditions, { type: 'Ready', ...readiness(conditions), ...observed }, clusters.now);
  return { conditions, ...observed, clusters: fleetStatus(status?.clusters, clusters) };
}

function fleetStatus(
  before: NonNullable<GitOpsCluster['status']>['clusters'],
  { summary, selection, now }: ClustersNow,
): FleetStatus {
  // Earlier versions wrote a number here.
  const known = typeof before === 'object' && before !== null ? before : undefined;
  const conflicts = summary.lost.map((lost) => {
    const { cluster } = lost;
    const step = 'PlacementEvaluated';
    const reported = known?.failingClusters?.find((one) => one.name === cluster && one.step === step);
    const message = `it already belongs to ${ownerText(lost)}, which keeps it`;
    return { cluster, step, reason: 'Conflict', message, since: reported?.since ?? rfc3339(now) };
  });
  const failing = [...summary.failing, ...conflicts].sort(
    (a, b) => compare(a.since, b.since) || compare(a.cluster, b.cluster),
  );
  return {
    selected: selection.known ? selection.clusters.size : (known?.selected ?? summary.clusters.length),
    enrolled: summary.enrolled.length,
    available: summary.available.length,
    connected: summary.connected.length,
    failing: failing.length,
    failingClusters: failing.slice(0, maxListed).map(({ cluster, step, reason, message, since }) => ({
      name: cluster,
      step,
      reason,
      message: message.length > maxMessage ? `${message.slice(0, maxMessage - 1)}…` : message,
      since,
    })),
  };
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

/**
 * Writes the status in one patch, if it changed. A concurrent change is a conflict, and retried.
 *
 * `helm upgrade` does not update CRDs. A CRD older than this program may refuse `clusters`. Then the conditions are written
 * without it.
 * @returns the object as written; undefined when nothing was written
 */
export async function writeStatus(
  {
    client,
    logger,
    signal,
  }: { readonly client: Pick<KubeClient, 'mergePatch'>; readonly logger: Logger; readonly signal: AbortSignal },
  gitOpsCluster: GitOpsCluster,
  status: NonNullable<GitOpsCluster['status']>,
): Promise<GitOpsCluster | undefined> {
  const before: Record<string, unknown> = { ...gitOpsCluster.status };
  if (isDeepStrictEqual(before, status)) {
    return undefined;
  }
  const removed = Object.keys(before).filter((name) => !(name in status));
  const { resourceVersion } = gitOpsCluster.metadata;
  const write = (content: object) =>
    client.mergePatch(
      gitOpsClusters,
      gitOpsCluster.metadata,
      { metadata: { resourceVersion }, status: content },
      { subresource: 'status', fieldManager, signal },
    );
  const content = { ...status, ...Object.fromEntries(removed.map((name) => [name, null])) };
  try {
    return await write(content);
  } catch (error) {
    if (!isInvalid(error) || !(error as Error).message.includes('status.clusters')) {
      throw error;
    }
    logger.warn(
      { error },
      'the CustomResourceDefinition gitopsclusters.apps.open-cluster-management.io is of another version; apply the one that comes with this chart (helm upgrade does not)',
    );
    const { clusters: _, ...rest } = status;
    return isDeepStrictEqual({ ...before, ...rest }, before) ? undefined : write(rest);
  }
}
