import { Backoff, type Logger, sleep } from '../base/index.ts';

/**
 * Repeats the attempt until it succeeds. Each failure is logged; the delay after the first is 0.2 s to 0.3 s, the longest 15 s.
 * @throws the attempt's error when it is final or the signal is aborted, the signal's reason when it is aborted during a delay
 */
export async function retryForever<T>(
  what: string,
  attempt: () => Promise<T>,
  options: { signal: AbortSignal; logger: Logger; isFinal?: (error: unknown) => boolean },
): Promise<T> {
  const { signal, logger } = options;
  const backoff = new Backoff({ initialMs: 300, maxMs: 15_000, jitter: 1 / 3 });
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (signal.aborted || options.isFinal?.(error)) {
        throw error;
      }
      const waitMs = backoff.next();
      logger.warn({ error, retryInMs: Math.round(waitMs) }, `cannot ${what} yet`);
      await sleep(waitMs, signal);
      signal.throwIfAborted();
    }
  }
}
