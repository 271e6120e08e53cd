import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Ingredient } from '../unkindness.ts';

/** A change of a source file, found by a piece of text that is there once. */
export interface Edit {
  /** Relative to the room that is broken. */
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
  /** The first seed, for what is rare: one that notices it, or one shortly before. Default: 1. */
  readonly seed?: number;
  /** What befalls the histories, for what is rare without it. Default: what each seed draws. */
  readonly unkind?: readonly Ingredient[];
}

/** What is broken, and who must notice. */
export interface MutantSearch {
  /** Folder that the files of the mutants are relative to. */
  readonly root: string;
  /** Path of a module that exports `tell`, which runs the history of a seed. */
  readonly teller: string;
}

/** After how many seeds a run says by which one a mutant was noticed, so that its `seed` can be that. */
const patience = 100;

/** What became of a mutant, as `run.ts` writes it. */
export interface MutantOutcome {
  readonly invariant: string;
  /** The first seed that failed, and how. */
  readonly noticed?: { readonly seed: number; readonly problems: readonly string[] };
  /** The mutant cannot be made. */
  readonly error?: string;
}

/**
 * Each invariant, broken on purpose in one place of the sources as another process loads them. The simulator must detect it: else
 * it proves nothing. A mutant whose lines are not found any more fails too.
 */
export function testMutants(mutants: readonly Mutant[], search: MutantSearch): void {
  const outcomes = new Map(mutants.map(({ invariant }) => [invariant, Promise.withResolvers<MutantOutcome>()]));
  let child: ChildProcess | undefined;
  beforeAll(() => {
    child = spawn(process.execPath, [join(import.meta.dirname, 'run.ts')], { stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdin?.end(JSON.stringify({ mutants, search }));
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const outcome = JSON.parse(line) as MutantOutcome;
      outcomes.get(outcome.invariant)?.resolve(outcome);
    });
    child.on('exit', () => {
      for (const [invariant, { resolve }] of outcomes) {
        resolve({ invariant, error: 'the process that runs the mutants ended' });
      }
    });
  });
  afterAll(() => void child?.kill());

  test.each(mutants)(
    'noticed when broken: $invariant',
    async ({ invariant, seed = 1 }) => {
      const outcome = await outcomes.get(invariant)?.promise;
      expect(outcome).toMatchObject({ noticed: { seed: expect.any(Number) } });
      const noticed = outcome?.noticed?.seed ?? seed;
      if (noticed - seed >= patience) {
        console.info(`${noticed - seed + 1} seeds until ${noticed} noticed it: ${invariant}`);
      }
    },
    600_000,
  );
}
