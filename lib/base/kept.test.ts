import { expect, test } from 'vitest';
import { keptFor } from './index.ts';

test('all who ask while it is made, and shortly after, share it; a failure is not kept', async () => {
  let now = 0;
  let made = 0;
  let next = Promise.withResolvers<string>();
  const kept = keptFor(
    1_000,
    () => {
      made++;
      return next.promise;
    },
    () => now,
  );
  const first = [kept(), kept()];
  // It takes longer than it is good for.
  now = 5_000;
  first.push(kept());
  next.resolve('a');
  expect([await Promise.all(first), made]).toEqual([['a', 'a', 'a'], 1]);
  next = Promise.withResolvers<string>();
  next.resolve('b');
  expect([await kept(), await kept(), made]).toEqual(['b', 'b', 2]);
  now += 999;
  await kept();
  expect(made).toBe(2);
  now += 1;
  next = Promise.withResolvers<string>();
  next.reject(new Error('no'));
  await expect(kept()).rejects.toThrow('no');
  next = Promise.withResolvers<string>();
  next.resolve('c');
  expect([await kept(), made]).toEqual(['c', 4]);
});
