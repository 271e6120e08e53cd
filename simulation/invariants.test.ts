import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

test('lib/sync/README.md lists the invariants that are broken on purpose, and no others', () => {
  const rooms = [import.meta.dirname, join(import.meta.dirname, 'principals')];
  const mutants = rooms
    .flatMap((room) => readdirSync(room).map((name) => join(room, name)))
    .filter((path) => /mutants[^/]*\.test\.ts$/.test(path))
    .flatMap((path) => {
      const source = readFileSync(path, 'utf8');
      return [...source.matchAll(/invariant: (?:'([^']+)'|"([^"]+)")/g)].map(([, single, double]) => single ?? double);
    });
  const [, list = ''] = readFileSync(join(import.meta.dirname, '../lib/sync/README.md'), 'utf8').split('### Delivery');
  const listed = [...list.matchAll(/^- (.+)$/gm)].map(([, invariant]) => invariant);
  expect(listed.sort()).toEqual(mutants.sort());
});
