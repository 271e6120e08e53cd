import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');
const cache = new Map<string, Set<string>>();

/** Every text in a file that is the title of a test, or stands in a row of a table of tests. The path is the project's. */
export function titlesIn(file: string): Set<string> {
  let titles = cache.get(file);
  if (titles === undefined) {
    const source = readFileSync(join(root, file), 'utf8');
    const literals = source.matchAll(/(?<=\(|\[)\s*('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`[^`]*`)(?=[,\]])/g);
    titles = new Set(Array.from(literals, ([, literal = '']) => literal.slice(1, -1).replace(/\\(.)/g, '$1')));
    cache.set(file, titles);
  }
  return titles;
}
