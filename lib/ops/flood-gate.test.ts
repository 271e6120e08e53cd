import { expect, test } from 'vitest';
import { FloodGate } from './flood-gate.ts';

function gateWithClock() {
  const clock = { now: 1_000 };
  const gate = new FloodGate(() => clock.now);
  const admit = (subject: string, kind: string, lines: number, lineClass: 'warning' | 'info' = 'warning') =>
    Array.from({ length: lines }, () => gate.admit({ subject, kind, class: lineClass }));
  const admitted = (results: (number | undefined)[]) => results.filter((result) => result !== undefined);
  return { clock, admit, admitted };
}

test('a burst of warnings passes, then one every 2 s, which reports how many were left out', () => {
  const { clock, admit, admitted } = gateWithClock();
  expect(admitted(admit('a', 'x', 37))).toEqual(Array(30).fill(0));
  expect(admit('b', 'x', 1)).toEqual([0]);
  expect(admit('a', 'y', 1)).toEqual([0]);
  clock.now += 2_000;
  expect(admit('a', 'x', 2)).toEqual([7, undefined]);
  clock.now += 3_600_000;
  expect(admitted(admit('a', 'x', 40))).toEqual([1, ...Array(29).fill(0)]);
});

test('lines of level info have a larger burst and a higher rate', () => {
  const { clock, admit, admitted } = gateWithClock();
  expect(admitted(admit('a', 'x', 5_000, 'info'))).toHaveLength(300);
  clock.now += 10_000;
  expect(admitted(admit('a', 'x', 5_000, 'info'))).toHaveLength(50);
});

test('kinds that a peer makes up do not raise what it may cause in all', () => {
  const { clock, admit, admitted } = gateWithClock();
  let lines = 0;
  for (let kind = 0; kind < 50_000; kind++) {
    lines += admitted(admit('a', `kind ${kind}`, 1, 'info')).length;
  }
  expect(lines).toBe(1_000);
  clock.now += 60_000;
  expect(admit('a', 'another', 1)).toEqual([49_000]);
});
