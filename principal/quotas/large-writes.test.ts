import { afterEach, expect, test, vi } from 'vitest';
import { LargeWrites } from './large-writes.ts';

const large = 1024 * 1024;

afterEach(() => {
  vi.useRealTimers();
});

/** Writes that take 100 ms each, and when they began and ended, in milliseconds. */
function start() {
  vi.useFakeTimers();
  const writes = new LargeWrites();
  const began = performance.now();
  const log: string[] = [];
  const note = (text: string) => log.push(`${text} ${Math.round(performance.now() - began)}`);
  const write = (agent: string, name: string, size = large, signal = new AbortController().signal) =>
    writes.run(
      agent,
      size,
      async () => {
        note(`${name} begins`);
        await new Promise((resolve) => setTimeout(resolve, 100));
        if (name === 'fails') {
          throw new Error('refused');
        }
        return name;
      },
      signal,
    );
  return { write, log };
}

test('large writes of an agent come one after the other, with rests; small ones and those of others do not wait', async () => {
  const { write, log } = start();
  const results = Promise.all([write('a', '1'), write('a', '2'), write('a', 'small', 1000), write('b', 'other')]);
  await vi.advanceTimersByTimeAsync(100);
  expect(log).toEqual(['small begins 0', '1 begins 0', 'other begins 0']);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(log.slice(3)).toEqual(['2 begins 400']);
  expect(await results).toEqual(['1', '2', 'small', 'other']);
});

test('the result does not wait for the rest, and a failure is passed on and holds up nobody', async () => {
  const { write, log } = start();
  const failed = write('a', 'fails').catch((error: Error) => error.message);
  const next = write('a', 'next');
  await vi.advanceTimersByTimeAsync(100);
  expect(await failed).toBe('refused');
  await vi.advanceTimersByTimeAsync(400);
  expect(log).toEqual(['fails begins 0', 'next begins 400']);
  expect(await next).toBe('next');
});

test('a write that is aborted while it waits is not sent', async () => {
  const { write, log } = start();
  const stop = new AbortController();
  void write('a', '1');
  const waiting = write('a', '2', large, stop.signal).catch((error: Error) => error.message);
  stop.abort(new Error('gone'));
  expect(await waiting).toBe('gone');
  void write('a', '3');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(log).toEqual(['1 begins 0', '3 begins 400']);
});
