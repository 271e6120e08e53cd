import { expect, test } from 'vitest';
import { ConnectTimeout } from './connect-timeout.ts';

test('who gave up waits longer the next time, up to a minute, until it was worth it', () => {
  const timeout = new ConnectTimeout();
  expect([timeout.connectMs, timeout.loginMs]).toEqual([15_000, 30_000]);
  timeout.failedAfter(20);
  expect(timeout.connectMs).toBe(15_000);
  timeout.failedAfter(15_001);
  expect([timeout.connectMs, timeout.loginMs]).toEqual([30_000, 60_000]);
  timeout.failedAfter(15_001);
  expect(timeout.connectMs).toBe(30_000);
  for (let attempt = 0; attempt < 5; attempt++) {
    timeout.failedAfter(timeout.connectMs);
  }
  expect(timeout.connectMs).toBe(60_000);
  timeout.succeeded();
  expect(timeout.connectMs).toBe(15_000);
});
