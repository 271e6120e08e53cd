import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { readImports } from './imports.ts';

const root = new URL('../..', import.meta.url).pathname;

it('waits for conditions with until() alone', () => {
  const other = /\b(?:vi\s*\.\s*wait(?:For|Until)|expect\s*\.\s*poll)\(/;
  const files = [...readImports(root).keys()].filter((file) => other.test(readFileSync(root + file, 'utf8')));
  expect(files).toEqual([]);
});
