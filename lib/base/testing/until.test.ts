import { expect, test, vi } from 'vitest';
import { until } from './until.ts';

const brief = { timeoutMs: 20 };

test('waits until an assertion passes', async () => {
  let count = 0;
  await until(() => expect(++count).toBe(3));
  expect(count).toBe(3);
});

test('waits until a condition is true', async () => {
  let count = 0;
  await until(async () => ++count === 3);
  expect(count).toBe(3);
});

test('waits until a question has an answer, whatever it answered before', async () => {
  const answers = [undefined, null, false, new Error('not yet'), 0];
  const ask = () => {
    const answer = answers.shift();
    if (answer instanceof Error) {
      throw answer;
    }
    return answer as number | undefined;
  };
  expect(await until('a number', ask)).toBe(0);
});

test('shows a condition, or an assertion and its error, that did not come true', async () => {
  let isThere = false;
  await expect(until(() => isThere, brief)).rejects.toThrow(/^not within 0.02 s: \(\) => isThere$/);
  const failed = await until(() => expect(isThere).toBe(true), brief).catch((error) => error);
  expect(failed.message).toMatch(/^not within 0.02 s: .*toBe\(true\)\nexpected false to be true/);
  expect(failed.cause).toMatchObject({ expected: true, actual: false });
  isThere = true;
  await until(() => isThere, brief);
});

test('names what did not come, with the last error and the details', async () => {
  const ask = () => Promise.reject(new Error('connection refused'));
  const waiting = until('the object', ask, { ...brief, details: () => 'the log' });
  await expect(waiting).rejects.toThrow(/^not within 0.02 s: the object\nconnection refused\nthe log$/);
});

test('points at the test, not into itself', async () => {
  const failed = await until(() => false, brief).catch((error) => error);
  expect(failed.stack).toContain('until.test.ts');
});

test('ends when its signal is aborted', async () => {
  const stop = new AbortController();
  const waiting = until(() => false, { signal: stop.signal });
  stop.abort(new Error('over'));
  await expect(waiting).rejects.toThrow('over');
});

test('takes real time where timers are fake', async () => {
  vi.useFakeTimers();
  try {
    let count = 0;
    await until(() => ++count === 3);
  } finally {
    vi.useRealTimers();
  }
});
