import { type Condition, findCondition, rfc3339 } from '../../lib/kube/index.ts';
import type { ClusterConcern, Trouble } from '../ownership/index.ts';
import { certificateIssuedType } from './cluster-health.ts';

/** How long a problem may last before it counts as trouble, in milliseconds. */
export interface TroubleDelays {
  /** For a refused manifest: another one may have to be applied first. */
  readonly refusedMs: number;
  /** For workloads that are not ready, works that are not applied, agents that are not connected. */
  readonly slowMs: number;
}

/** 15 s for refused manifests, 5 min for everything else. */
export const defaultTroubleDelays: TroubleDelays = { refusedMs: 15_000, slowMs: 300_000 };

const steps: Readonly<Record<ClusterConcern, string>> = {
  import: 'ClustersImported',
  works: 'ManifestWorkCreated',
  addOn: 'AddonConfigured',
};

/**
 * Finds the trouble of a cluster: a failed concern of its reconcile, or a condition of its add-on that has not been True
 * for too long. Known trouble keeps its time.
 * @returns `lookAgainMs`: when a condition that is not True becomes trouble, in milliseconds from now
 */
export function findTrouble(state: {
  readonly problems: Readonly<Partial<Record<ClusterConcern, string>>>;
  /** Conditions of the ManagedClusterAddOn. */
  readonly conditions: readonly Condition[];
  readonly known: Trouble | undefined;
  readonly delays: TroubleDelays;
  readonly now: Date;
}): { trouble?: Trouble; lookAgainMs?: number } {
  const { problems, conditions, known, delays, now } = state;
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
  for (const [type, ms] of limits(conditions, delays)) {
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
  // Conditions have times in whole seconds, and timers may fire a little early.
  return lookAgainMs === undefined ? {} : { lookAgainMs: lookAgainMs + 1_000 };
}

/** The conditions in order of precedence, and after how many milliseconds each is trouble when it is not True. */
function limits(conditions: readonly Condition[], { refusedMs, slowMs }: TroubleDelays): [type: string, ms: number][] {
  const isRefused = findCondition(conditions, 'ManifestApplied')?.status === 'False';
  const available = findCondition(conditions, 'Available');
  // OCM has already waited before it reports that a cluster does not respond.
  const isSilent = available?.status === 'Unknown' && /^ManagedCluster/.test(available.reason);
  // An agent without a certificate is not available either: what it lacks is the better reason.
  return [
    ['ManifestApplied', isRefused ? refusedMs : slowMs],
    ...(isSilent ? [['Available', 0] as [string, number]] : []),
    [certificateIssuedType, slowMs],
    ['Available', slowMs],
    ['AgentConnected', slowMs],
  ];
}
