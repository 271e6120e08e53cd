import { randomBytes } from 'node:crypto';
import { after, type Logger, onAbort, wellKnown, withDeadline } from '../../lib/base/index.ts';
import { isConflict, isNotFound, type KubeClient, type Lease, leases, rfc3339Micro } from '../../lib/kube/index.ts';

/** The labels of a replica's Lease. */
export const replicaLabels = {
  [wellKnown.partOfLabel]: 'argocd-agent',
  'app.kubernetes.io/component': 'replica',
} as const;

/** An agent's Lease is called `argocd-agent-<agent>`, and an agent's name has no dot. */
const prefix = 'argocd-agent.replica-';

/** Name of the Lease of a replica of this identity. */
export function replicaLeaseName(identity: string): string {
  return prefix + identity.slice(identity.lastIndexOf('_') + 1);
}

/** Annotations of a replica's Lease. */
export const replicaAnnotations = {
  pod: 'argocd-agent.argoproj-labs.io/replica-pod',
  address: 'argocd-agent.argoproj-labs.io/replica-address',
  fingerprint: 'argocd-agent.argoproj-labs.io/replica-fingerprint',
  version: 'argocd-agent.argoproj-labs.io/replica-version',
} as const;

/** How often a replica renews its Lease, and how long it counts. Milliseconds; each is clearly less than the next. */
export interface ReplicaTiming {
  readonly renewMs: number;
  /** A replica that could not renew for this long writes nothing. */
  readonly deadlineMs: number;
  /** A replica whose renewal nobody has seen for this long is deposed. */
  readonly durationMs: number;
}

/**
 * How long a write may take that no resourceVersion guards, and any write that nobody waits for any more, in milliseconds: it ends
 * before another replica can have taken over.
 */
export function longestWriteMs({ durationMs, deadlineMs }: ReplicaTiming): number {
  return (durationMs - deadlineMs) * 0.75;
}

/** What a replica tells the others of itself. */
export interface ReplicaDescription {
  /** Name of the pod; undefined outside of one. No two live processes have the same. */
  readonly pod: string | undefined;
  /** First part of the identity, for people. */
  readonly host: string;
  /** `host:port` for other replicas, or empty: it serves them nothing. */
  readonly address: string;
  /** SHA-256 of the certificate that it shows to them, upper-case hex. */
  readonly fingerprint: string;
  readonly version: string;
}

/** How a {@link ReplicaLease} works. */
export interface ReplicaLeaseOptions {
  readonly client: Pick<KubeClient, 'get' | 'create' | 'replace' | 'delete'>;
  readonly namespace: string;
  readonly description: ReplicaDescription;
  readonly timing: ReplicaTiming;
  /** The Lease has not been renewed in time: nothing may be written until it is. */
  readonly suspended: () => void;
  /**
   * Agents had better go to another replica: this one was told that it `isDeposed`, or that has lasted for twice the lease duration,
   * so that probably this replica alone is cut off.
   */
  readonly stalled: (isDeposed: boolean) => void;
  /** This replica may write: for the first time, or again after so many milliseconds. */
  readonly resumed: (afterMs: number | undefined) => void;
  /** Another replica has deposed this one: what it held is not its own any more. */
  readonly deposed: () => void;
  /** This replica lives under a new identity. Called after `deposed`, and at the start. */
  readonly started: () => void;
  readonly logger: Logger;
  /** A name that no process ever had. Default: a random one. */
  readonly newName?: (() => string) | undefined;
  /** Milliseconds of a clock that never goes back, and goes on while the process is stopped. */
  readonly now?: () => number;
}

/**
 * That this process is a live replica: a Lease of its own, with a name that no other process ever has. Others may depose it by
 * deleting the Lease when they have seen no renewal for the lease duration; by then this replica has not written for a while.
 * No clocks of two machines are compared.
 */
