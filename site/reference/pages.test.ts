import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { referenceFolder, referencePages } from './pages.ts';

const pages = referencePages();

test.each(Object.entries(pages))('docs/reference/%s is what the code says: npm run reference', (name, text) => {
  expect(readFileSync(join(referenceFolder, name), 'utf8')).toBe(text);
});

test('no other page is in docs/reference', () => {
  expect(readdirSync(referenceFolder).sort()).toEqual(Object.keys(pages).sort());
});
