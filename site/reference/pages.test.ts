import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sources } from '../../e2e/house/imports.ts';
import { knownMetadata } from './metadata.ts';
import { referenceFolder, referencePages } from './pages.ts';

const pages = referencePages();

test.each(Object.entries(pages))('docs/reference/%s is what the code says: npm run reference', (name, text) => {
  expect(readFileSync(join(referenceFolder, name), 'utf8')).toBe(text);
});

test('every label and annotation of the programs is on its page', () => {
  const root = join(import.meta.dirname, '../..');
  const own = /['"](?:argocd-agent\.argoproj-labs\.io|apps\.open-cluster-management\.io)\/[a-z][a-z-]+['"]/g;
  const missing = [...sources(root)]
    .filter((file) => /^(agent|controller|ctl|lib|principal)\//.test(file) && !/\.test\.ts$|\/testing[/.]/.test(file))
    .flatMap((file) => readFileSync(join(root, file), 'utf8').match(own) ?? [])
    .map((quoted) => quoted.slice(1, -1))
    .filter((name) => !(name in knownMetadata) && !/\/v1/.test(name));
  expect([...new Set(missing)]).toEqual([]);
});

test('no other page is in docs/reference', () => {
  expect(readdirSync(referenceFolder).sort()).toEqual(Object.keys(pages).sort());
});