export class ReplicaLease {
  readonly #options: ReplicaLeaseOptions;
  readonly #now: () => number;
  readonly #waiting = new Set<() => void>();
  #identity: string;
  #lease: Lease | undefined;
  #renewedAt = Number.NEGATIVE_INFINITY;
  #suspendedAt: number | undefined;
  #isStalled = false;
  #wake: (() => void) | undefined;
  #currentSince = 0;

  constructor(options: ReplicaLeaseOptions) {
    const { timing } = options;
    if (timing.durationMs <= timing.deadlineMs || timing.deadlineMs <= timing.renewMs * 1.2) {
      throw new RangeError('replicas need lease duration > renew deadline > 1.2 × renew interval');
    }
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#identity = this.#newIdentity();
  }

  /** This replica's name. It is another one after the replica was deposed. */
  get identity(): string {
    return this.#identity;
  }

  /** Name of the Lease. */
  get name(): string {
    return replicaLeaseName(this.#identity);
  }

  /** Whether this replica may write: nobody can have deposed it yet. */
  get isCurrent(): boolean {
    return this.#lease !== undefined && this.#now() - this.#renewedAt < this.#options.timing.deadlineMs;
  }

  /** Whether it has been unable to renew for so long that agents had better go to another replica. */
  get isStalled(): boolean {
    return this.#isStalled;
  }

  /** Since when it has been so without a gap, on this process's clock. */
  get currentSince(): number {
    return this.#currentSince;
  }

  /** Resolves when this replica may write. @throws the signal's reason */
  async current(signal: AbortSignal): Promise<void> {
    while (!this.isCurrent) {
      signal.throwIfAborted();
      await new Promise<void>((resolve) => {
        const go = () => {
          unlisten();
          this.#waiting.delete(go);
          resolve();
        };
        this.#waiting.add(go);
        const unlisten = onAbort(signal, go);
      });
    }
    signal.throwIfAborted();
  }

  /** Makes the Lease, and renews it until aborted. A replica that was deposed goes on under another identity. */
  async run(signal: AbortSignal): Promise<void> {
    const { timing, logger } = this.#options;
    while (!signal.aborted) {
      const startedAt = this.#now();
      const { name } = this;
      let outcome: 'renewed' | 'deposed' | 'failed' = 'failed';
      try {
        const attemptMs = Math.max(timing.renewMs, timing.deadlineMs / 2);
        outcome = await withDeadline(signal, attemptMs, (deadline) => this.#renew(deadline));
      } catch (error) {
        if (!signal.aborted) {
          logger.warn({ error, lease: name }, 'this replica cannot renew its Lease');
        }
      }
      if (signal.aborted) {
        return;
      }
      this.#conclude(outcome, startedAt);
      if (outcome !== 'deposed') {
        await this.#pause(outcome === 'renewed' ? timing.renewMs : timing.renewMs / 2, signal);
      }
    }
  }

  /** Another replica says that it has deposed the one of this identity. What cannot renew its Lease would not hear of it otherwise. */
  toldDeposed(identity: string): void {
    if (identity === this.#identity && this.#suspendedAt !== undefined && !this.#isStalled) {
      this.#isStalled = true;
      this.#options.stalled(true);
    }
    this.check();
  }

  /** Something happened to the Lease: it is looked at now. */
  check(): void {
    this.#wake?.();
  }

  /** Deletes the Lease: what this replica holds is free. Call it when nothing is written any more. A failure is only logged. */
  async release(signal: AbortSignal): Promise<void> {
    const { client, namespace, logger } = this.#options;
    const lease = this.#lease;
    this.#lease = undefined;
    if (lease === undefined) {
      return;
    }
    try {
      const { name, uid } = lease.metadata;
      await client.delete(leases, { namespace, name }, { uid, signal });
    } catch (error) {
      logger.warn({ error, lease: lease.metadata.name }, "this replica's Lease is left behind, others depose it");
    }
  }

  #conclude(outcome: 'renewed' | 'deposed' | 'failed', startedAt: number): void {
    const { timing, suspended, stalled, resumed, deposed, logger } = this.#options;
    if (outcome === 'deposed') {
      logger.warn({ lease: this.name, identity: this.#identity }, 'this replica was deposed and begins anew');
      this.#lease = undefined;
      this.#renewedAt = Number.NEGATIVE_INFINITY;
      this.#suspendedAt ??= this.#now();
      deposed();
      this.#identity = this.#newIdentity();
      return;
    }
    if (outcome === 'renewed') {
      // As it is now: the request may have been under way before the gap began, in a process that stood still.
      const wasCurrent = this.isCurrent;
      this.#renewedAt = startedAt;
      this.#isStalled = false;
      if (!wasCurrent && this.isCurrent) {
        this.#currentSince = this.#now();
        resumed(this.#suspendedAt === undefined ? undefined : this.#now() - this.#suspendedAt);
        this.#suspendedAt = undefined;
      }
      this.#release();
    } else if (!this.isCurrent && this.#suspendedAt === undefined && this.#lease !== undefined) {
      this.#suspendedAt = this.#now();
      suspended();
    } else if (
      this.#suspendedAt !== undefined &&
      !this.#isStalled &&
      this.#now() - this.#suspendedAt >= 2 * timing.durationMs
    ) {
      this.#isStalled = true;
      stalled(false);
    }
  }

  #release(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const go of waiting) {
      go();
    }
  }

  async #renew(signal: AbortSignal): Promise<'renewed' | 'deposed'> {
    const { client, namespace } = this.#options;
    const last = this.#lease;
    if (last === undefined) {
      await this.#create(signal);
      return 'renewed';
    }
    try {
      this.#lease = await client.replace(leases, this.#renewed(last), { signal });
      return 'renewed';
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) {
        throw error;
      }
    }
    // A renewal whose answer was lost may have been executed.
    const found = await client.get(leases, { namespace, name: last.metadata.name }, signal);
    if (found?.metadata.uid !== last.metadata.uid || found?.spec?.holderIdentity !== this.#identity) {
      return 'deposed';
    }
    this.#lease = await client.replace(leases, this.#renewed(found), { signal });
    return 'renewed';
  }

