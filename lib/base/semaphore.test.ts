import { describe, expect, test } from 'vitest';
import { KeyedMutex } from './keyed-mutex.ts';
import { Semaphore } from './semaphore.ts';

/** Work that ends when it is told to. */
function job() {
  const { promise, resolve } = Promise.withResolvers<void>();
  let isRunning = false;
  return {
    work: async () => {
      isRunning = true;
      await promise;
      isRunning = false;
    },
    end: resolve,
    get isRunning() {
      return isRunning;
    },
  };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

test('a keyed mutex runs one piece of work per key, the next also when it failed', async () => {
  const mutex = new KeyedMutex();
  const [a, b, other] = [job(), job(), job()];
  const failed = mutex.run('x', async () => {
    await a.work();
    throw new Error('failed');
  });
  const next = mutex.run('x', b.work);
  const beside = mutex.run('y', other.work);
  await settle();
  expect([a.isRunning, b.isRunning, other.isRunning]).toEqual([true, false, true]);
  a.end();
  await expect(failed).rejects.toThrow('failed');
  await settle();
  expect(b.isRunning).toBe(true);
  b.end();
  other.end();
  await Promise.all([next, beside]);
});

describe('a semaphore', () => {
  test('lets as many run as it has places, in the order of the calls', async () => {
    const semaphore = new Semaphore(2);
    const jobs = [job(), job(), job(), job()];
    const runs = jobs.map(({ work }) => semaphore.run(work));
    await settle();
    expect(jobs.map(({ isRunning }) => isRunning)).toEqual([true, true, false, false]);
    jobs[1]?.end();
    await settle();
    expect(jobs.map(({ isRunning }) => isRunning)).toEqual([true, false, true, false]);
    for (const { end } of jobs) {
      end();
    }
    await Promise.all(runs);
  });

  test('forgets who stops waiting, and gives the place to the next', async () => {
    const semaphore = new Semaphore(1);
    const [first, second, third] = [job(), job(), job()];
    const stop = new AbortController();
    const running = semaphore.run(first.work);
    const stopped = semaphore.run(second.work, stop.signal);
    const waiting = semaphore.run(third.work);
    stop.abort(new Error('stopped'));
    await expect(stopped).rejects.toThrow('stopped');
    first.end();
    await settle();
    expect([second.isRunning, third.isRunning]).toEqual([false, true]);
    third.end();
    await Promise.all([running, waiting]);
  });
});
