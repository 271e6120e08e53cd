import { type Condition, findCondition, rfc3339 } from '../../lib/kube/index.ts';
import type { ClusterConcern, Trouble } from '../fleet/steps.ts';

/** How long what is not as it should be counts as still under way, in milliseconds. */
export interface Patience {
  /** A manifest that the cluster refuses: another one may have to come first. */
  readonly refusedMs: number;
  /** Workloads that are not ready, works that are not applied, agents that are not connected. */
  readonly slowMs: number;
}

/** What an operator would wait before looking. */
export const defaultPatience: Patience = { refusedMs: 15_000, slowMs: 300_000 };

const steps: Readonly<Record<ClusterConcern, string>> = {
  import: 'ClustersImported',
  works: 'ManifestWorkCreated',
  addOn: 'AddonConfigured',
};

/**
 * Finds what is wrong with a cluster: what the controller could not do for it, or what its add-on's conditions have been
 * saying for too long.
 * @param known what was wrong before: the same trouble keeps its time
 * @returns `lookAgainMs` when something that is under way now will be trouble then
 */
export function troubleOf(state: {
  readonly problems: Readonly<Partial<Record<ClusterConcern, string>>>;
  /** Of the ManagedClusterAddOn. */
  readonly conditions: readonly Condition[];
  readonly known: Trouble | undefined;
  readonly patience: Patience;
  readonly now: Date;
}): { trouble?: Trouble; lookAgainMs?: number } {
  const { problems, conditions, known, patience, now } = state;
  const since = (step: string, time: string) => (known?.step === step ? known.since : time);
  for (const concern of ['import', 'works', 'addOn'] as const) {
    const message = problems[concern];
    if (message === undefined) {
      continue;
    }
    const step = steps[concern];
    return { trouble: { step, reason: 'Failed', message, since: since(step, rfc3339(now)) } };
  }
  let lookAgainMs: number | undefined;
  for (const [type, ms] of limits(conditions, patience)) {
    const condition = findCondition(conditions, type);
    if (condition === undefined || condition.status === 'True') {
      continue;
    }
    const { reason, message, lastTransitionTime } = condition;
    const left = Date.parse(lastTransitionTime) + ms - now.getTime();
    if (left <= 0) {
      return { trouble: { step: type, reason, message, since: since(type, lastTransitionTime) } };
    }
    lookAgainMs = Math.min(lookAgainMs ?? Number.POSITIVE_INFINITY, left);
  }
  // Times in conditions are whole seconds, and timers may fire a little early.
  return lookAgainMs === undefined ? {} : { lookAgainMs: lookAgainMs + 1_000 };
}

/** When a condition that is not True is trouble; of several the first is told. */
function limits(conditions: readonly Condition[], { refusedMs, slowMs }: Patience): [type: string, ms: number][] {
  const isRefused = findCondition(conditions, 'ManifestApplied')?.status === 'False';
  const available = findCondition(conditions, 'Available');
  // OCM has waited long enough before it says that a cluster does not report.
  const isSilent = available?.status === 'Unknown' && /^ManagedCluster/.test(available.reason);
  return [
    ['ManifestApplied', isRefused ? refusedMs : slowMs],
    ['Available', isSilent ? 0 : slowMs],
    ['AgentConnected', slowMs],
  ];
}
