import { isConditionTrue, keyOf, rfc3339 } from '../../lib/kube/index.ts';
import { connection, isDetaching } from '../cluster/cluster-health.ts';
import type { Applier } from '../hub/applier.ts';
import type { Caches } from '../hub/caches.ts';
import { addOnName, keys } from '../hub/names.ts';
import { type ManifestWork, manifestWorks } from '../hub/resources.ts';
import { workParts } from '../render/pack.ts';
import type { Foundation } from '../spec/foundation.ts';
import { crdsOf, deliveredBy, isComparable, type Release, type Version, versionText } from '../spec/release.ts';
import { haveArrived } from './arrival.ts';
import { type Phase, phaseOf, planRollout, type RolloutCluster, type RolloutPlan } from './plan.ts';

/** What a cluster gets now. */
export interface Turn extends Release {
  /** When the version took the place of another one (RFC 3339); undefined when the cluster was enrolled with it. */
  readonly updatedAt: string | undefined;
  /** Its turn to get the newest version has not come. */
  readonly isHeld: boolean;
}

interface Member {
  phase: Phase;
  isHealthy: boolean;
  /** It was given the version by this process, whatever the cache shows. */
  startedAt?: string;
}

interface Fleet {
  readonly digest: string;
  readonly members: Map<string, Member>;
  plan?: RolloutPlan;
}

const parts: ReadonlySet<string> = new Set(workParts);

/**
 * Lets clusters follow a new version one after the other. Everything that is decided here is decided from the works, which
 * say what they were made with and since when, and from what came back of them: another controller goes on where this
 * one stopped. What is held in memory are the phases of the clusters, so that the news of one cost nothing for the others.
 */
export class Rollouts {
  readonly #caches: Caches;
  readonly #applier: Pick<Applier, 'current'>;
  readonly #now: () => Date;
  readonly #wakeCluster: (cluster: string) => void;
  readonly #changed: (key: string) => void;
  readonly #fleets = new Map<string, Fleet>();

  constructor(options: {
    readonly caches: Caches;
    readonly applier: Pick<Applier, 'current'>;
    readonly now: () => Date;
    readonly wakeCluster: (cluster: string) => void;
    /** Hears of GitOpsClusters whose rollout went on. */
    readonly changed: (key: string) => void;
  }) {
    this.#caches = options.caches;
    this.#applier = options.applier;
    this.#now = options.now;
    this.#wakeCluster = options.wakeCluster;
    this.#changed = options.changed;
  }

  /** Says what a cluster gets: the newest version if it is new or its turn has come, else what it has. */
  async turnOf(foundation: Foundation, cluster: string, signal: AbortSignal): Promise<Turn> {
    const { release } = foundation;
    const works = await this.#worksOf(foundation, cluster, signal);
    const found = works.flatMap((work) => deliveredBy(work) ?? []);
    const started = found.find(({ version }) => isSame(version, release.version));
    if (started) {
      return { ...release, updatedAt: started.updatedAt, isHeld: false };
    }
    const [before] = found;
    // Nobody knows what it has, or it gets something else altogether: that is no new version of the same.
    if (before === undefined || !isComparable(before.version, release.version)) {
      return { ...release, updatedAt: undefined, isHeld: false };
    }
    const fleet = this.#fleetOf(foundation);
    const member = this.#update(fleet, foundation, cluster).member;
    if (member.startedAt === undefined && this.#plan(fleet, foundation).start.includes(cluster)) {
      member.startedAt = rfc3339(this.#now());
      member.phase = 'Progressing';
      delete fleet.plan;
      this.#changed(foundation.key);
    }
    if (member.startedAt !== undefined) {
      return { ...release, updatedAt: member.startedAt, isHeld: false };
    }
    const crds = new Map([...release.crds, ...crdsOf(works)]);
    return { version: before.version, crds, updatedAt: before.updatedAt, isHeld: true };
  }

  /**
   * Takes note of how a cluster fares now, and wakes those whose turn that makes it.
   * @param isWritten whether its works were just changed: what came back is of those before
   * @returns the phase, and when to look again although nothing changed (milliseconds since the epoch)
   */
  report(foundation: Foundation, cluster: string, isWritten: boolean): { phase: Phase; until?: number } {
    const fleet = this.#fleetOf(foundation);
    const { member, until, isChanged } = this.#update(fleet, foundation, cluster, isWritten);
    if (isChanged) {
      this.#changed(foundation.key);
      for (const name of this.#plan(fleet, foundation).start) {
        if (name !== cluster) {
          this.#wakeCluster(name);
        }
      }
    }
    return { phase: member.phase, ...(until === undefined ? {} : { until }) };
  }

  /** Forgets a cluster that leaves, or is left alone. */
  forget(cluster: string): void {
    this.#forget(cluster, () => true);
  }

  #forget(cluster: string, isMeant: (fleet: Fleet) => boolean): void {
    for (const [key, fleet] of this.#fleets) {
      if (!isMeant(fleet) || !fleet.members.delete(cluster)) {
        continue;
      }
      delete fleet.plan;
      this.#changed(key);
      // Who is next is found out by whoever asks: one is enough, it wakes the others.
      const waiting = [...fleet.members].find(([, { phase }]) => phase === 'Waiting');
      if (waiting) {
        this.#wakeCluster(waiting[0]);
      }
    }
  }

