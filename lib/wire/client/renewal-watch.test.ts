import { X509Certificate } from 'node:crypto';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createTestCa, type TestCertificate } from '../testing/certificates.ts';
import { RenewalWatch } from './renewal-watch.ts';

let used: TestCertificate;
let renewed: TestCertificate;
/** When the last tenth of the certificate's life begins. */
let lastTenth: number;

beforeEach(async () => {
  const ca = await createTestCa();
  [used, renewed] = await Promise.all([ca.issue({ subject: 'CN=one' }), ca.issue({ subject: 'CN=one' })]);
  const { validFromDate, validToDate } = new X509Certificate(used.cert);
  lastTenth = validToDate.getTime() - (validToDate.getTime() - validFromDate.getTime()) / 10;
  vi.useFakeTimers();
});
afterEach(() => vi.useRealTimers());

function watch(current: () => TestCertificate | 'plaintext', own: TestCertificate | 'plaintext' = used) {
  const calls: number[] = [];
  const watched = new RenewalWatch({ used: own, current }, () => calls.push(Date.now()));
  return { calls, watched };
}

test('ocm defect M8: ocm defect M16: a renewed certificate is taken up near the end of the one in use, not before', () => {
  vi.setSystemTime(lastTenth - 10 * 60_000);
  let current = used;
  const { calls, watched } = watch(() => current);
  current = renewed;
  vi.advanceTimersByTime(9 * 60_000);
  expect(calls).toEqual([]);
  vi.advanceTimersByTime(2 * 60_000);
  expect(calls.length).toBeGreaterThan(0);
  watched.stop();
});

test('without another certificate nothing happens', () => {
  vi.setSystemTime(lastTenth + 60_000);
  let current = used;
  const { calls, watched } = watch(() => current);
  vi.advanceTimersByTime(60 * 60_000);
  expect(calls).toEqual([]);
  current = renewed;
  vi.advanceTimersByTime(60_000);
  expect(calls).toHaveLength(1);
  watched.stop();
  vi.advanceTimersByTime(10 * 60_000);
  expect(calls).toHaveLength(1);
});

test('a login is renewed near its end', () => {
  const now = Date.now();
  const reasons: string[] = [];
  const life = { since: now, until: now + 60 * 60_000 };
  const watched = new RenewalWatch({ used: 'plaintext', current: () => 'plaintext', life }, (why) => reasons.push(why));
  vi.advanceTimersByTime(53 * 60_000);
  expect(reasons).toEqual([]);
  vi.advanceTimersByTime(2 * 60_000);
  expect(reasons[0]).toBe('Our login ends soon');
  watched.stop();
});

test('without a certificate there is nothing to watch', () => {
  vi.setSystemTime(lastTenth + 60_000);
  const { calls } = watch(() => renewed, 'plaintext');
  vi.advanceTimersByTime(60 * 60_000);
  expect(calls).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
});
