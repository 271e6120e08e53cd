import { amountOf, type DecisionGroupRef, type RolloutStrategy } from '../spec/index.ts';

/**
 * Progress of a cluster towards a version. `Waiting`: it has another version. `Progressing`: it was given this version.
 * `Soaking`: it is healthy, but not for `minSuccessMs` yet. `TimeOut`: it was not healthy before the deadline.
 * `Unreachable`: it does not report, so its state is unknown and nothing is expected of it.
 */
export type Phase = 'Waiting' | 'Progressing' | 'Soaking' | 'Succeeded' | 'TimeOut' | 'Unreachable';

/** A cluster of a rollout. */
export interface RolloutCluster {
  readonly name: string;
  readonly phase: Phase;
  /** Whether the cluster is healthy with its current version. Healthy clusters are updated first. */
  readonly isHealthy: boolean;
  /** The cluster's decision group of the Placement. */
  readonly group?: { readonly index: number; readonly name: string } | undefined;
}

/** The next action of a rollout, and its state. */
export interface RolloutPlan {
  readonly total: number;
  /** Clusters to update now. */
  readonly start: readonly string[];
  readonly running: readonly string[];
  readonly failed: readonly string[];
  /** Clusters to update later. */
  readonly waiting: readonly string[];
  readonly unreachable: readonly string[];
  /** Too many clusters have failed: no further cluster is updated until they are healthy or the limit is raised. */
  readonly isStopped: boolean;
}

interface Stage {
  readonly clusters: readonly RolloutCluster[];
  readonly maxConcurrency: number;
  readonly maxFailures: number;
}

/** The input for the phase of a cluster. Times in milliseconds since the epoch. */
export interface RolloutFacts {
  readonly isReachable: boolean;
  /** Whether at least one work of the cluster has the version. */
  readonly isStarted: boolean;
  /** When the version replaced another one; undefined when the cluster was enrolled with it. */
  readonly updatedAt: number | undefined;
  /** Whether all works of the version are applied and its workloads run. */
  readonly isWell: boolean;
}

/**
 * Computes the phase of a cluster.
 * @returns `until`: when the phase changes without any event, in milliseconds since the epoch
 */
export function phaseOf(
  { isReachable, isStarted, updatedAt, isWell }: RolloutFacts,
  strategy: RolloutStrategy,
  now: number,
): { phase: Phase; until?: number } {
  if (isStarted && updatedAt === undefined) {
    return { phase: 'Succeeded' };
  }
  if (!isReachable) {
    return { phase: 'Unreachable' };
  }
  if (!isStarted || updatedAt === undefined) {
    return { phase: 'Waiting' };
  }
  const until = updatedAt + (isWell ? strategy.minSuccessMs : strategy.progressDeadlineMs);
  if (now < until) {
    return { phase: isWell ? 'Soaking' : 'Progressing', until };
  }
  return { phase: isWell ? 'Succeeded' : 'TimeOut' };
}

/** Selects the clusters to update next, by the rules of OCM's rollout strategies. */
export function planRollout(strategy: RolloutStrategy, clusters: readonly RolloutCluster[]): RolloutPlan {
  const of = (...phases: Phase[]) => clusters.filter(({ phase }) => phases.includes(phase)).map(({ name }) => name);
  const { start, isStopped } = nextOf(stagesOf(strategy, clusters));
  const started = new Set(start);
  return {
    total: clusters.length,
    start,
    running: of('Progressing', 'Soaking'),
    failed: of('TimeOut'),
    waiting: of('Waiting').filter((name) => !started.has(name)),
    unreachable: of('Unreachable'),
    isStopped,
  };
}

function nextOf(stages: readonly Stage[]): Pick<RolloutPlan, 'start' | 'isStopped'> {
  for (const { clusters, maxConcurrency, maxFailures } of stages) {
    const count = (...phases: Phase[]) => clusters.filter(({ phase }) => phases.includes(phase)).length;
    const waiting = clusters.filter(({ phase }) => phase === 'Waiting');
    const running = count('Progressing', 'Soaking');
    if (count('TimeOut') > maxFailures) {
      return { start: [], isStopped: true };
    }
    if (waiting.length + running === 0) {
      continue;
    }
    const start = waiting
      .toSorted((a, b) => Number(b.isHealthy) - Number(a.isHealthy) || (a.name < b.name ? -1 : 1))
      .slice(0, Math.max(0, maxConcurrency - running))
      .map(({ name }) => name);
    return { start, isStopped: false };
  }
  return { start: [], isStopped: false };
}

function stagesOf(strategy: RolloutStrategy, clusters: readonly RolloutCluster[]): Stage[] {
  const { type, mandatoryDecisionGroups, maxConcurrency, maxFailures } = strategy;
  const unlimited = Number.POSITIVE_INFINITY;
  if (type === 'All') {
    return [{ clusters, maxConcurrency: unlimited, maxFailures: unlimited }];
  }
  const isMandatory = (cluster: RolloutCluster) => mandatoryDecisionGroups.some((group) => isOf(group, cluster));
  const mandatory = mandatoryDecisionGroups.map((group): Stage => {
    return { clusters: clusters.filter((one) => isOf(group, one)), maxConcurrency: unlimited, maxFailures: 0 };
  });
  const rest = clusters.filter((cluster) => !isMandatory(cluster));
  if (type === 'Progressive') {
    // OCM: parts of the clusters outside of mandatory groups here, of all clusters there; 0 is no limit.
    const concurrency = amountOf(maxConcurrency, rest.length) || unlimited;
    const failures = amountOf(maxFailures, clusters.length);
    return [...mandatory, { clusters: rest, maxConcurrency: concurrency, maxFailures: failures }];
  }
  const groups = Map.groupBy(rest, ({ group }) => group?.index ?? 0);
  const inOrder = [...groups].sort(([a], [b]) => a - b).map(([, members]) => members);
  return [
    ...mandatory,
    ...inOrder.map((members) => ({
      clusters: members,
      maxConcurrency: unlimited,
      maxFailures: amountOf(maxFailures, members.length),
    })),
  ];
}

/** Whether a reference selects a cluster's group. The name takes precedence over the index, as in OCM. */
function isOf({ groupName, groupIndex }: DecisionGroupRef, { group }: RolloutCluster): boolean {
  if (groupName) {
    return group?.name === groupName;
  }
  return groupIndex !== undefined && group?.index === groupIndex;
}
