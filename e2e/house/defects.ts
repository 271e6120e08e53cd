import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A row of docs/defects.md. */
export interface DefectRow {
  /** As it begins the titles of tests: `defect 17` or `ocm defect H3`. */
  readonly name: string;
  /** Whether the row says why there is no test. */
  readonly hasReason: boolean;
}

/** The rows of the page, in its order. Defects with a letter are those of argocd-pull-integration. */
export function defectRows(page: string): DefectRow[] {
  return Array.from(page.matchAll(/^\| ([HM]?)(\d+) \|.*\| (.*) \|$/gm), ([, letter = '', number = '', here = '']) => ({
    name: letter === '' ? `defect ${number}` : `ocm defect ${letter}${number}`,
    hasReason: here.startsWith('No test: '),
  }));
}

/** The defects that titles of tests begin with, in a file's text: `'defect 11: defect 53: changed in place'`. */
export function defectsInTitles(source: string): string[] {
  const titles = source.matchAll(/['"`]((?:(?:ocm )?defect \w+: )+)/g);
  return Array.from(titles, ([, names = '']) => names.split(': ').filter((name) => name !== '')).flat();
}

/** The text of every test file below a folder. */
export function* testSources(root: string): Generator<string> {
  for (const entry of readdirSync(root, { withFileTypes: true })) {
    const path = join(root, entry.name);
    if (entry.isDirectory() && entry.name !== 'node_modules' && !entry.name.startsWith('.')) {
      yield* testSources(path);
    } else if (entry.name.endsWith('.test.ts')) {
      yield readFileSync(path, 'utf8');
    }
  }
}
