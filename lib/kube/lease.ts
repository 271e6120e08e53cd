import { type Logger, onAbort, sleep, withDeadline } from '../base/index.ts';
import type { KubeClient } from './client.ts';
import { rfc3339Micro } from './conditions.ts';
import { isAlreadyExists, isConflict, isNotFound } from './errors.ts';
import { type Lease, leases } from './resources.ts';

/** Options of a leader election. The defaults are those of client-go. */
export interface LeaseOptions {
  client: Pick<KubeClient, 'get' | 'create' | 'replace'>;
  namespace: string;
  name: string;
  /** Must be unique among the candidates, for instance the pod's name with a random suffix. Those that share one lead together. */
  identity: string;
  /** How long the others wait after the last renewal that they saw. Default 15 s. */
  leaseDurationMs?: number | undefined;
  /** A leader that could not renew for this long gives up; less than the lease duration. Default 10 s. */
  renewDeadlineMs?: number | undefined;
  /** Time between two tries to acquire or renew. Default 2 s. */
  retryPeriodMs?: number | undefined;
  signal: AbortSignal;
  /**
   * The leader's work, until its signal is aborted: because leadership is lost (the reason is a LeadershipLostError) or
   * because `signal` is. When it returns, the lease is released.
   *
   * `fence` throws LeadershipLostError once the lease has not been renewed for the renew deadline, by a clock that goes
   * on while the process is stopped: called before each write, it keeps a leader that was frozen for a while from writing
   * after another one has taken over. It cannot stop a write that was already sent.
   */
  lead: (signal: AbortSignal, fence: () => void) => Promise<void>;
  /** Set on the Lease when it is taken. They stay when it is released. */
  annotations?: Readonly<Record<string, string>> | undefined;
  /** Whether this candidate wants a Lease that is free or has expired, as it was found. Asked at each try. Default: always. */
  mayTake?: ((lease: Lease) => boolean) | undefined;
  /**
   * Whether the lease is freed at the end; otherwise it expires. For candidates that lead together under one identity. Default:
   * always.
   */
  mayRelease?: (() => boolean) | undefined;
  /** Called with the leader's identity whenever it changes; this candidate included. */
  onLeader?: ((identity: string) => void) | undefined;
  logger?: Logger | undefined;
}

/** Shortest time limit of releasing the lease. Callers that wait for the end must allow more. */
const releaseMs = 5_000;

/** The lease could not be renewed in time, or someone else took it: another instance may be leading now. */
export class LeadershipLostError extends Error {
  override readonly name = 'LeadershipLostError';
  readonly code = 'LEADERSHIP_LOST';
}

/**
 * Leader election: of all candidates for a Lease, one runs `lead` at a time. Resolves when `signal` is aborted or
 * `lead` has returned by itself; rejects with LeadershipLostError when leadership was lost (the process should
 * restart), or with the error of `lead`. The lease is released at the end, so that the next leader need not wait.
 *
 * As in client-go, clocks of different machines are never compared: a lease counts from the moment when this process
 * saw it change.
 */
export async function runWithLease(options: LeaseOptions): Promise<void> {
  const { renewDeadlineMs = 10_000, leaseDurationMs = 15_000, retryPeriodMs = 2_000 } = options;
  if (leaseDurationMs <= renewDeadlineMs || renewDeadlineMs <= retryPeriodMs * 1.2) {
    throw new RangeError('leader election needs leaseDuration > renewDeadline > 1.2 × retryPeriod');
  }
  const { signal, logger, name, identity } = options;
  const candidate = new Candidate(options, leaseDurationMs, retryPeriodMs);
  while (!signal.aborted && !(await candidate.acquire(renewDeadlineMs, signal))) {
    await sleep(retryPeriodMs * (1 + Math.random() * 0.2), signal);
  }
  const leading = new AbortController();
  const renewing = new AbortController();
  const unlisten = onAbort(signal, () => leading.abort(signal.reason));
  const renewal = candidate.keep(renewDeadlineMs, renewing.signal).catch((error) => {
    logger?.error({ error, lease: name }, 'leadership lost');
    leading.abort(error);
  });
  try {
    if (leading.signal.aborted) {
      return;
    }
    logger?.info({ lease: name, identity }, 'became the leader');
    await options.lead(leading.signal, () => candidate.assertCurrent(renewDeadlineMs));
  } catch (error) {
    if (!leading.signal.aborted || error !== leading.signal.reason) {
      throw error;
    }
  } finally {
    unlisten();
    // The lease is renewed until the work has ended: no other candidate may begin before.
    renewing.abort();
    await renewal;
    if (options.mayRelease?.() !== false) {
      await candidate.release();
    }
  }
  if (leading.signal.reason instanceof LeadershipLostError) {
    throw leading.signal.reason;
  }
}

