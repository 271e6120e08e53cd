import { expect, test } from 'vitest';
import { TokenBucket } from './token-bucket.ts';

test('a burst passes at once, then one per interval; a pause earns a new burst', () => {
  let now = 1_000;
  const bucket = new TokenBucket({ perSecond: 10, burst: 3 }, () => now);
  const waits = Array.from({ length: 6 }, () => Math.round(bucket.reserve()));
  expect(waits).toEqual([0, 0, 0, 100, 200, 300]);
  now += 300;
  expect(Math.round(bucket.reserve())).toBe(100);
  now += 60_000;
  expect(Array.from({ length: 4 }, () => Math.round(bucket.reserve()))).toEqual([0, 0, 0, 100]);
});

test('over a longer time the rate is kept, whatever the demand', () => {
  let now = 0;
  const bucket = new TokenBucket({ perSecond: 50, burst: 5 }, () => now);
  let passed = 0;
  while (now < 10_000) {
    const wait = bucket.reserve();
    now += wait;
    passed++;
  }
  expect(passed).toBeGreaterThanOrEqual(500);
  expect(passed).toBeLessThanOrEqual(506);
});

test('waiting ends with the signal', async () => {
  const bucket = new TokenBucket({ perSecond: 0.001, burst: 1 });
  await bucket.take();
  const stop = new AbortController();
  const waiting = bucket.take(1, stop.signal);
  stop.abort(new Error('enough'));
  await expect(waiting).rejects.toThrow('enough');
});

test('an amount above the burst passes when the bucket is not empty, and is paid for by those that follow', () => {
  let now = 0;
  const bucket = new TokenBucket({ perSecond: 10, burst: 20 }, () => now);
  expect(bucket.tryTake(100)).toBe(true);
  expect(bucket.tryTake()).toBe(false);
  expect(Math.round(bucket.reserve())).toBe(8_100);
  now += 8_200;
  expect(bucket.tryTake()).toBe(true);
});

test('a refused attempt costs nothing', () => {
  let now = 0;
  const bucket = new TokenBucket({ perSecond: 1, burst: 1 }, () => now);
  expect(bucket.tryTake()).toBe(true);
  for (let attempt = 0; attempt < 100; attempt++) {
    expect(bucket.tryTake()).toBe(false);
  }
  now += 1_000;
  expect(bucket.tryTake()).toBe(true);
});