  async #create(signal: AbortSignal): Promise<void> {
    const { client, namespace, description, timing } = this.#options;
    const now = rfc3339Micro(new Date());
    const { pod, address, fingerprint, version } = description;
    const lease: Lease = {
      metadata: {
        namespace,
        name: this.name,
        labels: replicaLabels,
        annotations: {
          ...(pod === undefined ? {} : { [replicaAnnotations.pod]: pod }),
          ...(address === '' ? {} : { [replicaAnnotations.address]: address }),
          ...(fingerprint === '' ? {} : { [replicaAnnotations.fingerprint]: fingerprint }),
          [replicaAnnotations.version]: version,
        },
      },
      spec: {
        holderIdentity: this.#identity,
        leaseDurationSeconds: Math.max(1, Math.ceil(timing.durationMs / 1_000)),
        acquireTime: now,
        renewTime: now,
      },
    };
    try {
      this.#lease = await client.create(leases, lease, { signal });
    } catch (error) {
      // It may have been made, and others count from then: they may depose it before the next attempt, and nobody comes back
      // under a name that was deposed.
      this.#identity = this.#newIdentity();
      throw error;
    }
    this.#options.started();
  }

  #renewed(last: Lease): Lease {
    return { ...last, spec: { ...last.spec, renewTime: rfc3339Micro(new Date()) } };
  }

  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const cancel = after(ms * (0.9 + Math.random() * 0.2), resolve);
    const unlisten = onAbort(signal, resolve);
    await promise;
    cancel();
    unlisten();
    this.#wake = undefined;
  }

  #newIdentity(): string {
    const { description, newName = () => randomBytes(5).toString('hex') } = this.#options;
    return `${description.host}_${newName()}`;
  }
}
