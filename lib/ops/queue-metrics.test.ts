import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { until } from '../base/testing.ts';
import { WorkQueue } from '../kube/index.ts';
import { queueMetrics } from './index.ts';

test('what goes through a queue is counted and timed', async () => {
  const registry = new Registry();
  const observerOf = queueMetrics(registry, 'argocd_principal');
  const stop = new AbortController();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  let failures = 1;
  const queue = new WorkQueue({
    name: 'test',
    handler: async (key) => {
      if (key === 'slow') {
        await released;
      }
      if (key === 'bad' && failures-- > 0) {
        throw new Error('once');
      }
    },
    backoff: { initialMs: 1, maxMs: 1 },
    observer: observerOf('test'),
  });
  const series = async () => {
    const text = await registry.metrics();
    return (name: string) =>
      Number(new RegExp(`^argocd_principal_workqueue_${name}\\{queue="test"\\} (.*)$`, 'm').exec(text)?.[1]);
  };
  for (const key of ['slow', 'bad', 'bad', 'good']) {
    queue.add(key);
  }
  let read = await series();
  expect(read('depth')).toBe(3);
  expect(read('adds_total')).toBe(3);
  const running = queue.run(stop.signal);
  queue.add('slow');
  await until(async () => (await series())('longest_running_processor_seconds') > 0.01);
  read = await series();
  expect(read('depth')).toBe(3);
  expect(read('unfinished_work_seconds')).toBeGreaterThan(0.01);
  release();
  await until(() => queue.isIdle);
  read = await series();
  expect(read('depth')).toBe(0);
  expect(read('unfinished_work_seconds')).toBe(0);
  expect(read('retries_total')).toBe(1);
  // slow twice, bad twice, good once
  expect(read('adds_total')).toBe(5);
  expect(read('work_duration_seconds_count')).toBe(5);
  expect(read('queue_duration_seconds_count')).toBe(5);
  stop.abort();
  await running;
});
