import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The project's folder. */
export const projectRoot = join(import.meta.dirname, '../..');

/** The pages with commands, relative to the project's folder, and their texts. */
export const commandPages: ReadonlyMap<string, string> = new Map(
  globSync(['*.md', 'docs/*.md', 'charts/*/README.md', 'site/README.md', 'e2e/**/README.md'], {
    cwd: projectRoot,
    exclude: (path) => path.includes('node_modules'),
  })
    .sort()
    .map((page) => [page, readFileSync(join(projectRoot, page), 'utf8')]),
);
