import type { EventRecorder, WorkQueue } from '../../lib/kube/index.ts';

/** Caches, queues and Events of one run. */
export interface QueueRun {
  readonly caches: { run(signal: AbortSignal): Promise<unknown>; synced(signal: AbortSignal): Promise<unknown> };
  readonly queues: readonly WorkQueue[];
  /** Closed at the end of the run. */
  readonly events: EventRecorder;
  /** Called when the caches are complete and before the queues start. */
  readonly begin: (signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
}

/**
 * Fills the caches and runs the queues until aborted. The failure of any part ends all parts.
 * @throws the first failure; nothing when the signal was aborted
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

/** Whether no reconcile is running or due in any of these queues. Reconciles at a set later time do not count. */
export function areIdle(queues: readonly WorkQueue[]): boolean {
  return queues.every((queue) => queue.length + queue.stats.active + queue.stats.retrying === 0);
}
