import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { defectRows, defectsInTitles, testSources } from './defects.ts';

const root = join(import.meta.dirname, '../..');
const rows = defectRows(readFileSync(join(root, 'docs/defects.md'), 'utf8'));
const tested = new Set(Array.from(testSources(root), defectsInTitles).flat());

test('docs/defects.md numbers the defects without a gap', () => {
  const numbers = (kind: string) =>
    rows.flatMap(({ name }) => (name.startsWith(kind) ? [Number(name.slice(kind.length))] : []));
  for (const [kind, count] of [
    ['defect ', 55],
    ['ocm defect H', 10],
    ['ocm defect M', 22],
  ] as const) {
    expect(numbers(kind).toSorted((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, index) => index + 1));
  }
});

test('every defect has a test, or a reason why it has none', () => {
  expect(rows.filter(({ name, hasReason }) => tested.has(name) === hasReason).map(({ name }) => name)).toEqual([]);
});

test('no test names a defect that is not in docs/defects.md', () => {
  const known = new Set(rows.map(({ name }) => name));
  expect([...tested].filter((name) => !known.has(name))).toEqual([]);
});

test('titles and rows are read as they are written', () => {
  // Put together, so that the sample does not count as a title of this file.
  const quote = '"';
  const sample = `test(${quote}defect 1: ocm defect H2: title", ...); // see defect 3: no title`;
  expect(defectsInTitles(sample)).toEqual(['defect 1', 'ocm defect H2']);
  expect(defectRows('| 9 | Wrong. | No test: not built. |\n| M2 | Wrong. | Right. |\n| No. | a | b |')).toEqual([
    { name: 'defect 9', hasReason: true },
    { name: 'ocm defect M2', hasReason: false },
  ]);
});