class Candidate {
  readonly #options: LeaseOptions;
  readonly #durationMs: number;
  readonly #retryMs: number;
  /** The lease as last read or written, and when we saw it change. */
  #seen: Lease | undefined;
  #seenAt = 0;
  #leader = '';
  #renewedAt = 0;

  constructor(options: LeaseOptions, durationMs: number, retryMs: number) {
    this.#options = options;
    this.#durationMs = durationMs;
    this.#retryMs = retryMs;
  }

  /** Tries to become the leader; false when someone else is or the server cannot be asked. */
  async acquire(timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    // Measured before the write, as with each renewal: the other candidates may count from then on.
    this.#renewedAt = performance.now();
    return this.#attempt(() => withDeadline(signal, timeoutMs, (deadline) => this.#take(deadline)), signal);
  }

  /** Throws LeadershipLostError when the last renewal is too long ago. */
  assertCurrent(deadlineMs: number): void {
    if (performance.now() - this.#renewedAt < deadlineMs) {
      return;
    }
    throw new LeadershipLostError(`lease ${this.#options.name} has not been renewed for ${deadlineMs} ms`);
  }

  /** Renews until aborted. Throws LeadershipLostError. */
  async keep(deadlineMs: number, signal: AbortSignal): Promise<void> {
    const { identity, name } = this.#options;
    while (!signal.aborted) {
      await sleep(this.#retryMs, signal);
      if (signal.aborted) {
        return;
      }
      const startedAt = performance.now();
      const left = Math.max(this.#renewedAt + deadlineMs - startedAt, 1);
      const renew = () => withDeadline(signal, left, (deadline) => this.#renew(deadline));
      if (await this.#attempt(renew, signal)) {
        this.#renewedAt = startedAt;
      }
      if (signal.aborted) {
        return;
      }
      const holder = this.#seen?.spec?.holderIdentity;
      if (holder !== identity) {
        throw new LeadershipLostError(`lease ${name} was taken by "${holder ?? ''}"`);
      }
      if (performance.now() - this.#renewedAt >= deadlineMs) {
        throw new LeadershipLostError(`lease ${name} could not be renewed for ${deadlineMs} ms`);
      }
    }
  }

  /** Releases the lease if this candidate holds it. A failure is only logged: the lease expires. */
  async release(): Promise<void> {
    const { identity, logger, name } = this.#options;
    const lease = this.#seen;
    if (lease?.spec?.holderIdentity !== identity) {
      return;
    }
    try {
      const until = Math.max(this.#retryMs * 2, releaseMs);
      const never = new AbortController().signal;
      const isReleased = await withDeadline(never, until, (signal) => this.#giveBack(lease, signal));
      if (isReleased) {
        logger?.info({ lease: name, identity }, 'lease released');
      }
    } catch (error) {
      logger?.warn({ error, lease: name }, 'cannot release the lease');
    }
  }

  /** False when another candidate holds it. */
  async #giveBack(last: Lease, signal: AbortSignal): Promise<boolean> {
    const { client, namespace, name, identity } = this.#options;
    const now = rfc3339Micro(new Date());
    const free = { holderIdentity: '', leaseDurationSeconds: 1, renewTime: now, acquireTime: now };
    const give = (lease: Lease) => client.replace(leases, { ...lease, spec: { ...lease.spec, ...free } }, { signal });
    try {
      await give(last);
      return true;
    } catch (error) {
      if (!isConflict(error)) {
        throw error;
      }
    }
    // The aborted renewal may have been executed.
    const current = await client.get(leases, { namespace, name }, signal);
    if (current?.spec?.holderIdentity !== identity) {
      return false;
    }
    await give(current);
    return true;
  }

  async #attempt(attempt: () => Promise<boolean>, signal: AbortSignal): Promise<boolean> {
    try {
      return await attempt();
    } catch (error) {
      if (signal.aborted) {
        return false;
      }
      const { logger, name } = this.#options;
      if (isConflict(error) || isAlreadyExists(error)) {
        logger?.debug({ lease: name }, 'another candidate was faster');
      } else {
        logger?.warn({ error, lease: name }, 'cannot read or write the lease');
      }
      return false;
    }
  }

  async #take(signal: AbortSignal): Promise<boolean> {
    const { client, namespace, name, identity, annotations, mayTake } = this.#options;
    const current = await client.get(leases, { namespace, name }, signal);
    if (!current) {
      const lease: Lease = {
        metadata: { namespace, name, ...(annotations && { annotations: { ...annotations } }) },
        spec: this.#spec(),
      };
      this.#observe(await client.create(leases, lease, { signal }));
      return true;
    }
    this.#observe(current);
    const holder = current.spec?.holderIdentity;
    if (holder && holder !== identity && !this.#hasExpired(current)) {
      return false;
    }
    if (mayTake?.(current) === false) {
      return false;
    }
    const metadata = annotations
      ? { ...current.metadata, annotations: { ...current.metadata.annotations, ...annotations } }
      : current.metadata;
    this.#observe(await client.replace(leases, { ...current, metadata, spec: this.#spec(current) }, { signal }));
    return true;
  }

  /** Replaces the version written last; reads the lease only after a conflict. Never takes a lost lease back. */
  async #renew(signal: AbortSignal): Promise<boolean> {
    const { client, namespace, name, identity } = this.#options;
    const last = this.#seen;
    if (!last) {
      return false;
    }
    try {
      this.#observe(await client.replace(leases, { ...last, spec: this.#spec(last) }, { signal }));
      return true;
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) {
        throw error;
      }
    }
    const current = await client.get(leases, { namespace, name }, signal);
    if (!current) {
      return this.#take(signal);
    }
    this.#observe(current);
    if (current.spec?.holderIdentity !== identity) {
      return false;
    }
    this.#observe(await client.replace(leases, { ...current, spec: this.#spec(current) }, { signal }));
    return true;
  }

