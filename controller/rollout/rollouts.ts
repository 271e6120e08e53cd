import { isDeepStrictEqual } from 'node:util';
import { BoundedMap } from '../../lib/base/index.ts';
import { findCondition, isConditionTrue, keyOf, rfc3339 } from '../../lib/kube/index.ts';
import {
  type Applier,
  addOnName,
  agentConnected,
  type Caches,
  isDetaching,
  keys,
  type ManifestWork,
  manifestWorks,
} from '../hub/index.ts';
import { workParts } from '../render/index.ts';
import { type Foundation, isComparable, isVersion, type Release, versionText } from '../spec/index.ts';
import { haveArrived } from './arrival.ts';
import { crdsOf, deliveredBy, type Update } from './delivered-version.ts';
import { type Phase, phaseOf, planRollout, type RolloutCluster, type RolloutPlan } from './plan.ts';

/** The release to deliver to a cluster now. */
export interface ClusterRelease extends Release, Update {
  /** Whether the cluster keeps its former version because the rollout has not reached it yet. */
  readonly isHeld: boolean;
}

interface Member {
  phase: Phase;
  isHealthy: boolean;
  /** When this process gave the cluster the version (RFC 3339). The cache may not show it yet. */
  startedAt?: string;
  /** Whether that gave the cluster another endpoint of the principal. */
  reconnects?: boolean;
  /** Whether the works do not record yet that the rollout is over. */
  isOpen?: boolean;
  /** Whether this process has decided that the rollout is over. The cache may not show it yet. */
  isSettled?: boolean;
}

/** Of so many clusters it is remembered when they began to report. */
const mostClusters = 20_000;

const enrolled: Update = { updatedAt: undefined, reconnects: false, isOver: false };

interface RolloutState {
  readonly digest: string;
  readonly members: Map<string, Member>;
  plan?: RolloutPlan;
}

const parts: ReadonlySet<string> = new Set(workParts);

/**
 * Rolls a new version out to the clusters of a GitOpsCluster step by step. All decisions derive from the works, which record
 * their version and its time, and from their status. So another controller continues the rollout. Only the phases of the
 * clusters are kept in memory, so that a change of one cluster is cheap.
 */
export class Rollouts {
  readonly #caches: Caches;
  readonly #applier: Pick<Applier, 'current'>;
  readonly #now: () => Date;
  readonly #wakeCluster: (cluster: string) => void;
  readonly #changed: (key: string) => void;
  readonly #states = new Map<string, RolloutState>();
  readonly #reporting = new BoundedMap<string, { readonly transition: string; readonly since: number }>(mostClusters);

  constructor(options: {
    readonly caches: Caches;
    readonly applier: Pick<Applier, 'current'>;
    readonly now: () => Date;
    readonly wakeCluster: (cluster: string) => void;
    /** Called with a GitOpsCluster whose rollout changed. */
    readonly changed: (key: string) => void;
  }) {
    this.#caches = options.caches;
    this.#applier = options.applier;
    this.#now = options.now;
    this.#wakeCluster = options.wakeCluster;
    this.#changed = options.changed;
  }

