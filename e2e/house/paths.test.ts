import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = new URL('../..', import.meta.url).pathname;
const folders = 'agent|bench|bin|charts|controller|ctl|docs|e2e|install|lib|principal|proto|templates|upstream';
const isPath = new RegExp(`^(?:${folders})/[\\w./*-]+$`);

/** The files and folders of the project that a page names in code spans. */
function pathsIn(page: string): string[] {
  return [...readFileSync(join(root, page), 'utf8').matchAll(/`([^`\n]+)`/g)]
    .map(([, text = '']) => text)
    .filter((text) => isPath.test(text));
}

test.each(['docs/development.md', 'docs/decisions.md', 'CONTRIBUTING.md', 'e2e/README.md', 'lib/sync/README.md'])(
  '%s names files that exist',
  (page) => {
    const missing = pathsIn(page).filter((path) =>
      path.includes('*') ? globSync(path, { cwd: root }).length === 0 : !existsSync(join(root, path)),
    );
    expect(missing).toEqual([]);
  },
);
