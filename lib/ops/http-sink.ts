import { Backoff, type Logger, onAbort, sleep } from '../base/index.ts';

/** A request to a sink. */
export interface SinkRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** How an {@link HttpSink} works. */
export interface HttpSinkOptions<T> {
  /** What is sent, for log lines: `audit records`. */
  readonly what: string;
  readonly url: string;
  /** Sent with every request, as they are then: authorization. They are never logged. */
  readonly headers?: () => Readonly<Record<string, string>>;
  /** The request for some items, in their order. */
  readonly encode: (items: readonly T[]) => SinkRequest | Promise<SinkRequest>;
  /** Items of one request. Default 1. */
  readonly batch?: number;
  /** Items that wait; further ones are dropped. Default 10,000. */
  readonly capacity?: number;
  /** How long one request may take, in milliseconds. Default 10 s. */
  readonly timeoutMs?: number;
  readonly backoff?: { readonly initialMs: number; readonly maxMs: number };
  /** Called with the number of dropped items when the sink takes items again. */
  readonly resumed?: (dropped: number) => T | undefined;
  readonly logger: Logger;
}

/** How long the rest may take to be sent when the program ends. */
const lastMs = 3_000;

/**
 * Sends items to an HTTP server, each at least once while the process lives, in their order: a request is repeated with
 * growing delays until the server answers with 2xx. What does not fit in the bounded queue is dropped, counted and said.
 * A request that the server will never take (400, 413, 422) is halved until only the item that it does not take is left, and that
 * is dropped.
 */
export class HttpSink<T> {
  readonly #options: HttpSinkOptions<T>;
  readonly #capacity: number;
  readonly #queue: T[] = [];
  #wake: (() => void) | undefined;
  /** Items of the next request: fewer after a request that the server did not take, for it may have been too large. */
  #batch: number;
  #dropped = 0;
  #droppedNow = 0;

  constructor(options: HttpSinkOptions<T>) {
    this.#options = options;
    this.#capacity = options.capacity ?? 10_000;
    this.#batch = options.batch ?? 1;
  }

  /** Items that wait. */
  get pending(): number {
    return this.#queue.length;
  }

  /** Items that were dropped since the start. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Takes an item. Never waits. */
  add(item: T): void {
    if (this.#queue.length >= this.#capacity) {
      this.#drop(1, 'more wait than the queue holds');
      return;
    }
    this.#queue.push(item);
    this.#wake?.();
  }

  /** Sends until aborted, and then for a short time what is left. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (this.#queue.length === 0) {
        await this.#added(signal);
      } else {
        await this.#sendFirst(signal);
      }
    }
    const last = AbortSignal.timeout(lastMs);
    while (this.#queue.length > 0 && !last.aborted) {
      await this.#sendFirst(last);
    }
    if (this.#queue.length > 0) {
      this.#drop(this.#queue.splice(0).length, 'the program ends');
    }
  }

  async #added(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const unlisten = onAbort(signal, resolve);
    await promise;
    unlisten();
    this.#wake = undefined;
  }

  /** Sends the first items; returns when they are delivered, dropped, or the signal aborts. */
  async #sendFirst(signal: AbortSignal): Promise<void> {
    const { what, encode, logger, backoff: timing = { initialMs: 500, maxMs: 15_000 } } = this.#options;
    const items = this.#queue.slice(0, this.#batch);
    const request = await encode(items);
    const backoff = new Backoff(timing);
    while (!signal.aborted) {
      const problem = await this.#post(request, signal);
      if (problem?.isFinal && items.length > 1) {
        this.#batch = Math.ceil(items.length / 2);
        return;
      }
      if (problem === undefined || problem.isFinal) {
        this.#batch = Math.min(this.#batch * 2, this.#options.batch ?? 1);
        this.#queue.splice(0, items.length);
        if (problem !== undefined) {
          this.#drop(items.length, problem.text);
        }
        if (backoff.failures > 0 || this.#droppedNow > 0) {
          this.#hasResumed();
        }
        return;
      }
      if (signal.aborted) {
        return;
      }
      if (backoff.failures === 0) {
        logger.warn({ problem: problem.text, waiting: this.#queue.length }, `${what} cannot be delivered, will retry`);
      }
      await sleep(backoff.next(), signal);
    }
  }

  #hasResumed(): void {
    const { what, logger, resumed } = this.#options;
    const dropped = this.#droppedNow;
    this.#droppedNow = 0;
    logger.info({ dropped, waiting: this.#queue.length }, `${what} are delivered again`);
    const notice = dropped > 0 ? resumed?.(dropped) : undefined;
    if (notice !== undefined) {
      this.add(notice);
    }
  }

  async #post(
    { headers, body }: SinkRequest,
    signal: AbortSignal,
  ): Promise<{ readonly text: string; readonly isFinal: boolean } | undefined> {
    const { url, headers: common, timeoutMs = 10_000 } = this.#options;
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...headers, ...common?.() },
        body,
        redirect: 'error',
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      });
      await response.body?.cancel();
      if (response.ok) {
        return undefined;
      }
      return { text: `HTTP ${response.status}`, isFinal: [400, 413, 422].includes(response.status) };
    } catch (error) {
      const { message, cause } = error as Error;
      return { text: cause instanceof Error ? `${message}: ${cause.message}` : message, isFinal: false };
    }
  }

  #drop(count: number, why: string): void {
    const { what, logger } = this.#options;
    if (this.#droppedNow === 0) {
      logger.error({ why }, `${what} are dropped`);
    }
    this.#dropped += count;
    this.#droppedNow += count;
  }
}
