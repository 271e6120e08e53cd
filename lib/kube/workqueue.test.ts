import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { until } from '../base/testing.ts';
import { WorkQueue } from './workqueue.ts';

let stop: AbortController;
beforeEach(() => {
  stop = new AbortController();
});
afterEach(() => {
  stop.abort();
  vi.useRealTimers();
});

/** A handler whose runs end when the test ends them. */
function manualHandler() {
  const runs: { key: string; end: () => void; fail: (error: Error) => void }[] = [];
  const handler = (key: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    runs.push({ key, end: resolve, fail: reject });
    return promise;
  };
  return { runs, handler, keys: () => runs.map((run) => run.key) };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test('a key that waits is worked on once, in the order of arrival', async () => {
  const done: string[] = [];
  const queue = new WorkQueue({ name: 'q', handler: async (key) => void done.push(key) });
  for (const key of ['a', 'b', 'a', 'c', 'b']) {
    queue.add(key);
  }
  expect(queue.length).toBe(3);
  void queue.run(stop.signal);
  await until(() => expect(queue.isIdle).toBe(true));
  expect(done).toEqual(['a', 'b', 'c']);
});

test('a key is never worked on twice at a time, and runs again when added meanwhile', async () => {
  const { runs, handler, keys } = manualHandler();
  const queue = new WorkQueue({ name: 'q', handler, concurrency: 3 });
  void queue.run(stop.signal);
  queue.add('a');
  queue.add('a');
  queue.add('a');
  queue.add('b');
  await turn();
  expect(keys()).toEqual(['a', 'b']);
  runs[0]?.end();
  await turn();
  expect(keys()).toEqual(['a', 'b', 'a']);
  runs[2]?.end();
  await turn();
  expect(keys()).toEqual(['a', 'b', 'a']);
});

test('no more keys than the concurrency are worked on at a time', async () => {
  const { runs, handler } = manualHandler();
  const queue = new WorkQueue({ name: 'q', handler, concurrency: 2 });
  void queue.run(stop.signal);
  for (const key of ['a', 'b', 'c', 'd']) {
    queue.add(key);
  }
  await turn();
  expect(runs).toHaveLength(2);
  expect(queue.stats.active).toBe(2);
  runs[0]?.end();
  await turn();
  expect(runs).toHaveLength(3);
});

test('failures back off exponentially up to the cap, are reported, and one success forgets them', async () => {
  vi.useFakeTimers();
  const startedAt: number[] = [];
  const failures: number[] = [];
  let fails = 6;
  const queue = new WorkQueue({
    name: 'q',
    backoff: { initialMs: 100, maxMs: 1000, random: () => 0 },
    handler: async () => {
      startedAt.push(Date.now());
      if (fails-- > 0) {
        throw new Error('not yet');
      }
    },
    onFailure: (_key, count) => failures.push(count),
  });
  void queue.run(stop.signal);
  queue.add('a');
  await vi.advanceTimersByTimeAsync(10_000);
  expect(startedAt.slice(1).map((at, i) => at - (startedAt[i] ?? 0))).toEqual([100, 200, 400, 800, 1000, 1000]);
  expect(failures).toEqual([1, 2, 3, 4, 5, 6]);
  expect(queue.failuresOf('a')).toBe(0);
  expect(queue.stats).toEqual({ done: 1, failed: 6, retrying: 0, active: 0 });
});

test('jitter spreads the delays over the upper half', async () => {
  vi.useFakeTimers();
  let runs = 0;
  const queue = new WorkQueue({
    name: 'q',
    backoff: { initialMs: 100, random: () => 0.999 },
    handler: async () => {
      if (++runs === 1) {
        throw new Error('not yet');
      }
    },
  });
  void queue.run(stop.signal);
  queue.add('a');
  await vi.advanceTimersByTimeAsync(49);
  expect(runs).toBe(1);
  await vi.advanceTimersByTimeAsync(3);
  expect(runs).toBe(2);
});

test('a key in back-off runs at once when added', async () => {
  vi.useFakeTimers();
  let runs = 0;
  const queue = new WorkQueue({
    name: 'q',
    backoff: { initialMs: 60_000 },
    handler: async () => {
      if (++runs === 1) {
        throw new Error('not yet');
      }
    },
  });
  void queue.run(stop.signal);
  queue.add('a');
  await vi.advanceTimersByTimeAsync(0);
  queue.add('a');
  await vi.advanceTimersByTimeAsync(0);
  expect(runs).toBe(2);
  await vi.advanceTimersByTimeAsync(120_000);
  expect(runs).toBe(2);
});

test('the earliest of several delayed requests counts, and a run in between does not cancel them', async () => {
  vi.useFakeTimers();
  const at: number[] = [];
  const start = Date.now();
  const queue = new WorkQueue({ name: 'q', handler: async () => void at.push(Date.now() - start) });
  void queue.run(stop.signal);
  queue.addAfter('a', 500);
  queue.addAfter('a', 200);
  queue.addAfter('a', 900);
  queue.add('a');
  await vi.advanceTimersByTimeAsync(2000);
  expect(at).toEqual([0, 200]);
});

test('a handler may ask for another run later', async () => {
  vi.useFakeTimers();
  let runs = 0;
  const queue = new WorkQueue({
    name: 'q',
    handler: async () => (++runs < 3 ? { requeueAfterMs: 1000 } : undefined),
  });
  void queue.run(stop.signal);
  queue.add('a');
  await vi.advanceTimersByTimeAsync(1000);
  expect(runs).toBe(2);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(runs).toBe(3);
});

test('stopping aborts the running handlers, waits for them, and starts no other', async () => {
  let told = false;
  const end = Promise.withResolvers<void>();
  const started: string[] = [];
  const queue = new WorkQueue({
    name: 'q',
    handler: async (key, signal) => {
      started.push(key);
      signal.addEventListener('abort', () => {
        told = true;
      });
      await end.promise;
    },
  });
  let isStopped = false;
  const running = queue.run(stop.signal).then(() => {
    isStopped = true;
  });
  queue.add('a');
  queue.add('b');
  queue.addAfter('c', 60_000);
  await turn();
  stop.abort();
  await turn();
  expect(told).toBe(true);
  expect(isStopped).toBe(false);
  end.resolve();
  await running;
  queue.add('d');
  expect(started).toEqual(['a']);
  expect(queue.isIdle).toBe(true);
});

test('a queue that is stopped before it works ends at once', async () => {
  const queue = new WorkQueue({ name: 'q', handler: async () => undefined });
  queue.add('a');
  stop.abort();
  await queue.run(stop.signal);
  await expect(queue.run(stop.signal)).rejects.toThrow('the work queue q can run only once');
});