  #spec(current?: Lease): NonNullable<Lease['spec']> {
    const now = rfc3339Micro(new Date());
    const isOurs = current?.spec?.holderIdentity === this.#options.identity;
    const transitions = current?.spec?.leaseTransitions ?? 0;
    return {
      holderIdentity: this.#options.identity,
      leaseDurationSeconds: Math.max(1, Math.ceil(this.#durationMs / 1000)),
      acquireTime: (isOurs && current?.spec?.acquireTime) || now,
      renewTime: now,
      leaseTransitions: current && !isOurs ? transitions + 1 : transitions,
    };
  }

  #hasExpired(lease: Lease): boolean {
    // The holder's duration applies, because it may be configured differently.
    const seconds = lease.spec?.leaseDurationSeconds;
    const durationMs = seconds === undefined ? this.#durationMs : Math.max(seconds * 1000, 1);
    return performance.now() >= this.#seenAt + durationMs;
  }

  #observe(lease: Lease): void {
    if (this.#seen?.metadata.resourceVersion !== lease.metadata.resourceVersion) {
      this.#seenAt = performance.now();
    }
    this.#seen = lease;
    const leader = lease.spec?.holderIdentity ?? '';
    if (leader === this.#leader) {
      return;
    }
    this.#leader = leader;
    if (leader) {
      this.#options.onLeader?.(leader);
    }
  }
}