  /** The release for a cluster: the newest one if the cluster is new or the rollout has reached it, else its current one. */
  async deliveryFor(foundation: Foundation, cluster: string, signal: AbortSignal): Promise<ClusterRelease> {
    const { release } = foundation;
    const works = await this.#worksOf(foundation, cluster, signal);
    const found = works.flatMap((work) => deliveredBy(work) ?? []);
    const started = found.find(({ version }) => isVersion(version, release.version));
    const state = this.#stateOf(foundation);
    if (started) {
      const member = state.members.get(cluster);
      if (member?.phase === 'Succeeded' && isOver(this.#plan(state, foundation))) {
        member.isSettled = true;
      }
      const isSettled = started.isOver || member?.isSettled === true;
      return { ...release, ...started, isOver: isSettled, isHeld: false };
    }
    const [before] = found;
    // An unknown version, or one with other components, cannot be updated in steps.
    if (before === undefined || !isComparable(before.version, release.version)) {
      return { ...release, ...enrolled, isHeld: false };
    }
    const member = this.#update(state, foundation, cluster).member;
    if (member.startedAt === undefined && this.#plan(state, foundation).start.includes(cluster)) {
      member.startedAt = rfc3339(this.#now());
      member.reconnects =
        before.version.endpoint !== undefined && !isDeepStrictEqual(before.version.endpoint, release.version.endpoint);
      member.phase = 'Progressing';
      delete state.plan;
      this.#changed(foundation.key);
    }
    if (member.startedAt !== undefined) {
      const { startedAt: updatedAt, reconnects = false } = member;
      return { ...release, updatedAt, reconnects, isOver: false, isHeld: false };
    }
    const crds = new Map([...release.crds, ...crdsOf(works)]);
    return { ...before, crds, isHeld: true };
  }

  /**
   * Records the state of a cluster, and reconciles the clusters that the rollout reaches next. At the end of the rollout it
   * reconciles all that it has updated, so that their works record the end.
   * @param isWritten whether the cluster's works were just written, so that their status is that of the former works
   * @returns the phase, and when to reconcile again without any change (milliseconds since the epoch)
   */
  report(foundation: Foundation, cluster: string, isWritten: boolean): { phase: Phase; until?: number } {
    const state = this.#stateOf(foundation);
    const { member, until, isChanged } = this.#update(state, foundation, cluster, isWritten);
    if (isChanged) {
      this.#changed(foundation.key);
      const plan = this.#plan(state, foundation);
      for (const name of plan.start) {
        if (name !== cluster) {
          this.#wakeCluster(name);
        }
      }
      if (isOver(plan)) {
        const open = [...state.members].filter(([, { isOpen, phase: one }]) => isOpen && one === 'Succeeded');
        for (const [name] of open) {
          this.#wakeCluster(name);
        }
      }
    }
    return { phase: member.phase, ...(until === undefined ? {} : { until }) };
  }

  /** Forgets a cluster that is detached or skipped. */
  forget(cluster: string): void {
    this.#forget(cluster, () => true);
  }

  #forget(cluster: string, matches: (state: RolloutState) => boolean): void {
    for (const [key, state] of this.#states) {
      if (!matches(state) || !state.members.delete(cluster)) {
        continue;
      }
      delete state.plan;
      this.#changed(key);
      // The next clusters are planned when one is reconciled. That one wakes the others.
      const waiting = [...state.members].find(([, { phase }]) => phase === 'Waiting');
      if (waiting) {
        this.#wakeCluster(waiting[0]);
      }
    }
  }

  /** The plan of a GitOpsCluster's rollout. */
  planOf(foundation: Foundation): RolloutPlan {
    return this.#plan(this.#stateOf(foundation), foundation);
  }

  /** How many clusters of a GitOpsCluster are in which phase, and whether the rollout has stopped; for metrics. */
  progressOf(foundation: Foundation): { clusters: ReadonlyMap<Phase, number>; isStopped: boolean } {
    const state = this.#stateOf(foundation);
    const clusters = new Map<Phase, number>();
    for (const { phase } of state.members.values()) {
      clusters.set(phase, (clusters.get(phase) ?? 0) + 1);
    }
    return { clusters, isStopped: this.#plan(state, foundation).isStopped };
  }

  /** The principal's address in most works of a GitOpsCluster; undefined: there are none. */
  addressOf(key: string): string | undefined {
    const works = this.#caches.works.byIndex('owner', key);
    const addresses = works.flatMap((work) => deliveredBy(work)?.version.endpoint?.address ?? []);
    const counted = [...Map.groupBy(addresses, (address) => address)].map(([address, all]) => ({
      address,
      of: all.length,
    }));
    return counted.sort((a, b) => b.of - a.of || (a.address < b.address ? -1 : 1))[0]?.address;
  }

  /** The addresses that the works of a principal's GitOpsClusters contain: agents dial them. */
  addressesIn(principalNamespace: string): string[] {
    const owners = this.#caches.sharing(principalNamespace).map(keyOf);
    const works = owners.flatMap((owner) => this.#caches.works.byIndex('owner', owner));
    return [...new Set(works.flatMap((work) => deliveredBy(work)?.version.endpoint?.address ?? []))];
  }

  /** The state of the rollout of the desired version. For a new version it is computed from the works. */
  #stateOf(foundation: Foundation): RolloutState {
    const { key, release, rolloutStrategy } = foundation;
    const digest = JSON.stringify([versionText(release.version), rolloutStrategy]);
    const known = this.#states.get(key);
    if (known?.digest === digest) {
      return known;
    }
    const state: RolloutState = { digest, members: new Map() };
    this.#states.set(key, state);
    const works = this.#caches.works.byIndex('owner', key).filter(isPart);
    for (const [cluster, own] of Map.groupBy(works, ({ metadata }) => metadata.namespace ?? '')) {
      const addOn = this.#caches.addOns.get({ namespace: cluster, name: addOnName });
      if (addOn && isDetaching(addOn)) {
        continue;
      }
      state.members.set(cluster, this.#memberOf(foundation, cluster, own).member);
    }
    return state;
  }

  #plan(state: RolloutState, { key, rolloutStrategy, placement }: Foundation): RolloutPlan {
    if (state.plan) {
      return state.plan;
    }
    const groups = this.#groupsOf(`${key.split('/')[0]}/${placement}`);
    const clusters = [...state.members].map(([name, { phase, isHealthy }]): RolloutCluster => {
      return { name, phase, isHealthy, group: groups.get(name) };
    });
    state.plan = planRollout(rolloutStrategy, clusters);
    return state.plan;
  }

  #groupsOf(placement: string): Map<string, { index: number; name: string }> {
    const groups = new Map<string, { index: number; name: string }>();
    for (const { metadata, status } of this.#caches.decisions.byIndex('placement', placement)) {
      const index = Number(metadata.labels?.[keys.decisionGroupIndex] ?? 0);
      const name = metadata.labels?.[keys.decisionGroupName] ?? '';
      for (const { clusterName } of status?.decisions ?? []) {
        groups.set(clusterName, { index, name });
      }
    }
    return groups;
  }

  #update(state: RolloutState, foundation: Foundation, cluster: string, isWritten = false) {
    const before = state.members.get(cluster);
    const works = this.#caches.works.list(cluster).filter((work) => isPart(work) && isOf(work, foundation));
    const { member, until } = this.#memberOf(foundation, cluster, works, before, isWritten);
    const isChanged = before?.phase !== member.phase || before.isHealthy !== member.isHealthy;
    state.members.set(cluster, member);
    if (isChanged) {
      delete state.plan;
    }
    this.#forget(cluster, (other) => other !== state);
    return { member, until, isChanged };
  }