  /** How the rollout of a GitOpsCluster stands. */
  planOf(foundation: Foundation): RolloutPlan {
    return this.#plan(this.#fleetOf(foundation), foundation);
  }

  /** The state for the version that is wanted now; for another version it is worked out anew from the works. */
  #fleetOf(foundation: Foundation): Fleet {
    const { key, release, rolloutStrategy } = foundation;
    const digest = JSON.stringify([versionText(release.version), rolloutStrategy]);
    const known = this.#fleets.get(key);
    if (known?.digest === digest) {
      return known;
    }
    const fleet: Fleet = { digest, members: new Map() };
    this.#fleets.set(key, fleet);
    const works = this.#caches.works.byIndex('owner', key).filter(isPart);
    for (const [cluster, own] of Map.groupBy(works, ({ metadata }) => metadata.namespace ?? '')) {
      const addOn = this.#caches.addOns.get({ namespace: cluster, name: addOnName });
      if (addOn && isDetaching(addOn)) {
        continue;
      }
      fleet.members.set(cluster, this.#memberOf(foundation, cluster, own).member);
    }
    return fleet;
  }

  #plan(fleet: Fleet, { key, rolloutStrategy, placement }: Foundation): RolloutPlan {
    if (fleet.plan) {
      return fleet.plan;
    }
    const groups = this.#groupsOf(`${key.split('/')[0]}/${placement}`);
    const clusters = [...fleet.members].map(([name, { phase, isHealthy }]): RolloutCluster => {
      return { name, phase, isHealthy, group: groups.get(name) };
    });
    fleet.plan = planRollout(rolloutStrategy, clusters);
    return fleet.plan;
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

  #update(fleet: Fleet, foundation: Foundation, cluster: string, isWritten = false) {
    const before = fleet.members.get(cluster);
    const works = this.#caches.works.list(cluster).filter((work) => isPart(work) && isOf(work, foundation));
    const { member, until } = this.#memberOf(foundation, cluster, works, before?.startedAt, isWritten);
    const isChanged = before?.phase !== member.phase || before.isHealthy !== member.isHealthy;
    fleet.members.set(cluster, member);
    if (isChanged) {
      delete fleet.plan;
    }
    this.#forget(cluster, (other) => other !== fleet);
    return { member, until, isChanged };
  }

  #memberOf(
    { release, rolloutStrategy, namespace }: Foundation,
    cluster: string,
    works: readonly ManifestWork[],
    startedAt?: string,
    isWritten = false,
  ): { member: Member; until?: number } {
    const found = works.map(deliveredBy);
    const current = found.filter((one) => one && isSame(one.version, release.version));
    const updatedAt = current.find((one) => one?.updatedAt)?.updatedAt ?? startedAt;
    const [lease] = this.#caches.connections.byIndex('agent', `${namespace}/${cluster}`);
    const { conditions } = this.#caches.managedClusters.get({ name: cluster })?.status ?? {};
    const isConnected = connection(lease).reason !== 'Disconnected';
    const isComplete = current.length === works.length && !isWritten;
    const { phase, until } = phaseOf(
      {
        isReachable: isConditionTrue(conditions, 'ManagedClusterConditionAvailable'),
        // A cluster without works is new: it gets the version as it is.
        isStarted: current.length > 0 || startedAt !== undefined || works.length === 0,
        updatedAt: updatedAt === undefined ? undefined : Date.parse(updatedAt),
        isWell: isComplete && isConnected && haveArrived(works),
      },
      rolloutStrategy,
      this.#now().getTime(),
    );
    const addOnConditions = this.#caches.addOns.get({ namespace: cluster, name: addOnName })?.status?.conditions;
    const isHealthy = isConditionTrue(addOnConditions, 'Available');
    const member: Member = { phase, isHealthy, ...(startedAt === undefined ? {} : { startedAt }) };
    return until === undefined ? { member } : { member, until };
  }

  /** The works as they were written last, even before the cache has seen that. */
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

function isSame(a: Version, b: Version): boolean {
  return versionText(a) === versionText(b);
}
