import { isDeepStrictEqual } from 'node:util';
import { type Condition, findCondition, isConflict, type KubeLogger, setCondition } from '../lib/kube/index.ts';
import { addOnStep, argoCdStep, cleanUpStep, healthStep, importStep, worksStep } from './cluster-steps.ts';
import { authorityStep, jwtStep, principalStep, resourceProxyStep } from './hub-certificates.ts';
import { fieldManager } from './names.ts';
import { placementStep, tolerationStep } from './placement-steps.ts';
import { type GitOpsCluster, gitOpsClusters } from './resources.ts';
import { serverStep } from './server-step.ts';
import { failed, type Step, type StepContext, type StepResult, succeeded } from './steps.ts';

const rbacStep: Step = {
  condition: 'RBACReady',
  purpose: 'ensure RBAC',
  run: () =>
    succeeded('RBAC resources created successfully (the chart grants everything; nothing is needed per GitOpsCluster)'),
};

const templateStep: Step = {
  condition: 'AddOnTemplateReady',
  purpose: 'ensure AddOnTemplate',
  run: () => succeeded('No AddOnTemplate is needed: the controller renders the ManifestWorks itself'),
};

/** What clusters need: the address and the authority. When these are done, work on the clusters can begin. */
export const foundationSteps: readonly (readonly Step[])[] = [[rbacStep, serverStep, authorityStep]];

/** The rest, in order; the steps of one stage do not depend on each other and run together. */
export const remainingSteps: readonly (readonly Step[])[] = [
  [jwtStep, principalStep, resourceProxyStep, templateStep, tolerationStep],
  [placementStep],
  [importStep, worksStep, argoCdStep, addOnStep, cleanUpStep, healthStep],
];

/** The outcome of one step. */
export interface Outcome {
  readonly condition: string;
  readonly result: StepResult;
  /** What the step threw: reconciled again after a while. */
  readonly error?: unknown;
}

/** Runs stages of steps. A step that fails does not keep the others from saying how things stand. */
export async function runSteps(stages: readonly (readonly Step[])[], context: StepContext): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const stage of stages) {
    outcomes.push(
      ...(await Promise.all(
        stage.map(async ({ condition, purpose, run }): Promise<Outcome> => {
          try {
            return { condition, result: await run(context) };
          } catch (error) {
            context.signal.throwIfAborted();
            // Somebody else wrote at the same time: tried again at once, and nothing to tell.
            if (isConflict(error)) return { condition, result: undefined, error };
            return { condition, result: failed(`Failed to ${purpose}: ${(error as Error).message}`), error };
          }
        }),
      )),
    );
  }
  return outcomes;
}

/** Conditions that say how the fleet fares, not whether the controller did its work: `Ready` does not depend on them. */
const informational = ['ClustersReady', 'RemovedClustersCleanedUp', 'PlacementTolerationConfigured'];

/** The status that a reconcile ends with: all conditions, `Ready` as their summary, and the counts. */
export function nextStatus(
  gitOpsCluster: GitOpsCluster,
  outcomes: readonly Outcome[],
  context: Pick<StepContext, 'clusters' | 'now'>,
): NonNullable<GitOpsCluster['status']> {
  const { status, metadata } = gitOpsCluster;
  const observed = metadata.generation === undefined ? {} : { observedGeneration: metadata.generation };
  let conditions = status?.conditions ?? [];
  for (const { condition: type, result } of outcomes) {
    if (result === undefined) continue;
    const { status: value, reason, message } = result;
    conditions = setCondition(conditions, { type, status: value, reason, message, ...observed }, context.now);
  }
  conditions = setCondition(conditions, { type: 'Ready', ...readiness(conditions), ...observed }, context.now);
  const { clusters, available, connected, pending } = context.clusters;
  // Just after a start nothing is known of most clusters: what was known before is better than that.
  const keepCounts = pending.length > 0 && status?.clusters !== undefined;
  const counts = {
    clusters: clusters.length,
    availableClusters: available.length,
    connectedClusters: connected.length,
  };
  return { ...status, conditions, ...observed, ...(keepCounts ? {} : counts) };
}

function readiness(conditions: readonly Condition[]): Pick<Condition, 'status' | 'reason' | 'message'> {
  const relevant = conditions.filter(({ type }) => type !== 'Ready' && !informational.includes(type));
  const bad = relevant.filter(({ status }) => status === 'False');
  const [first] = bad;
  if (first) {
    const more =
      bad.length > 1
        ? ` (and ${bad.length - 1} more: ${bad
            .slice(1)
            .map(({ type }) => type)
            .join(', ')})`
        : '';
    return { status: 'False', reason: first.reason, message: `${first.type}: ${first.message}${more}` };
  }
  const open = relevant.find(({ status }) => status === 'Unknown');
  if (open) return { status: 'Unknown', reason: open.reason, message: `${open.type}: ${open.message}` };
  return { status: 'True', reason: 'Success', message: findCondition(conditions, 'ClustersReady')?.message ?? 'Ready' };
}

/** Writes the status in one patch, if it changed. A change by someone else in between is a Conflict, and tried again. */
export async function writeStatus(
  context: Pick<StepContext, 'client' | 'signal'> & { logger: KubeLogger },
  gitOpsCluster: GitOpsCluster,
  status: NonNullable<GitOpsCluster['status']>,
): Promise<GitOpsCluster | undefined> {
  if (isDeepStrictEqual(gitOpsCluster.status, status)) return undefined;
  const { resourceVersion } = gitOpsCluster.metadata;
  return context.client.mergePatch(
    gitOpsClusters,
    gitOpsCluster.metadata,
    { metadata: { resourceVersion }, status },
    { subresource: 'status', fieldManager, signal: context.signal },
  );
}