  #memberOf(
    { release, rolloutStrategy, namespace }: Foundation,
    cluster: string,
    works: readonly ManifestWork[],
    { startedAt, reconnects = false, isSettled = false }: Partial<Member> = {},
    isWritten = false,
  ): { member: Member; until?: number } {
    const found = works.map(deliveredBy);
    const current = found.flatMap((one) => (one && isVersion(one.version, release.version) ? one : []));
    const update = current.find((one) => one.updatedAt) ?? { updatedAt: startedAt, reconnects, isOver: false };
    const updatedAt = update.isOver || isSettled ? undefined : update.updatedAt;
    const [lease] = this.#caches.connections.byIndex('agent', `${namespace}/${cluster}`);
    const { conditions } = this.#caches.managedClusters.get({ name: cluster })?.status ?? {};
    const available = findCondition(conditions, 'ManagedClusterConditionAvailable');
    // A connection that is older than the update uses the former endpoint. Other principals keep no Leases.
    const isFormer = update.reconnects && Date.parse(lease?.spec?.acquireTime ?? '') < Date.parse(updatedAt ?? '');
    const isConnected = agentConnected(lease).reason !== 'Disconnected' && !isFormer;
    // The time in which a cluster did not report does not count.
    const times = [Date.parse(updatedAt ?? ''), this.#reportsSince(cluster, available?.lastTransitionTime ?? '')];
    const since = Math.max(...times.filter((time) => !Number.isNaN(time)));
    const isComplete = current.length === works.length && !isWritten;
    const { phase, until } = phaseOf(
      {
        isReachable: available?.status === 'True',
        // A cluster without works is new and gets the version at once.
        isStarted: current.length > 0 || startedAt !== undefined || works.length === 0,
        updatedAt: updatedAt === undefined ? undefined : since,
        isWell: isComplete && isConnected && haveArrived(works),
      },
      rolloutStrategy,
      this.#now().getTime(),
    );
    const addOnConditions = this.#caches.addOns.get({ namespace: cluster, name: addOnName })?.status?.conditions;
    const isHealthy = isConditionTrue(addOnConditions, 'Available');
    const isOpen = !isSettled && current.some((one) => one.updatedAt !== undefined && !one.isOver);
    const started = startedAt === undefined ? {} : { startedAt, reconnects };
    const member: Member = { phase, isHealthy, isOpen, isSettled, ...started };
    return until === undefined ? { member } : { member, until };
  }

  /**
   * Since when a cluster reports, by this hub's clock: the cluster writes when it began to by its own, which may be wrong. Only
   * what it wrote before this process looked is taken for a time, unless that is still to come.
   */
  #reportsSince(cluster: string, transition: string): number {
    const known = this.#reporting.get(cluster);
    if (known?.transition === transition) {
      return known.since;
    }
    const now = this.#now().getTime();
    const written = Date.parse(transition);
    const since = known === undefined && !(written > now) ? written : now;
    this.#reporting.set(cluster, { transition, since });
    return since;
  }

  /** The works as they were written last. The cache may not show that yet. */
  #worksOf(foundation: Foundation, cluster: string, signal: AbortSignal): Promise<ManifestWork[]> {
    const cached = this.#caches.works.list(cluster).filter((work) => isPart(work) && isOf(work, foundation));
    const newest = cached.map((work) => this.#applier.current(manifestWorks, work.metadata, work, signal));
    return Promise.all(newest).then((works) => works.flatMap((work) => work ?? []));
  }
}

function isPart({ metadata }: ManifestWork): boolean {
  return parts.has(metadata.labels?.[keys.part] ?? '');
}

function isOf({ metadata }: ManifestWork, { gitOpsCluster }: Foundation): boolean {
  return metadata.annotations?.[keys.owner] === keyOf(gitOpsCluster);
}

/** Whether a rollout has reached all clusters that report. */
function isOver({ start, waiting, running }: RolloutPlan): boolean {
  return start.length + waiting.length + running.length === 0;
}
