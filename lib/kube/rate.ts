import { sleep } from '../base/index.ts';

/** A rate limit of requests. */
export interface RateLimit {
  readonly perSecond: number;
  /** Most requests at once after a pause. */
  readonly burst: number;
}

/** Delays callers so that they keep to a rate, in the order of the calls. */
export class Pacer {
  readonly #intervalMs: number;
  readonly #headStartMs: number;
  readonly #now: () => number;
  /** When the next request would be due without a burst. */
  #dueAt = Number.NEGATIVE_INFINITY;

  constructor(limit: RateLimit, now: () => number = () => performance.now()) {
    this.#intervalMs = 1_000 / limit.perSecond;
    this.#headStartMs = (Math.max(1, limit.burst) - 1) * this.#intervalMs;
    this.#now = now;
  }

  /** Takes the next turn and returns the milliseconds until it. */
  reserve(): number {
    const now = this.#now();
    const dueAt = Math.max(now, this.#dueAt);
    this.#dueAt = dueAt + this.#intervalMs;
    return Math.max(0, dueAt - this.#headStartMs - now);
  }

  /** Waits for the next turn and returns the milliseconds that it took. @throws the signal's reason when aborted */
  async take(signal?: AbortSignal): Promise<number> {
    const waitMs = this.reserve();
    if (waitMs > 0) {
      await sleep(waitMs, signal);
    }
    signal?.throwIfAborted();
    return waitMs;
  }
}
