import type { EventRecorder, WorkQueue } from '../../lib/kube/index.ts';

/** What runs queues over caches. */
export interface QueueRun {
  readonly caches: { run(signal: AbortSignal): Promise<unknown>; synced(signal: AbortSignal): Promise<unknown> };
  readonly queues: readonly WorkQueue[];
  /** Closed at the end. */
  readonly events: EventRecorder;
  /** Called when the caches are complete, before work begins. */
  readonly begin: (signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
}

/**
 * Fills the caches and works through the queues until aborted. When anything fails, all of it ends.
 * @throws what failed; nothing when the signal was aborted
 */
export async function runQueues({ caches, queues, events, begin, signal }: QueueRun): Promise<void> {
  const stop = new AbortController();
  const stopping = AbortSignal.any([signal, stop.signal]);
  const filling = caches.run(stopping);
  try {
    await caches.synced(stopping);
    await begin(stopping);
    await Promise.all(queues.map((queue) => queue.run(stopping)));
  } catch (error) {
    if (!signal.aborted) {
      throw error;
    }
  } finally {
    stop.abort();
    await filling;
    await events.close();
  }
}

/** Whether nothing is under way or due in any of these queues. What comes back at a set time does not count. */
export function areIdle(queues: readonly WorkQueue[]): boolean {
  return queues.every((queue) => queue.length + queue.stats.active + queue.stats.retrying === 0);
}
