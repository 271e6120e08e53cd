import { expect, test } from 'vitest';
import { Patience } from './connect-timeout.ts';

test('who gave up waits longer the next time, up to a minute, until it was worth it', () => {
  const patience = new Patience();
  expect([patience.connectMs, patience.loginMs]).toEqual([15_000, 30_000]);
  patience.failedAfter(20);
  expect(patience.connectMs).toBe(15_000);
  patience.failedAfter(15_001);
  expect([patience.connectMs, patience.loginMs]).toEqual([30_000, 60_000]);
  patience.failedAfter(15_001);
  expect(patience.connectMs).toBe(30_000);
  for (let attempt = 0; attempt < 5; attempt++) {
    patience.failedAfter(patience.connectMs);
  }
  expect(patience.connectMs).toBe(60_000);
  patience.rewarded();
  expect(patience.connectMs).toBe(15_000);
});
