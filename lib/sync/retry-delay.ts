import { backoffDelay } from '../base/index.ts';

/** A growing delay between attempts: `baseMs * factor^(attempt-1)`, never above `capMs`, plus up to `jitter` of itself. */
export interface RetryDelays {
  readonly baseMs: number;
  readonly factor: number;
  readonly capMs: number;
  /** 0: none, 1: up to twice the delay. */
  readonly jitter: number;
}

/**
 * The delay in milliseconds after the given attempt (the first is 1). Jitter lengthens it, because the protocol names the
 * shortest time after which an event may be sent again.
 * @param random a number in [0, 1), as of Math.random
 */
export function retryDelay({ baseMs, factor, capMs, jitter }: RetryDelays, attempt: number, random: number): number {
  return backoffDelay(attempt, {
    initialMs: baseMs * (1 + jitter),
    maxMs: capMs * (1 + jitter),
    factor,
    jitter: jitter / (1 + jitter),
    random: () => 1 - random,
  });
}
