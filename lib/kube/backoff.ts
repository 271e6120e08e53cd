/** Exponential back-off with jitter. Times in milliseconds. */
export interface BackoffOptions {
  /** Delay after the first failure. */
  initialMs?: number;
  /** No delay is longer. */
  maxMs?: number;
  /** Growth per failure. Default 2. */
  factor?: number;
  /** Source of jitter, from 0 to below 1; tests replace it. */
  random?: () => number;
}

/**
 * Delay after the given number of failures in a row (1 for the first). Jitter takes away up to half, so that clients
 * which failed together do not come back together.
 */
export function backoffDelay(failures: number, options: BackoffOptions = {}): number {
  const { initialMs = 100, maxMs = 5_000, factor = 2, random = Math.random } = options;
  const full = Math.min(maxMs, initialMs * factor ** Math.min(failures - 1, 60));
  return full * (1 - random() / 2);
}
