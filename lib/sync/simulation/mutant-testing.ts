import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

/** A change of a source file, found by a piece of text that is there once. */
export interface Edit {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** An invariant, broken on purpose. */
export interface Mutant extends Edit {
  /** As in the list in lib/sync/README.md. */
  readonly invariant: string;
  /** Removes a second mechanism that would repair the damage. */
  readonly also?: Edit;
  /** The first seed, for what is rare. */
  readonly seed?: number;
}

/**
 * Each invariant, broken on purpose in one place of a copy of the sources. The simulator must detect it: else it proves
 * nothing. A mutant whose lines are not found any more fails too.
 */
export function testMutants(mutants: readonly Mutant[]): void {
  let folder = '';
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mutants-'));
    await symlink(join(import.meta.dirname, '../../../node_modules'), join(folder, 'node_modules'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test.each(mutants)(
    'noticed when broken: $invariant',
    async ({ invariant, seed, also, ...edit }) => {
      const lib = join(folder, invariant.replaceAll(/\W+/g, '-'));
      await mkdir(lib);
      for (const part of ['base', 'sync', 'argocd']) {
        await cp(join(import.meta.dirname, '../..', part), join(lib, part), { recursive: true });
      }
      for (const { file, from, to } of also === undefined ? [edit] : [edit, also]) {
        const source = await readFile(join(lib, file), 'utf8');
        expect(source.split(from), `the line to break in ${file}`).toHaveLength(2);
        await writeFile(
          join(lib, file),
          source.replace(from, () => to),
        );
      }
      const start = seed === undefined ? [] : ['--from', String(seed)];
      expect(await runSimulator(lib, [...start, '--seeds', '3000', '--stop-at-failure'])).toMatch(/^seed \d+ fails/m);
    },
    300_000,
  );
}

function runSimulator(lib: string, args: string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile(process.execPath, [join(lib, 'sync/simulation/main.ts'), ...args], (_error, stdout) => resolve(stdout));
  });
}
