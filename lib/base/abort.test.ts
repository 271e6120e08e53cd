import { expect, test, vi } from 'vitest';
import { abortable, aborted, becomes, onAbort, sleep, withDeadline } from './index.ts';

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

function changing() {
  let isSo = false;
  const looks = new Set<() => void>();
  return {
    looks,
    isSo: () => isSo,
    subscribe: (look: () => void) => {
      looks.add(look);
      return () => looks.delete(look);
    },
    turn: (value: boolean) => {
      isSo = value;
      for (const look of looks) {
        look();
      }
    },
  };
}

test('what becomes so is seen at once, or as soon as a look shows it, and then nobody looks any more', async () => {
  const { looks, isSo, subscribe, turn } = changing();
  const waited = becomes(isSo, subscribe, 60_000);
  turn(false);
  turn(true);
  expect(await waited).toBe(true);
  expect(await becomes(isSo, subscribe, 60_000)).toBe(true);
  expect(looks.size).toBe(0);
});

test('what does not become so is waited for until the time is over, or the signal is aborted', async () => {
  const { looks, isSo, subscribe } = changing();
  expect(await becomes(isSo, subscribe, 1)).toBe(false);
  const stop = new AbortController();
  const waited = becomes(isSo, subscribe, 60_000, stop.signal);
  stop.abort();
  expect(await waited).toBe(false);
  expect(looks.size).toBe(0);
});
