import { sleep } from '../base/index.ts';

/** How often requests may be made. */
export interface RateLimit {
  readonly perSecond: number;
  /** How many may be made at once after a pause. */
  readonly burst: number;
}

/** Makes callers wait so that they keep to a rate, in the order in which they came. */
export class Pacer {
  readonly #intervalMs: number;
  readonly #headStartMs: number;
  readonly #now: () => number;
  /** When the next one would be due if there were no burst. */
  #dueAt = Number.NEGATIVE_INFINITY;

  constructor(limit: RateLimit, now: () => number = () => performance.now()) {
    this.#intervalMs = 1_000 / limit.perSecond;
    this.#headStartMs = (Math.max(1, limit.burst) - 1) * this.#intervalMs;
    this.#now = now;
  }

  /** The milliseconds that the next caller has to wait; its turn is taken. */
  reserve(): number {
    const now = this.#now();
    const dueAt = Math.max(now, this.#dueAt);
    this.#dueAt = dueAt + this.#intervalMs;
    return Math.max(0, dueAt - this.#headStartMs - now);
  }

  /** Waits for its turn; gives the milliseconds that it took. @throws the signal's reason when aborted */
  async take(signal?: AbortSignal): Promise<number> {
    const waitMs = this.reserve();
    if (waitMs > 0) {
      await sleep(waitMs, signal);
    }
    signal?.throwIfAborted();
    return waitMs;
  }
}
