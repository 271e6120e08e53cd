import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Observes the keys of a work queue. */
interface QueueObserver {
  added(key: string): void;
  started(key: string): void;
  ended(key: string): void;
  retried(key: string): void;
}

/** Those of Kubernetes's own client. */
const buckets = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10];
const now = () => performance.now() / 1000;

/**
 * Counts and times what goes through work queues, under the names of Kubernetes's own client after a prefix
 * (`argocd_principal`). The result makes the observer of the queue of a name.
 */
export function queueMetrics(registry: Registry, prefix: string): (queue: string) => QueueObserver {
  const common = (name: string, help: string) => ({
    name: `${prefix}_workqueue_${name}`,
    help,
    labelNames: ['queue'],
    registers: [registry],
  });
  const queues = new Map<string, { readonly waiting: Map<string, number>; readonly active: Map<string, number> }>();
  const gauge = (name: string, help: string, read: (waiting: number, ages: readonly number[]) => number) =>
    new Gauge({
      ...common(name, help),
      collect() {
        for (const [queue, { waiting, active }] of queues) {
          const ages = Array.from(active.values(), (since) => now() - since);
          this.set({ queue }, read(waiting.size, ages));
        }
      },
    });
  gauge('depth', 'Keys that wait in the queue', (waiting) => waiting);
  gauge('unfinished_work_seconds', 'Sum of the seconds for which the current keys have been processed', (_, ages) =>
    ages.reduce((sum, age) => sum + age, 0),
  );
  gauge(
    'longest_running_processor_seconds',
    'Longest time in seconds for which a current key has been processed',
    (_, ages) => Math.max(0, ...ages),
  );
  const adds = new Counter(common('adds_total', 'Keys added to the queue'));
  const retries = new Counter(common('retries_total', 'Keys retried after a failure'));
  const waits = new Histogram({
    ...common('queue_duration_seconds', 'Seconds for which keys waited in the queue'),
    buckets,
  });
  const works = new Histogram({ ...common('work_duration_seconds', 'Seconds for which keys were processed'), buckets });
  return (queue) => {
    const waiting = new Map<string, number>();
    const active = new Map<string, number>();
    queues.set(queue, { waiting, active });
    return {
      added(key) {
        adds.inc({ queue });
        waiting.set(key, now());
      },
      started(key) {
        waits.observe({ queue }, now() - (waiting.get(key) ?? now()));
        waiting.delete(key);
        active.set(key, now());
      },
      ended(key) {
        works.observe({ queue }, now() - (active.get(key) ?? now()));
        active.delete(key);
      },
      retried: () => retries.inc({ queue }),
    };
  };
}
