import { expect, test } from 'vitest';
import { until } from '../base/testing.ts';
import { ConnectionTurns } from './connection-turns.ts';

function make() {
  const turns = new ConnectionTurns();
  const begun: string[] = [];
  const enter = (network: number, count: number) =>
    Array.from({ length: count }, (_, index) => {
      const name = `${network}:${index}`;
      return turns.enter(`10.0.0.${network}`, () => begun.push(name));
    });
  return { begun, enter, turns };
}

test('a turn of the event loop begins with few of those that come at once', async () => {
  const { begun, enter } = make();
  const counts: number[] = [];
  enter(1, 80);
  const count = () => {
    counts.push(begun.length);
    if (begun.length < 80) {
      setImmediate(count);
    }
  };
  count();
  await until(() => expect(begun).toHaveLength(80));
  expect(counts.length).toBeGreaterThanOrEqual(10);
  expect(Math.max(...counts.map((now, index) => now - (counts[index - 1] ?? 0)))).toBeLessThanOrEqual(16);
});

test('each network has its turn, however many another one sends', async () => {
  const { begun, enter } = make();
  enter(1, 30);
  enter(2, 2);
  enter(3, 1);
  await until(() => expect(begun).toHaveLength(33));
  const place = (name: string) => begun.indexOf(name);
  expect(place('3:0')).toBeLessThan(13);
  expect(place('2:1')).toBeLessThan(14);
  expect(
    begun.filter((name) => name.startsWith('1:')),
    'in order',
  ).toEqual(Array.from({ length: 30 }, (_, i) => `1:${i}`));
});

test('who has closed while it waited has no turn', async () => {
  const { begun, enter } = make();
  const leave = enter(1, 12);
  leave[9]?.();
  enter(2, 1);
  await until(() => expect(begun).toHaveLength(12));
  expect(begun).not.toContain('1:9');
});

test('of those that take long one begins in a turn, and the others have as much time as it took', async () => {
  const { turns } = make();
  const begun: number[] = [];
  let between = 0;
  const count = () => {
    between++;
    if (begun.length < 6) {
      setImmediate(count);
    }
  };
  for (let index = 0; index < 6; index++) {
    turns.enter('10.0.0.1', () => {
      const end = performance.now() + 25;
      while (performance.now() < end) {
        // Busy.
      }
      begun.push(between);
    });
  }
  expect(begun).toHaveLength(1);
  count();
  await until(() => expect(begun).toHaveLength(6));
  const gaps = begun.slice(1).map((now, index) => now - (begun[index] ?? 0));
  // The machine may have stopped the program between two.
  expect(gaps.toSorted((a, b) => a - b)[2], 'turns of the event loop between two, mostly').toBeGreaterThan(5);
});
