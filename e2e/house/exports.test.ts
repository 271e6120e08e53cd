import { expect, test } from 'vitest';
import { ambiguousNames, exportedNames, readExports } from './exports.ts';

test('an exported name means one thing in the whole project', () => {
  const exported = readExports(new URL('../..', import.meta.url).pathname);
  expect(exported.size).toBeGreaterThan(1000);
  expect(ambiguousNames(exported)).toEqual([]);
});

test('names are read as they are declared; pairs of a type and a value are one, re-exports none', () => {
  const source = [
    'export interface Fleet {}',
    'export async function* startFleet() {}',
    'export const Mode = { a: 1 } as const;',
    'export type Mode = keyof typeof Mode;',
    "export { type Other, other } from './other.ts';",
    'const own = 1;',
  ].join('\n');
  expect(exportedNames(source)).toEqual(['Fleet', 'startFleet', 'Mode', 'Mode']);
  const exported = new Map([
    ['Fleet', new Set(['b.ts', 'a.ts'])],
    ['Mode', new Set(['a.ts'])],
  ]);
  expect(ambiguousNames(exported)).toEqual(['Fleet: a.ts, b.ts']);
});
