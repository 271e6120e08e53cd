/** Exponential back-off with jitter. Times in milliseconds. */
export interface BackoffOptions {
  /** The longest delay after the first failure. Default 100. */
  readonly initialMs?: number;
  /** No delay is longer. Default 5,000. */
  readonly maxMs?: number;
  /** Growth per failure. Default 2. */
  readonly factor?: number;
  /** The part of a delay that is random, 0 to 1. Default 0.5: a delay lies between its half and its whole. */
  readonly jitter?: number;
  /** Source of randomness, from 0 to below 1. Default `Math.random`. */
  readonly random?: () => number;
}

/**
 * The delay in milliseconds after the given number of failures in a row (1 for the first). Jitter only shortens it, so that
 * clients which failed together do not come back together.
 */
export function backoffDelay(failures: number, options: BackoffOptions = {}): number {
  const { initialMs = 100, maxMs = 5_000, factor = 2, jitter = 0.5, random = Math.random } = options;
  const longest = Math.min(maxMs, initialMs * factor ** Math.min(failures - 1, 60));
  return longest * (1 - jitter * random());
}

/** Counts failures in a row and says how long to wait after each. */
export class Backoff {
  readonly #options: BackoffOptions;
  #failures = 0;

  constructor(options: BackoffOptions = {}) {
    this.#options = options;
  }

  /** Failures since the last {@link Backoff.reset}. */
  get failures(): number {
    return this.#failures;
  }

  /** Counts a failure and returns the delay after it, in milliseconds. */
  next(): number {
    this.#failures++;
    return backoffDelay(this.#failures, this.#options);
  }

  /** Starts over, after something succeeded. */
  reset(): void {
    this.#failures = 0;
  }
}
