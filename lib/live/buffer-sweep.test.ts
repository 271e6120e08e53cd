import { PerformanceObserver } from 'node:perf_hooks';
import { expect, test, vi } from 'vitest';
import { until } from '../base/testing.ts';
import { BufferSweep } from './buffer-sweep.ts';

const megabyte = 1024 * 1024;

test('buffers of large answers are freed from time to time, and small answers cost nothing', () => {
  const collect = vi.fn();
  const sweep = new BufferSweep(collect);
  sweep.passed(megabyte);
  expect(collect).not.toHaveBeenCalled();
  sweep.passed(megabyte);
  expect(collect).toHaveBeenCalledTimes(1);
  for (let round = 0; round < 60; round++) {
    sweep.passed(64 * 1024);
  }
  expect(collect).toHaveBeenCalledTimes(2);
});

test('only the young generation is collected', async () => {
  const sweep = new BufferSweep();
  const kinds: unknown[] = [];
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      kinds.push((entry as { detail?: { kind: number } }).detail?.kind);
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  for (let round = 0; round < 10; round++) {
    sweep.passed(4 * megabyte);
  }
  await until(() => expect(kinds.length).toBeGreaterThanOrEqual(10));
  observer.disconnect();
  // 1 is V8's scavenge.
  expect(kinds.filter((kind) => kind === 1).length).toBeGreaterThanOrEqual(10);
  expect('gc' in globalThis && globalThis.gc).toBeFalsy();
});
