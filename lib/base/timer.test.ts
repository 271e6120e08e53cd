import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { after, every, sleep, timeoutSignal, withDeadline } from './index.ts';

const day = 86_400_000;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test.each([20, 30, 100])('what is to happen in %s days happens then, not at once', async (days) => {
  const run = vi.fn();
  after(days * day, run);
  await vi.advanceTimersByTimeAsync(days * day - 1);
  expect(run).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(run).toHaveBeenCalledOnce();
});

test('what is cancelled does not happen', async () => {
  const run = vi.fn();
  const cancel = after(60 * day, run);
  await vi.advanceTimersByTimeAsync(40 * day);
  cancel();
  await vi.advanceTimersByTimeAsync(40 * day);
  expect(run).not.toHaveBeenCalled();
});

test('a sleep and a deadline of 30 days last', async () => {
  const woken = vi.fn();
  void sleep(30 * day).then(woken);
  const over = vi.fn();
  const never = Promise.withResolvers<void>();
  void withDeadline(undefined, 30 * day, (signal) => {
    signal.addEventListener('abort', over);
    return never.promise;
  });
  await vi.advanceTimersByTimeAsync(29 * day);
  expect(woken).not.toHaveBeenCalled();
  expect(over).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(day);
  expect(woken).toHaveBeenCalledOnce();
  expect(over).toHaveBeenCalledOnce();
  never.resolve();
});

test('what is done every 30 days is not done every millisecond', async () => {
  const run = vi.fn();
  const end = every(30 * day, run);
  await vi.advanceTimersByTimeAsync(day);
  expect(run).not.toHaveBeenCalled();
  end();
});

test.each([0.5, 30 * day, 500 * day])('a signal that times out in %s ms is not aborted yet', (ms) => {
  vi.useRealTimers();
  expect(timeoutSignal(ms).aborted).toBe(false);
});
