import { abortable, onAbort } from '../../lib/base/index.ts';
import type { ObjectRef, Store, StoredObject } from '../../lib/sync/index.ts';
import type { ReplicaLease } from './replica-lease.ts';

/** Another replica is responsible for the agent now. The engine takes it for a failure that may pass. */
export class FencedError extends Error {
  override readonly name = 'FencedError';
  readonly code = 'FENCED';
}

/** How a {@link WriteFence} works. */
export interface WriteFenceOptions {
  readonly lease: Pick<ReplicaLease, 'isCurrent' | 'current' | 'currentSince'>;
  /** Whether this replica is responsible for the agent; undefined: for what is no agent's. */
  readonly mayWrite: (agent: string | undefined) => Promise<boolean>;
  /** See {@link longestWriteMs}. A write that takes longer goes on while this replica is known to be responsible all the time. */
  readonly timeoutMs: number;
}

/** Whose an object is, and how it was seen last. */
export interface FencedKind<T> {
  readonly ownerOf: (object: T) => string | undefined;
  readonly get: (ref: ObjectRef) => T | undefined;
}

/**
 * Lets writes for an agent pass only while this replica's Lease is renewed and it is responsible for the agent. While the Lease is
 * not renewed, writes wait. What passes is counted until it has ended, so that an agent is handed over after the last one.
 */
export class WriteFence {
  readonly #options: WriteFenceOptions;
  readonly #underWay = new Map<string, number>();
  readonly #quiet = new Map<string, (() => void)[]>();

  constructor(options: WriteFenceOptions) {
    this.#options = options;
  }

  /** Resolves when no write for the agent is under way; at once if none is. */
  async quiet(agent: string): Promise<void> {
    while (this.#underWay.has(agent)) {
      await new Promise<void>((resolve) => {
        this.#quiet.set(agent, [...(this.#quiet.get(agent) ?? []), resolve]);
      });
    }
  }

