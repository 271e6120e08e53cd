import { readFileSync } from 'node:fs';
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { HistoryOptions } from '../simulate.ts';
import type { Edit, Mutant, MutantOutcome, MutantSearch } from './index.ts';

/** How many seeds a mutant may live. Many: a change of the engine makes other histories of them. */
const mostSeeds = 20_000;

type Tell = (seed: number, options: HistoryOptions) => Promise<{ readonly problems: readonly string[] }>;

const { mutants, search } = JSON.parse(await text(process.stdin)) as { mutants: Mutant[]; search: MutantSearch };
/** The sources of the mutant that is being loaded, by path. */
let broken = new Map<string, string>();

// Each mutant has modules of its own: their URLs end with its number, which is handed down to what they import.
registerHooks({
  resolve(specifier, context, nextResolve) {
    const resolved = nextResolve(specifier, context);
    const [, number] = /\?mutant=(\d+)$/.exec(context.parentURL ?? '') ?? [];
    const isOurs = resolved.url.startsWith('file:') && !resolved.url.includes('/node_modules/');
    return number === undefined || !isOurs ? resolved : { ...resolved, url: `${resolved.url}?mutant=${number}` };
  },
  load(url, context, nextLoad) {
    const source = url.includes('?mutant=') ? broken.get(fileURLToPath(url)) : undefined;
    return source === undefined
      ? nextLoad(url, context)
      : { format: 'module', source: stripTypeScriptTypes(source), shortCircuit: true };
  },
});

for (const [index, mutant] of mutants.entries()) {
  const outcome = await outcomeOf(mutant, index).catch((error: Error) => ({ error: error.stack ?? error.message }));
  process.stdout.write(`${JSON.stringify({ invariant: mutant.invariant, ...outcome })}\n`);
}

async function outcomeOf({ also, seed = 1, unkind, ...edit }: Mutant, index: number): Promise<Partial<MutantOutcome>> {
  broken = new Map();
  for (const each of also === undefined ? [edit] : [edit, also]) {
    change(each);
  }
  const { tell } = (await import(`${pathToFileURL(search.teller).href}?mutant=${index}`)) as { tell: Tell };
  for (let next = seed; next < seed + mostSeeds; next++) {
    const { problems } = await tell(next, { unkind });
    if (problems.length > 0) {
      return { noticed: { seed: next, problems } };
    }
  }
  return { error: `${mostSeeds} seeds from ${seed} on do not notice it` };
}

function change({ file, from, to }: Edit): void {
  const path = join(search.root, file);
  const source = broken.get(path) ?? readFileSync(path, 'utf8');
  if (source.split(from).length !== 2) {
    throw new Error(`the text to break is not there once in ${file}: ${from}`);
  }
  broken.set(
    path,
    source.replace(from, () => to),
  );
}
