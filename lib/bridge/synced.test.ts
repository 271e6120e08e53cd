import { expect, test } from 'vitest';
import { allSynced } from './index.ts';

const { signal } = new AbortController();
const ready = { synced: async () => undefined };
const never = {
  synced: (aborted?: AbortSignal) =>
    new Promise<void>((_, reject) => aborted?.addEventListener('abort', () => reject(aborted.reason))),
};

test('tells what it waits for, and ends when all is there', async () => {
  const heard: (readonly string[])[] = [];
  await allSynced(
    { Secrets: ready, Applications: ready },
    { timeoutMs: 1_000, signal, advice: '', waiting: (missing) => heard.push(missing) },
  );
  expect(heard).toEqual([['Secrets', 'Applications'], ['Applications'], []]);
});

test('what is not there in time is named with the advice', async () => {
  const waiting = allSynced({ Secrets: ready, Applications: never }, { timeoutMs: 20, signal, advice: 'look there' });
  await expect(waiting).rejects.toThrow('Applications could not be listed within 20ms: look there');
});

test('the reason why a list fails is part of the error', async () => {
  const failing = { ...never, stats: { problem: 'the CustomResourceDefinition is missing' } };
  const waiting = allSynced({ Applications: failing }, { timeoutMs: 20, signal, advice: 'look there' });
  await expect(waiting).rejects.toThrow('Applications (the CustomResourceDefinition is missing) could not be listed');
});

test('an end from outside is no lateness', async () => {
  const stop = new AbortController();
  const waiting = allSynced({ Secrets: never }, { timeoutMs: 60_000, signal: stop.signal, advice: '' });
  stop.abort(new Error('stopped'));
  await expect(waiting).rejects.toThrow('stopped');
});