  /** The same for all agents. */
  async allQuiet(): Promise<void> {
    for (let agents = [...this.#underWay.keys()]; agents.length > 0; agents = [...this.#underWay.keys()]) {
      await Promise.all(agents.map((agent) => this.quiet(agent)));
    }
  }

  /**
   * Writes, if that may be, when it may be. `write` can ask whether it may still be; it is false for good once the Lease was not
   * renewed in time.
   * @throws FencedError when another replica is responsible, the signal's reason, or the error of `write`
   */
  async run<R>(
    agent: string | undefined,
    signal: AbortSignal,
    write: (mayGoOn: () => Promise<boolean>) => Promise<R>,
  ): Promise<R> {
    const { lease, mayWrite } = this.#options;
    const key = agent ?? '';
    for (;;) {
      if (!lease.isCurrent) {
        await lease.current(signal);
      }
      signal.throwIfAborted();
      // From before the check, so that the agent is not handed over between both.
      this.#underWay.set(key, (this.#underWay.get(key) ?? 0) + 1);
      try {
        if (!(await mayWrite(agent))) {
          throw new FencedError(
            `another replica is responsible for ${agent === undefined ? 'this' : `agent ${agent}`}`,
          );
        }
        signal.throwIfAborted();
        if (lease.isCurrent) {
          const { currentSince } = lease;
          // Only what is so in the end counts: asking may take a while.
          return await write(
            async () => (await mayWrite(agent)) && lease.isCurrent && lease.currentSince === currentSince,
          );
        }
      } finally {
        this.#ended(key);
      }
    }
  }

  /**
   * The same store behind the fence. Each patch and deletion carries the version of the object that it was planned for, if that is
   * known, so that one that was delayed on its way changes nothing that another replica has written since; what carries none is urgent. A caller that gives a write up does not
   * wait for it, but the write counts until it has ended: the API server may execute a request that was called off.
   */
  guard<T extends StoredObject>(store: Store<T>, kind: FencedKind<T>): Store<T> {
    const owner = (object: T | undefined) => (object === undefined ? undefined : kind.ownerOf(object));
    const givenUp = new Map<string, Promise<void>>();
    const run = async <R>(
      { namespace = '', name }: { readonly namespace?: string; readonly name: string },
      object: T | undefined,
      signal: AbortSignal,
      isUrgent: boolean,
      write: (signal: AbortSignal) => Promise<R>,
    ) => {
      const end = this.run(owner(object), signal, (mayGoOn) => this.#toTheEnd({ signal, isUrgent, mayGoOn }, write));
      try {
        return await abortable(end, signal);
      } finally {
        if (signal.aborted) {
          const place = `${namespace}/${name}`;
          const ends = Promise.allSettled([end, givenUp.get(place)]).then(() => {
            if (givenUp.get(place) === ends) {
              givenUp.delete(place);
            }
          });
          givenUp.set(place, ends);
        }
      }
    };
    return {
      settled: ({ namespace, name }) => givenUp.get(`${namespace}/${name}`),
      subscribe: (listener) => store.subscribe(listener),
      read: (ref, signal) => store.read(ref, signal),
      create: (object, signal) => run(object.metadata, object, signal, true, (end) => store.create(object, end)),
      patch: (ref, patch, signal, planned = kind.get(ref)) => {
        const { resourceVersion } = planned?.metadata ?? {};
        const metadata: { readonly resourceVersion?: unknown } = {
          ...(resourceVersion && { resourceVersion }),
          ...(patch.metadata as object | undefined),
        };
        const isUrgent = metadata.resourceVersion === undefined;
        return run(ref, planned, signal, isUrgent, (end) => store.patch(ref, { ...patch, metadata }, end, planned));
      },
      delete: (ref, options, signal, planned = kind.get(ref)) => {
        const { uid, resourceVersion } = planned?.metadata ?? {};
        const guarded = uid === options.uid && resourceVersion ? { ...options, resourceVersion } : options;
        return run(ref, planned, signal, true, (end) => store.delete(ref, guarded, end, planned));
      },
    };
  }

  /**
   * Writes until the end, which comes `timeoutMs` after the beginning if it is urgent, and after the caller has given up. The end of
   * an urgent one is put off again and again while it may go on: from then on, too, it comes before another replica can have
   * taken over.
   */
  async #toTheEnd<R>(
    { signal, isUrgent, mayGoOn }: { signal: AbortSignal; isUrgent: boolean; mayGoOn: () => Promise<boolean> },
    write: (signal: AbortSignal) => Promise<R>,
  ): Promise<R> {
    const { timeoutMs } = this.#options;
    const end = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    let question: NodeJS.Timeout | undefined;
    let isOver = false;
    const limit = () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        end.abort(new DOMException(`no answer within ${Math.round(timeoutMs)} ms`, 'TimeoutError'));
      }, timeoutMs);
    };
    const limitWhileResponsible = () => {
      limit();
      question = setTimeout(async () => {
        const isAllowed = await mayGoOn().catch(() => false);
        if (isAllowed && !end.signal.aborted && !signal.aborted && !isOver) {
          limitWhileResponsible();
        }
      }, timeoutMs / 2);
    };
    if (isUrgent) {
      limitWhileResponsible();
    }
    const unlisten = onAbort(signal, () => timer ?? limit());
    try {
      return await write(end.signal);
    } finally {
      isOver = true;
      clearTimeout(timer);
      clearTimeout(question);
      unlisten();
    }
  }

  #ended(key: string): void {
    const left = (this.#underWay.get(key) ?? 1) - 1;
    if (left > 0) {
      this.#underWay.set(key, left);
      return;
    }
    this.#underWay.delete(key);
    const waiting = this.#quiet.get(key) ?? [];
    this.#quiet.delete(key);
    for (const go of waiting) {
      go();
    }
  }
}
