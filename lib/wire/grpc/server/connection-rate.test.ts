import { expect, test } from 'vitest';
import { ConnectionRate } from './connection-rate.ts';

test('an address gets its burst at once, then waits, then is refused; others are not concerned', () => {
  const rate = new ConnectionRate({ connectionsPerSecond: 10, burst: 5 });
  const at = (address: string, now: number) => rate.admit(address, now);
  for (let count = 0; count < 5; count++) {
    expect(at('10.0.0.1', 1000)).toBe(0);
  }
  expect(at('10.0.0.1', 1000)).toBe(100);
  expect(at('10.0.0.1', 1000)).toBe(200);
  expect(at('10.0.0.2', 1000)).toBe(0);
  for (let count = 3; count <= 100; count++) {
    expect(at('10.0.0.1', 1000)).toBe(count * 100);
  }
  expect(at('10.0.0.1', 1000)).toBeUndefined();
  // Refused connections cost nothing; after a time the address has its burst again.
  expect(at('10.0.0.1', 1100)).toBe(10_000);
  for (let count = 0; count < 5; count++) {
    expect(at('10.0.0.1', 60_000)).toBe(0);
  }
  expect(at('10.0.0.1', 60_000)).toBe(100);
});

test('of IPv6 a network counts as one address', () => {
  const rate = new ConnectionRate({ connectionsPerSecond: 1, burst: 1 });
  expect(rate.admit('2001:db8:0:1::1', 0)).toBe(0);
  expect(rate.admit('2001:db8::1:0:0:0:2', 0)).toBe(1000);
  expect(rate.admit('2001:db8:0:2::1', 0)).toBe(0);
  expect(rate.admit('::ffff:10.0.0.1', 0)).toBe(0);
  expect(rate.admit('::ffff:10.0.0.2', 0)).toBe(0);
});

test('what is remembered is bounded', () => {
  const rate = new ConnectionRate({ connectionsPerSecond: 1, burst: 1 });
  for (let count = 0; count < 70_000; count++) {
    rate.admit(`a${count}`, 0);
  }
  // The first ones were forgotten for the last ones.
  expect(rate.admit('a0', 0)).toBe(0);
  expect(rate.admit('a69999', 0)).toBe(1000);
});
