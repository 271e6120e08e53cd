import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { anchorsOf, brokenLinks } from './links.ts';

const root = join(import.meta.dirname, '..');
const pages = globSync('**/*.md', {
  cwd: root,
  exclude: (path) => /(^|\/)(node_modules|dist|\.git|\.cache)(\/|$)/.test(path),
});

test('all links between the pages of the project lead somewhere', () => {
  expect(pages.length).toBeGreaterThan(20);
  expect(pages.flatMap((page) => brokenLinks(root, page))).toEqual([]);
});

test('a link to a file or a heading that does not exist is found', () => {
  const folder = mkdtempSync(join(tmpdir(), 'links-'));
  try {
    writeFileSync(join(folder, 'a.md'), '[x](b.md) [y](#none) [z](https://example.com/none) [w](#here)\n\n# Here\n');
    expect(brokenLinks(folder, 'a.md')).toEqual(['a.md: b.md does not exist', 'a.md: #none has no such heading']);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('anchors are those of GitHub', () => {
  const text = '# A `code` & [link](x)\n## Same\n## Same\n```sh\n# no heading\n```\n<a id="own"></a>\n';
  expect([...anchorsOf(text)].sort()).toEqual(['a-code--link', 'own', 'same', 'same-1']);
});
