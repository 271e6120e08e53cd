import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../base/index.ts';
import { retryDelay } from '../sync/index.ts';

/** Repeats what fails until it succeeds or is aborted, waiting 0.2 s to 10 s in between; each failure is logged. */
export async function retryForever<T>(
  what: string,
  attempt: () => Promise<T>,
  options: { signal: AbortSignal; logger: Logger; isFinal?: (error: unknown) => boolean },
): Promise<T> {
  const { signal, logger } = options;
  for (let failures = 1; ; failures++) {
    try {
      return await attempt();
    } catch (error) {
      if (signal.aborted || options.isFinal?.(error)) {
        throw error;
      }
      const backoff = { baseMs: 200, factor: 2, capMs: 10_000, jitter: 0.5 };
      const wait = retryDelay(backoff, failures, Math.random());
      logger.warn({ error, retryInMs: Math.round(wait) }, `cannot ${what} yet`);
      await delay(wait, undefined, { signal });
    }
  }
}
