import { amountOf, type DecisionGroupRef, type RolloutStrategy } from '../spec/index.ts';

/**
 * How far a cluster is on its way to a version. `Waiting`: it has another one. `Progressing`: it was given this one.
 * `Soaking`: it is well, but not for long enough. `TimeOut`: it was not well in time. `Unreachable`: it does not report,
 * so nothing can be said of it, and nothing is expected.
 */
export type Phase = 'Waiting' | 'Progressing' | 'Soaking' | 'Succeeded' | 'TimeOut' | 'Unreachable';

/** A cluster of a rollout. */
export interface RolloutCluster {
  readonly name: string;
  readonly phase: Phase;
  /** Whether it is well with what it has: those that are come first, so that a bad version is not blamed for old troubles. */
  readonly isHealthy: boolean;
  /** The decision group of the Placement that it is in. */
  readonly group?: { readonly index: number; readonly name: string } | undefined;
}

/** What a rollout does next, and how it stands. */
export interface RolloutPlan {
  readonly total: number;
  /** Clusters to be given the version now. */
  readonly start: readonly string[];
  readonly running: readonly string[];
  readonly failed: readonly string[];
  /** Clusters whose turn comes later. */
  readonly waiting: readonly string[];
  readonly unreachable: readonly string[];
  /** Too many have failed: nothing more is started until they are well, or the limit is raised. */
  readonly isStopped: boolean;
}

interface Stage {
  readonly clusters: readonly RolloutCluster[];
  readonly maxConcurrency: number;
  readonly maxFailures: number;
}

/** What is known of a cluster when its phase is to be found. Times in milliseconds since the epoch. */
export interface RolloutFacts {
  readonly isReachable: boolean;
  /** It was given the version, at least in part. */
  readonly isStarted: boolean;
  /** When it was given the version in place of another; undefined when it was enrolled with it. */
  readonly updatedAt: number | undefined;
  /** Everything of the version has arrived and runs. */
  readonly isWell: boolean;
}

/**
 * Finds the phase of a cluster.
 * @returns `until` the time when the phase changes by itself
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

/** Decides which clusters get the version next, by the rules of OCM's rollout strategies. */
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
    const total = clusters.length;
    const concurrency = Math.max(1, amountOf(maxConcurrency, total));
    return [...mandatory, { clusters: rest, maxConcurrency: concurrency, maxFailures: amountOf(maxFailures, total) }];
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

/** The name counts before the index, as in OCM. */
function isOf({ groupName, groupIndex }: DecisionGroupRef, { group }: RolloutCluster): boolean {
  if (groupName) {
    return group?.name === groupName;
  }
  return groupIndex !== undefined && group?.index === groupIndex;
}
