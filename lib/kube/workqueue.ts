import { after, type BackoffOptions, backoffDelay, type Logger, onAbort } from '../base/index.ts';

/** A handler's request for another run of the same key after a time. */
export interface Requeue {
  requeueAfterMs: number;
}

/** Counters of a queue; for metrics. */
export interface WorkQueueStats {
  /** Handler runs that ended well. */
  done: number;
  /** Handler runs that threw. */
  failed: number;
  /** Keys in back-off after a failure. */
  retrying: number;
  /** Keys being worked on now. */
  active: number;
}

/** Observes the keys of a queue; for metrics. */
export interface WorkQueueObserver {
  /** The key was added and waits. */
  added(key: string): void;
  /** The handler was started for the key. */
  started(key: string): void;
  ended(key: string): void;
  /** The handler failed and will be run again. */
  retried(key: string): void;
}

/** Options of a work queue. */
export interface WorkQueueOptions {
  name: string;
  /** Reconciles one key. After an error the key is retried with back-off. */
  handler: (key: string, signal: AbortSignal) => Promise<Requeue | undefined> | Promise<void>;
  /** Keys worked on at the same time. Default 1. */
  concurrency?: number | undefined;
  /** Delays after failures of the same key. Default 50 ms, doubling to 60 s. */
  backoff?: BackoffOptions | undefined;
  /** Called after each failed run; `failures` counts the failures in a row of that key. */
  onFailure?: ((key: string, failures: number, error: unknown) => void) | undefined;
  observer?: WorkQueueObserver | undefined;
  logger?: Logger | undefined;
}

/**
 * Keys that need attention. A key waits at most once, is never worked on twice at the same time, and when it is added
 * while being worked on it runs again after; a key that fails comes back with exponential back-off, and one success
 * forgets its failures. Bounded by the number of different keys.
 */
export class WorkQueue {
  readonly name: string;
  readonly #handler: WorkQueueOptions['handler'];
  readonly #concurrency: number;
  readonly #backoff: BackoffOptions;
  readonly #onFailure: WorkQueueOptions['onFailure'];
  readonly #observer: WorkQueueObserver | undefined;
  readonly #logger: Logger | undefined;
  /** In insertion order: first added, first worked on. */
  readonly #ready = new Set<string>();
  readonly #active = new Set<string>();
  /** Added while being worked on. */
  readonly #again = new Set<string>();
  /** Runs requested by `addAfter`; other runs of the key do not cancel them. */
  readonly #delayed: Timers = new Map();
  /** Runs requested by the handler's last run, back-off included; a new run supersedes them. */
  readonly #requeued: Timers = new Map();
  readonly #failures = new Map<string, number>();
  #signal: AbortSignal | undefined;
  #drained: (() => void) | undefined;
  #done = 0;
  #failed = 0;

  constructor(options: WorkQueueOptions) {
    this.name = options.name;
    this.#handler = options.handler;
    this.#concurrency = options.concurrency ?? 1;
    this.#backoff = { initialMs: 50, maxMs: 60_000, ...options.backoff };
    this.#onFailure = options.onFailure;
    this.#observer = options.observer;
    this.#logger = options.logger;
  }

  /** Keys that are ready and wait for a worker. */
  get length(): number {
    return this.#ready.size + this.#again.size;
  }

  /** Counters so far. */
  get stats(): WorkQueueStats {
    return {
      done: this.#done,
      failed: this.#failed,
      retrying: this.#failures.size,
      active: this.#active.size,
    };
  }

  /** Whether nothing is ready, being worked on or due later. */
  get isIdle(): boolean {
    return this.#ready.size + this.#active.size + this.#delayed.size + this.#requeued.size === 0;
  }

  /** Requests a run of the key as soon as possible; also ends its back-off. */
  add(key: string): void {
    if (this.#signal?.aborted) {
      return;
    }
    cancel(this.#requeued, key);
    const waiting = this.#active.has(key) ? this.#again : this.#ready;
    if (!waiting.has(key)) {
      this.#observer?.added(key);
    }
    waiting.add(key);
    this.#work();
  }

  /** Requests a run of the key after a time. Of several such requests the earliest counts. */
  addAfter(key: string, ms: number): void {
    if (!this.#signal?.aborted) {
      this.#schedule(this.#delayed, key, ms);
    }
  }

  /** Forgets the failures of a key, for instance because the object is gone. Does not remove it from the queue. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** How often the key failed in a row. */
  failuresOf(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  /**
   * Runs until aborted, then waits for the running handlers (their signal is aborted too) and drops the other keys.
   * Keys may be added before.
   */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#signal) {
      throw new Error(`the work queue ${this.name} can run only once`);
    }
    this.#signal = signal;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#drained = resolve;
    const stop = () => {
      for (const key of [...this.#delayed.keys()]) {
        cancel(this.#delayed, key);
      }
      for (const key of [...this.#requeued.keys()]) {
        cancel(this.#requeued, key);
      }
      this.#ready.clear();
      this.#again.clear();
      if (this.#active.size === 0) {
        resolve();
      }
    };
    onAbort(signal, stop);
    this.#work();
    await promise;
  }

  #work(): void {
    const signal = this.#signal;
    if (!signal || signal.aborted) {
      return;
    }
    for (const key of this.#ready) {
      if (this.#active.size >= this.#concurrency) {
        return;
      }
      this.#ready.delete(key);
      this.#active.add(key);
      this.#observer?.started(key);
      void this.#process(key, signal);
    }
  }

  async #process(key: string, signal: AbortSignal): Promise<void> {
    let delayMs: number | undefined;
    try {
      const result = await this.#handler(key, signal);
      this.#done++;
      this.#failures.delete(key);
      if (result) {
        delayMs = result.requeueAfterMs;
      }
    } catch (error) {
      if (!signal.aborted) {
        delayMs = this.#failure(key, error);
      }
    }
    this.#active.delete(key);
    this.#observer?.ended(key);
    if (signal.aborted) {
      if (this.#active.size === 0) {
        this.#drained?.();
      }
      return;
    }
    if (this.#again.delete(key)) {
      this.#ready.add(key);
    } else if (delayMs !== undefined) {
      this.#schedule(this.#requeued, key, delayMs);
    }
    this.#work();
  }

  #failure(key: string, error: unknown): number {
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    this.#failed++;
    this.#observer?.retried(key);
    const delayMs = backoffDelay(failures, this.#backoff);
    const fields = { error, queue: this.name, key, failures, retryInMs: Math.round(delayMs) };
    if (failures === 1) {
      this.#logger?.debug(fields, 'will try again');
    } else {
      this.#logger?.warn(fields, 'failed again');
    }
    this.#onFailure?.(key, failures, error);
    return delayMs;
  }

  #schedule(timers: Timers, key: string, ms: number): void {
    const at = performance.now() + ms;
    const waiting = timers.get(key);
    if (waiting && waiting.at <= at) {
      return;
    }
    cancel(timers, key);
    const due = () => {
      timers.delete(key);
      this.add(key);
    };
    timers.set(key, { cancel: after(ms, due), at });
  }
}

type Timers = Map<string, { cancel: () => void; at: number }>;

function cancel(timers: Timers, key: string): void {
  timers.get(key)?.cancel();
  timers.delete(key);
}
