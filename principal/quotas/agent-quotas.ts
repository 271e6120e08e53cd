import { applyMergePatch, jsonSize, type RateLimit, sleep, TokenBucket } from '../../lib/base/index.ts';
import {
  type Clock,
  type ObjectRef,
  refOf,
  type Store,
  type StoredObject,
  systemClock,
  View,
} from '../../lib/sync/index.ts';
import { type AgentTotal, AgentUsage, type Share } from './agent-usage.ts';
import { LargeWrites } from './large-writes.ts';

/** What one agent may store on the hub and write to it. A limit of 0 is none. */
export interface AgentLimits {
  /** Mirrors of an autonomous agent's objects. */
  readonly objects: number;
  /** Size of all that the agent decides of objects on the hub ({@link jsonSize}). */
  readonly bytes: number;
  /** Size of what the agent decides of one object. */
  readonly objectBytes: number;
  readonly writesPerSecond: number;
  /** Size of written objects a second. */
  readonly writtenBytesPerSecond: number;
}

/** The limits of what an agent may have stored, as labels of metrics. */
export const quotaLimits = ['objects', 'bytes', 'object_bytes'] as const;

/** Which limit an agent met. */
export type QuotaLimit = (typeof quotaLimits)[number];

/** A write would exceed what an agent may have stored. The engine takes the status for an API server's refusal. */
export class QuotaError extends Error {
  override readonly name = 'QuotaError';
  readonly code = 'QUOTA';
  readonly status = 413;
}

/** What the quotas have to know of a kind. */
export interface QuotaKind<T> {
  readonly kind: string;
  /** The agent that decides an object or a part of it; undefined when none does. */
  ownerOf(object: T): string | undefined;
  /** Whether the agent decides the whole object: it is a mirror. */
  isMirror(object: T): boolean;
}

/** How {@link AgentQuotas} report. */
export interface QuotaReports {
  /** A write was refused. */
  refused(agent: string, limit: QuotaLimit, message: string): void;
  /** An agent's messages waited for its rate. */
  delayed(agent: string, seconds: number): void;
}

/** After a pause an agent may write as much at once as in this many seconds: also a whole cluster's first synchronisation. */
const burstSeconds = { writes: 100, bytes: 64 };

interface Budget {
  readonly writes: TokenBucket | undefined;
  readonly bytes: TokenBucket | undefined;
}

/**
 * What each agent has stored on the hub, and how fast it writes. A write that would exceed what the agent may have stored is
 * refused; an agent above its rate waits before its next message is processed, so its acknowledgements come later.
 */
export class AgentQuotas {
  readonly #limits: AgentLimits;
  readonly #reports: QuotaReports;
  readonly #clock: Clock;
  readonly #usage = new AgentUsage();
  readonly #budgets = new Map<string, Budget>();
  readonly #largeWrites = new LargeWrites();

  constructor(limits: AgentLimits, reports: QuotaReports, clock: Clock = systemClock) {
    this.#limits = limits;
    this.#reports = reports;
    this.#clock = clock;
  }

  /** What an agent has stored. */
  usageOf(agent: string): Readonly<AgentTotal> {
    return this.#usage.of(agent);
  }

  /** Waits until the agent may write again. */
  async pace(agent: string, signal: AbortSignal): Promise<void> {
    const { writes, bytes } = this.#budgetOf(agent);
    for (let waited = 0; !signal.aborted; ) {
      const waitMs = Math.max(writes?.waitMs ?? 0, bytes?.waitMs ?? 0);
      if (waitMs === 0) {
        if (waited > 0) {
          this.#reports.delayed(agent, waited / 1_000);
        }
        return;
      }
      await sleep(waitMs, signal);
      waited += waitMs;
    }
  }

  /** The agent left the fleet. What it has stored stays counted while it is there. */
  forgetAgent(agent: string): void {
    this.#budgets.delete(agent);
  }

  /**
   * Counts what a store has from now on. Call it once for each kind. What it returns makes stores of the same kind whose writes are
   * counted for the agents, and refused where an agent would have too much. What was written counts at once, however late the cache
   * has it, and until it is gone.
   */
  follow<T extends StoredObject>(
    store: Pick<Store<T>, 'subscribe'>,
    kind: QuotaKind<T>,
  ): (guarded: Store<T>) => Store<T> {
    const view = new View<T>({
      clock: this.#clock,
      changed: (ref, { now }) => this.#usage.stored(placeOf(kind, ref), now && shareOf(kind, now)),
      // Whoever created it doubts it, too, and reads it through a guarded store.
      doubted: () => undefined,
    });
    view.follow(store);
    return (guarded) => this.#guard(guarded, kind, view);
  }

