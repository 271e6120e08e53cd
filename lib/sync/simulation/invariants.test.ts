import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

test('lib/sync/README.md lists the invariants that are broken on purpose, and no others', () => {
  const mutants = readdirSync(import.meta.dirname)
    .filter((name) => /^mutants.*\.test\.ts$/.test(name))
    .flatMap((name) => {
      const source = readFileSync(join(import.meta.dirname, name), 'utf8');
      return [...source.matchAll(/invariant: (?:'([^']+)'|"([^"]+)")/g)].map(([, single, double]) => single ?? double);
    });
  const [, list = ''] = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8').split('### Delivery');
  const listed = [...list.matchAll(/^- (.+)$/gm)].map(([, invariant]) => invariant);
  expect(listed.sort()).toEqual(mutants.sort());
});
