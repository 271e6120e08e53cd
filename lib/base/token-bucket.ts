import { sleep } from './abort.ts';

/** A limit on how often, or how much, something may happen. */
export interface RateLimit {
  readonly perSecond: number;
  /** How much may happen at once after a pause. */
  readonly burst: number;
}

/**
 * A token bucket: it holds up to `burst` tokens and gains `perSecond` of them a second. Whoever finds a token may take more
 * than there are; the next one waits until the debt is paid. So an amount above the burst passes too, and the rate holds.
 */
export class TokenBucket {
  readonly #intervalMs: number;
  readonly #headStartMs: number;
  readonly #now: () => number;
  /** When the next token would be due without a burst. */
  #dueAt = Number.NEGATIVE_INFINITY;

  /** @param now milliseconds of a clock that never goes back */
  constructor(limit: RateLimit, now: () => number = () => performance.now()) {
    this.#intervalMs = 1_000 / limit.perSecond;
    this.#headStartMs = (Math.max(1, limit.burst) - 1) * this.#intervalMs;
    this.#now = now;
  }

  /** Takes tokens and returns the milliseconds until they may be used. Callers are served in the order of their calls. */
  reserve(tokens = 1): number {
    const { waitMs } = this;
    this.#dueAt = Math.max(this.#now(), this.#dueAt) + tokens * this.#intervalMs;
    return waitMs;
  }

  /** Takes tokens if they may be used at once; returns false, and takes none, if they may not. */
  tryTake(tokens = 1): boolean {
    if (this.waitMs > 0) {
      return false;
    }
    this.reserve(tokens);
    return true;
  }

  /** Takes tokens, waits until they may be used, and returns the milliseconds that it took. @throws the signal's reason when aborted */
  async take(tokens = 1, signal?: AbortSignal): Promise<number> {
    const waitMs = this.reserve(tokens);
    if (waitMs > 0) {
      await sleep(waitMs, signal);
    }
    signal?.throwIfAborted();
    return waitMs;
  }

  /** Milliseconds until a token is there; 0 when there is one. */
  get waitMs(): number {
    const waitMs = this.#dueAt - this.#headStartMs - this.#now();
    // Sums of fractions are not exact.
    return waitMs > 1e-6 ? waitMs : 0;
  }
}
