import { expect, test } from 'vitest';
import { systemClock } from './index.ts';

test('nothing runs before its time, not even by a fraction of a millisecond', async () => {
  const early = await Promise.all(
    Array.from({ length: 500 }, async (_, i) => {
      const due = systemClock.now() + 1 + i / 100;
      await new Promise<void>((resolve) => systemClock.after(due - systemClock.now(), resolve));
      return systemClock.now() < due;
    }),
  );
  expect(early.filter(Boolean)).toEqual([]);
});

test('what is cancelled does not run', async () => {
  const ran: string[] = [];
  systemClock.after(1, () => ran.push('cancelled'))();
  await new Promise<void>((resolve) => systemClock.after(5, resolve));
  expect(ran).toEqual([]);
});
