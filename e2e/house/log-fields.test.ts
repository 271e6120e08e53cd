import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sources } from './imports.ts';

const root = join(import.meta.dirname, '../..');

test('errors are logged under one key: error', () => {
  const wrong = [...sources(root)].filter((file) =>
    /\blog(ger)?\??\.(debug|info|warn|error)\(\s*\{[^}]*\berr\b/.test(readFileSync(join(root, file), 'utf8')),
  );
  expect(wrong).toEqual([]);
});
