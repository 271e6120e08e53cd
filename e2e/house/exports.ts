import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sources } from './imports.ts';

/**
 * The names that the TypeScript below a folder exports, each with the files that declare it. Re-exports, tests and generated
 * code do not count.
 */
export function readExports(root: string): ReadonlyMap<string, ReadonlySet<string>> {
  const exported = new Map<string, Set<string>>();
  for (const file of sources(root)) {
    if (file.endsWith('.test.ts') || file.startsWith('proto/gen/')) {
      continue;
    }
    for (const name of exportedNames(readFileSync(join(root, file), 'utf8'))) {
      const files = exported.get(name) ?? new Set();
      exported.set(name, files.add(file));
    }
  }
  return exported;
}

/** The names that a module declares and exports. */
export function exportedNames(source: string): string[] {
  const declarations = source.matchAll(
    /^export (?:declare )?(?:async )?(?:abstract )?(?:function\*?|class|const|let|interface|type|enum) (\w+)/gm,
  );
  return Array.from(declarations, ([, name = '']) => name);
}

/** What stands in more than one file, in words: `Cluster: a.ts, b.ts`. */
export function ambiguousNames(exported: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  return Array.from(exported)
    .filter(([, files]) => files.size > 1)
    .map(([name, files]) => `${name}: ${[...files].sort().join(', ')}`)
    .sort();
}
