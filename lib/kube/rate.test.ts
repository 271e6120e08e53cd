import { expect, test } from 'vitest';
import { Pacer } from './rate.ts';

test('a burst passes at once, then one per interval; a pause earns a new burst', () => {
  let now = 1_000;
  const pacer = new Pacer({ perSecond: 10, burst: 3 }, () => now);
  const waits = Array.from({ length: 6 }, () => Math.round(pacer.reserve()));
  expect(waits).toEqual([0, 0, 0, 100, 200, 300]);
  now += 300;
  expect(Math.round(pacer.reserve())).toBe(100);
  now += 60_000;
  expect(Array.from({ length: 4 }, () => Math.round(pacer.reserve()))).toEqual([0, 0, 0, 100]);
});

test('over a longer time the rate is kept, whatever the demand', () => {
  let now = 0;
  const pacer = new Pacer({ perSecond: 50, burst: 5 }, () => now);
  let passed = 0;
  while (now < 10_000) {
    const wait = pacer.reserve();
    now += wait;
    passed++;
  }
  expect(passed).toBeGreaterThanOrEqual(500);
  expect(passed).toBeLessThanOrEqual(506);
});

test('waiting ends with the signal', async () => {
  const pacer = new Pacer({ perSecond: 0.001, burst: 1 });
  await pacer.take();
  const stop = new AbortController();
  const waiting = pacer.take(stop.signal);
  stop.abort(new Error('enough'));
  await expect(waiting).rejects.toThrow('enough');
});
