import { BoundedSet, every, type Logger, timeoutSignal } from '../../lib/base/index.ts';
import { type Informer, isConflict, isNotFound, type KubeClient, type Lease, leases } from '../../lib/kube/index.ts';
import type { Peer } from './directory.ts';
import {
  type ReplicaLease,
  type ReplicaTiming,
  replicaAnnotations,
  replicaLabels,
  replicaLeaseName,
} from './replica-lease.ts';

/** How {@link LiveReplicas} are known and deposed. */
export interface LiveReplicasOptions {
  readonly client: Pick<KubeClient, 'get' | 'delete'>;
  readonly namespace: string;
  /** The Leases of replicas and agents, in one cache: who holds an agent was seen before. */
  readonly informer: Pick<Informer<Lease>, 'subscribe' | 'get'>;
  readonly self: Pick<ReplicaLease, 'identity' | 'isCurrent' | 'currentSince' | 'check'>;
  /** This process's pod; a replica of the same pod is dead. */
  readonly pod: string | undefined;
  readonly timing: ReplicaTiming;
  /** A replica has come or gone; this one included. */
  readonly changed: (identity: string, isLive: boolean) => void;
  /** This replica has deposed another one. */
  readonly deposed: (peer: Peer) => void;
  readonly logger: Logger;
  readonly now?: () => number;
}

interface Live {
  readonly peer: Peer;
  lease: Lease;
  /** When this process saw the last renewal, on its own clock. */
  seenAt: number;
  isBeingDeposed: boolean;
}

/**
 * The replicas that have a Lease. One that no renewal has been seen of for its lease duration is deposed: its Lease is deleted,
 * unless it was renewed in the meantime. A replica that cannot renew its own Lease deposes nobody, and after it could not, it
 * watches the others for a whole lease duration again: they may have been cut off like itself.
 */
export class LiveReplicas {
  readonly #options: LiveReplicasOptions;
  readonly #now: () => number;
  readonly #byIdentity = new Map<string, Live>();
  /** Identities that will never live again. */
  readonly #gone = new BoundedSet<string>(1_000);

  constructor(options: LiveReplicasOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    const put = (lease: Lease) => this.#put(lease);
    options.informer.subscribe({
      added: put,
      updated: (_old, now) => put(now),
      deleted: (last) => this.#remove(last),
    });
  }

  /** Whether the cache has the replica's Lease, also while others are still being told of it. */
  has(identity: string): boolean {
    const { informer, namespace } = this.#options;
    const lease = informer.get({ namespace, name: replicaLeaseName(identity) });
    return identity !== '' && lease !== undefined && identityOf(lease) === identity;
  }

  /**
   * Whether a replica has died for certain. One that the cache does not have may be so new that the cache is behind: who holds
   * an agent is sometimes read past the cache. @throws when the API server cannot be asked
   */
  async isGone(identity: string): Promise<boolean> {
    const { client, namespace, timing } = this.#options;
    if (identity === '' || this.#gone.has(identity)) {
      return true;
    }
    if (this.has(identity)) {
      return false;
    }
    const name = replicaLeaseName(identity);
    const found = await client.get(leases, { namespace, name }, timeoutSignal(timing.deadlineMs));
    if (found !== undefined && identityOf(found) === identity) {
      return false;
    }
    this.#gone.add(identity);
    return true;
  }

  /** Another live replica; undefined: there is none of that name, or it is this one. */
  peer(identity: string): Peer | undefined {
    return identity === this.#options.self.identity ? undefined : this.#byIdentity.get(identity)?.peer;
  }

  /** The others. */
  peers(): Peer[] {
    return [...this.#byIdentity.keys()].flatMap((identity) => this.peer(identity) ?? []);
  }

  /** How many there are, this one included. */
  get size(): number {
    return this.#byIdentity.size;
  }

  /** Looks for replicas to depose until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const end = every(this.#options.timing.renewMs / 2, () => this.#look(signal));
    await new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
      if (signal.aborted) {
        resolve();
      }
    });
    end();
  }

  #put(lease: Lease): void {
    const identity = identityOf(lease);
    if (identity === undefined) {
      return;
    }
    const known = this.#byIdentity.get(identity);
    if (known !== undefined) {
      known.lease = lease;
      known.seenAt = this.#now();
      return;
    }
    const annotations = lease.metadata.annotations ?? {};
    const peer = {
      identity,
      address: annotations[replicaAnnotations.address] ?? '',
      fingerprint: annotations[replicaAnnotations.fingerprint] ?? '',
    };
    this.#byIdentity.set(identity, { peer, lease, seenAt: this.#now(), isBeingDeposed: false });
    this.#options.changed(identity, true);
  }

  #remove(lease: Lease): void {
    const identity = identityOf(lease);
    if (identity === undefined || !this.#byIdentity.delete(identity)) {
      return;
    }
    this.#gone.add(identity);
    if (identity === this.#options.self.identity) {
      this.#options.self.check();
    }
    this.#options.changed(identity, false);
  }

  #look(signal: AbortSignal): void {
    const { self, pod } = this.#options;
    if (!self.isCurrent) {
      return;
    }
    for (const [identity, live] of this.#byIdentity) {
      if (identity === self.identity || live.isBeingDeposed) {
        continue;
      }
      // Its own duration applies, because it may be configured differently.
      const durationMs = (live.lease.spec?.leaseDurationSeconds ?? this.#options.timing.durationMs / 1_000) * 1_000;
      const isExpired = this.#now() - Math.max(live.seenAt, self.currentSince) >= durationMs;
      const isFormer = pod !== undefined && live.lease.metadata.annotations?.[replicaAnnotations.pod] === pod;
      if (isExpired || isFormer) {
        live.isBeingDeposed = true;
        void this.#depose(identity, live, isFormer, signal);
      }
    }
  }

  async #depose(identity: string, live: Live, isFormer: boolean, signal: AbortSignal): Promise<void> {
    const { client, namespace, timing, logger } = this.#options;
    const { name, uid, resourceVersion } = live.lease.metadata;
    try {
      const timeout = AbortSignal.any([signal, timeoutSignal(timing.deadlineMs)]);
      await client.delete(leases, { namespace, name }, { uid, resourceVersion, signal: timeout });
      logger.warn(
        { replica: identity, lease: name },
        isFormer
          ? 'the former process of this pod was deposed'
          : 'a replica has not renewed its Lease and was deposed: others serve its agents',
      );
      this.#options.deposed(live.peer);
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error) && !signal.aborted) {
        logger.warn({ replica: identity, lease: name, error }, 'a replica that does not renew cannot be deposed yet');
      }
      // It lives, or the API server is away: it is watched for as long again.
      live.seenAt = this.#now();
    } finally {
      live.isBeingDeposed = false;
    }
  }
}

function identityOf({ metadata, spec }: Lease): string | undefined {
  const component = 'app.kubernetes.io/component';
  return metadata.labels?.[component] === replicaLabels[component] ? spec?.holderIdentity || undefined : undefined;
}

/**
 * When to look again, in milliseconds, for a replica of which the API server knows and the cache does not. Its Lease will wake who
 * waits for it; only one that comes and goes before the cache has seen it does not.
 */
export function lookAgainMs(): number {
  return 500 + 500 * Math.random();
}
