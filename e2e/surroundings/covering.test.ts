import { expect, it } from 'vitest';
import { coveringTable, pairsOf } from './covering.ts';

const columns = { chart: ['a', 'b', 'c'], tool: ['d', 'e'], place: ['f', 'g', 'h'], begin: ['i', 'j'] } as const;

it('has every two values together, in far fewer rows than there are', () => {
  const table = coveringTable(columns, () => true);
  const pairs = new Set(table.flatMap(pairsOf));
  expect(pairs.size).toBe(3 * 2 + 3 * 3 + 3 * 2 + 2 * 3 + 2 * 2 + 3 * 2);
  expect(table.length).toBeGreaterThanOrEqual(9);
  expect(table.length).toBeLessThan(14);
  expect(new Set(table.slice(0, 3).flatMap((row) => Object.values(row))).size).toBe(3 + 2 + 3 + 2);
  expect(coveringTable(columns, () => true)).toEqual(table);
});

it('has no row that is not possible', () => {
  const table = coveringTable(columns, ({ chart, place }) => chart !== 'a' || place !== 'g');
  expect(table.some(({ chart, place }) => chart === 'a' && place === 'g')).toBe(false);
  expect(new Set(table.flatMap(pairsOf)).size).toBe(36);
});
