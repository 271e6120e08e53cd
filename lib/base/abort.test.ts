import { expect, test, vi } from 'vitest';
import { abortable, aborted, onAbort, sleep, withDeadline } from './index.ts';

const reason = new Error('over');

function abortedSignal(): AbortSignal {
  return AbortSignal.abort(reason);
}

test('onAbort calls once: at the abort, or at once when the signal is aborted already', () => {
  const controller = new AbortController();
  const run = vi.fn();
  onAbort(controller.signal, run);
  expect(run).not.toHaveBeenCalled();
  controller.abort();
  expect(run).toHaveBeenCalledOnce();
  onAbort(controller.signal, run);
  expect(run).toHaveBeenCalledTimes(2);
});

test('a listener that was removed is not called', () => {
  const controller = new AbortController();
  const run = vi.fn();
  onAbort(controller.signal, run)();
  controller.abort();
  expect(run).not.toHaveBeenCalled();
});

test('aborted resolves at the abort, or at once when the signal is aborted already', async () => {
  const controller = new AbortController();
  let isOver = false;
  const waiting = aborted(controller.signal).then(() => {
    isOver = true;
  });
  await Promise.resolve();
  expect(isOver).toBe(false);
  controller.abort();
  await waiting;
  await aborted(controller.signal);
});

test('sleep ends without an error when it is aborted', async () => {
  const controller = new AbortController();
  const sleeping = sleep(3_600_000, controller.signal);
  controller.abort(reason);
  await sleeping;
  await sleep(3_600_000, controller.signal);
});

test('abortable settles as the promise does, or rejects with the reason of the abort', async () => {
  const { signal } = new AbortController();
  await expect(abortable(Promise.resolve(1), signal)).resolves.toBe(1);
  await expect(abortable(Promise.reject(new Error('failed')), signal)).rejects.toThrow('failed');
  await expect(abortable(new Promise(() => undefined), abortedSignal())).rejects.toBe(reason);
});

test('withDeadline passes on the abort of the signal and of the deadline', async () => {
  const reasonOf = async (signal: AbortSignal) => {
    await aborted(signal);
    return signal.reason;
  };
  expect(await withDeadline(abortedSignal(), 3_600_000, reasonOf)).toBe(reason);
  expect(await withDeadline(undefined, 1, reasonOf)).toMatchObject({ name: 'TimeoutError' });
});
