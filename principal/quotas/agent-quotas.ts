import { applyMergePatch, jsonSize, type RateLimit, sleep, TokenBucket } from '../../lib/base/index.ts';
import type { ObjectRef, Store, StoredObject } from '../../lib/sync/index.ts';
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
  /** The object as last seen. */
  get(ref: ObjectRef): T | undefined;
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

interface Counted {
  readonly agent: string;
  readonly size: number;
  readonly isMirror: boolean;
}

interface Usage {
  objects: number;
  bytes: number;
}

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
  readonly #now: () => number;
  readonly #counted = new Map<string, Counted>();
  readonly #usage = new Map<string, Usage>();
  readonly #budgets = new Map<string, Budget>();
  readonly #largeWrites = new LargeWrites();

  /** @param now milliseconds of a clock that never goes back */
  constructor(limits: AgentLimits, reports: QuotaReports, now: () => number = () => performance.now()) {
    this.#limits = limits;
    this.#reports = reports;
    this.#now = now;
  }

  /** What an agent has stored. */
  usageOf(agent: string): Readonly<Usage> {
    return this.#usage.get(agent) ?? { objects: 0, bytes: 0 };
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

  /** Counts what a store has. Call it once for each kind that is {@link guard}ed. */
  follow<T extends StoredObject>(store: Pick<Store<T>, 'subscribe'>, kind: QuotaKind<T>): void {
    store.subscribe(({ old, now }) => {
      const { name, namespace = '' } = (now ?? old)?.metadata ?? { name: '' };
      const place = `${kind.kind} ${namespace}/${name}`;
      this.#count(place, now && countOf(kind, now));
    });
  }

  /** The same store, whose writes are counted for the agents, and refused where an agent would have too much. */
  guard<T extends StoredObject>(store: Store<T>, kind: QuotaKind<T>): Store<T> {
    const write = async <R>(
      before: T | undefined,
      after: T,
      { metadata }: T,
      { send, signal }: { readonly send: () => Promise<R>; readonly signal: AbortSignal },
    ): Promise<R> => {
      const place = `${kind.kind} ${metadata.namespace ?? ''}/${metadata.name}`;
      const counted = countOf(kind, after);
      if (counted === undefined) {
        return send();
      }
      this.#admit(place, counted, before === undefined);
      const size = jsonSize(after);
      this.#charge(counted.agent, size);
      // Counted before it is written, so that writes at the same time do not exceed the limit together.
      const previous = this.#counted.get(place);
      this.#count(place, counted);
      try {
        return await this.#largeWrites.run(counted.agent, size, send, signal);
      } catch (error) {
        if (this.#counted.get(place) === counted) {
          this.#count(place, previous);
        }
        throw error;
      }
    };
    return {
      subscribe: (listener) => store.subscribe(listener),
      read: (ref, signal) => store.read(ref, signal),
      settled: (ref) => store.settled?.(ref),
      create: (object, signal) =>
        write(undefined, object, object, { send: () => store.create(object, signal), signal }),
      patch: (ref, patch, signal, planned) => {
        const before = kind.get(ref);
        const send = () => store.patch(ref, patch, signal, planned);
        return before === undefined
          ? send()
          : write(before, applyMergePatch(before, patch) as T, before, { send, signal });
      },
      delete: (ref, options, signal, planned) => {
        const before = kind.get(ref);
        const agent = before && kind.ownerOf(before);
        if (agent !== undefined) {
          this.#charge(agent, 0);
        }
        return store.delete(ref, options, signal, planned);
      },
    };
  }

  /** @throws QuotaError */
  #admit(place: string, { agent, size, isMirror }: Counted, isNew: boolean): void {
    const { objects, bytes, objectBytes } = this.#limits;
    const usage = this.usageOf(agent);
    const before = this.#counted.get(place);
    const growth = size - (before?.agent === agent ? before.size : 0);
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
    if (objects > 0 && isMirror && isNew && usage.objects >= objects) {
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

  #count(place: string, counted: Counted | undefined): void {
    const before = this.#counted.get(place);
    if (before !== undefined) {
      this.#add(before, -1);
      this.#counted.delete(place);
    }
    if (counted !== undefined) {
      this.#add(counted, 1);
      this.#counted.set(place, counted);
    }
  }

  #add({ agent, size, isMirror }: Counted, sign: 1 | -1): void {
    const usage = this.#usage.get(agent) ?? { objects: 0, bytes: 0 };
    usage.bytes += sign * size;
    usage.objects += isMirror ? sign : 0;
    if (usage.bytes === 0 && usage.objects === 0) {
      this.#usage.delete(agent);
    } else {
      this.#usage.set(agent, usage);
    }
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
    return perSecond > 0 ? new TokenBucket(limit, this.#now) : undefined;
  }
}

/** Of an Application that is the hub's own, its agent decides the status alone. */
function countOf<T extends StoredObject>(kind: QuotaKind<T>, object: T): Counted | undefined {
  const agent = kind.ownerOf(object);
  if (agent === undefined) {
    return undefined;
  }
  const isMirror = kind.isMirror(object);
  const decided = isMirror ? object : (object as { readonly status?: unknown }).status;
  return { agent, isMirror, size: decided === undefined ? 0 : jsonSize(decided) };
}