  #guard<T extends StoredObject>(store: Store<T>, kind: QuotaKind<T>, view: View<T>): Store<T> {
    const read = async (ref: ObjectRef, signal: AbortSignal) => {
      const before = view.get(ref);
      const now = await store.read(ref, signal);
      if (now !== undefined) {
        view.learn(now, before);
      } else if (before !== undefined) {
        view.lost(before);
      }
      return now;
    };
    // The cache may lack what was written a moment ago: nothing is written of which nobody knows what it makes of what is there.
    const known = async (ref: ObjectRef, planned: T | undefined, signal: AbortSignal) =>
      view.get(ref) ?? planned ?? (await read(ref, signal));
    const write = async (after: T, write: () => Promise<T>, signal: AbortSignal): Promise<T> => {
      const share = shareOf(kind, after);
      const send = async () => {
        const written = await write();
        view.learn(written);
        return written;
      };
      if (share === undefined) {
        return send();
      }
      const place = placeOf(kind, refOf(after));
      this.#admit(share, this.#usage.at(place));
      const size = jsonSize(after);
      this.#charge(share.agent, size);
      const release = this.#usage.reserve(place, share);
      try {
        return await this.#largeWrites.run(share.agent, size, send, signal);
      } finally {
        release();
      }
    };
    return {
      subscribe: (listener) => store.subscribe(listener),
      read,
      settled: (ref) => store.settled?.(ref),
      create: (object, signal) => write(object, () => store.create(object, signal), signal),
      patch: async (ref, patch, signal, planned) => {
        const before = await known(ref, planned, signal);
        const send = () => store.patch(ref, patch, signal, planned);
        // There is nothing to patch, says the API server, and will say so again.
        return before === undefined ? send() : write(applyMergePatch(before, patch) as T, send, signal);
      },
      delete: async (ref, options, signal, planned) => {
        const before = await known(ref, planned, signal);
        const agent = before && kind.ownerOf(before);
        if (agent !== undefined) {
          this.#charge(agent, 0);
        }
        await store.delete(ref, options, signal, planned);
      },
    };
  }

  /** @throws QuotaError */
  #admit({ agent, size, isMirror }: Share, counted: Share | undefined): void {
    const { objects, bytes, objectBytes } = this.#limits;
    const usage = this.usageOf(agent);
    const before = counted?.agent === agent ? counted : undefined;
    const growth = size - (before?.size ?? 0);
    if (growth <= 0) {
      return;
    }
    if (objectBytes > 0 && size > objectBytes) {
      this.#refuse(agent, 'object_bytes', `one object of an agent may have ${objectBytes} bytes, this one has ${size}`);
    }
    // The texts are the same for every object, so that they are reported once.
    if (bytes > 0 && usage.bytes + growth > bytes) {
      this.#refuse(agent, 'bytes', `agent ${agent} may have ${bytes} bytes on the hub and has no room for it`);
    }
    if (objects > 0 && isMirror && before?.isMirror !== true && usage.objects >= objects) {
      this.#refuse(agent, 'objects', `agent ${agent} may have ${objects} objects on the hub and has as many`);
    }
  }

  #refuse(agent: string, limit: QuotaLimit, reason: string): never {
    const message = `${reason} (--agent-max-${limit.replace('_', '-')})`;
    this.#reports.refused(agent, limit, message);
    throw new QuotaError(message);
  }

  #charge(agent: string, size: number): void {
    const { writes, bytes } = this.#budgetOf(agent);
    writes?.reserve(1);
    bytes?.reserve(size);
  }

  #budgetOf(agent: string): Budget {
    let budget = this.#budgets.get(agent);
    if (budget === undefined) {
      const { writesPerSecond, writtenBytesPerSecond } = this.#limits;
      budget = {
        writes: this.#bucket(writesPerSecond, burstSeconds.writes),
        bytes: this.#bucket(writtenBytesPerSecond, burstSeconds.bytes),
      };
      this.#budgets.set(agent, budget);
    }
    return budget;
  }

  #bucket(perSecond: number, seconds: number): TokenBucket | undefined {
    const limit: RateLimit = { perSecond, burst: perSecond * seconds };
    return perSecond > 0 ? new TokenBucket(limit, () => this.#clock.now()) : undefined;
  }
}

function placeOf({ kind }: Pick<QuotaKind<never>, 'kind'>, { namespace, name }: ObjectRef): string {
  return `${kind} ${namespace}/${name}`;
}

/** Of an Application that is the hub's own, its agent decides the status alone. */
function shareOf<T extends StoredObject>(kind: QuotaKind<T>, object: T): Share | undefined {
  const agent = kind.ownerOf(object);
  if (agent === undefined) {
    return undefined;
  }
  const isMirror = kind.isMirror(object);
  const decided = isMirror ? object : (object as { readonly status?: unknown }).status;
  return { agent, isMirror, size: decided === undefined ? 0 : jsonSize(decided) };
}
