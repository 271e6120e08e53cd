import { expect, test } from 'vitest';
import { FloodGate } from './flood-gate.ts';

test('a burst is let through, then one every 2 s, which tells how many were left out', () => {
  let now = 1_000;
  const gate = new FloodGate(() => now);
  for (let line = 0; line < 30; line++) {
    expect(gate.admit('a')).toBe(0);
  }
  for (let line = 0; line < 7; line++) {
    expect(gate.admit('a')).toBeUndefined();
  }
  expect(gate.admit('b')).toBe(0);
  now += 2_000;
  expect(gate.admit('a')).toBe(7);
  expect(gate.admit('a')).toBeUndefined();
  now += 3_600_000;
  for (let line = 0; line < 30; line++) {
    expect(gate.admit('a')).toBe(line === 0 ? 1 : 0);
  }
  expect(gate.admit('a')).toBeUndefined();
});
