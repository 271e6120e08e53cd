import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = new URL('../..', import.meta.url).pathname;
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const readme = read('README.md').replaceAll(/\s+/g, ' ');

test('the README is read in a minute', () => {
  expect(read('README.md').split('\n').length).toBeLessThan(110);
});

test('every figure of the README stands where the command is that measures it', () => {
  const figures = [...readme.matchAll(/\b\d[\d.,]* (?:ms|milliseconds|seconds|minutes|hours|MB|GB)\b/g)].map(String);
  expect(figures.length).toBeGreaterThan(3);
  const [, table = ''] = read('docs/demo.md').split('## Figures of the README');
  const measured = table.split('\n').filter((line) => /\|.*\|.*`.*`.*\|/.test(line));
  expect(figures.filter((figure) => !measured.some((line) => line.includes(figure)))).toEqual([]);
});

test('the README names no versions but those that the project asks for', () => {
  const named = readme.matchAll(
    /\b(Node\.js|npm|Git|Go|Kubernetes|Helm|OCM|Open Cluster Management|Argo CD|Redis) v?(\d+(?:\.\d+)*)/g,
  );
  const wanted: Readonly<Record<string, string | undefined>> = {
    'Node.js': /oldestNode = (\d+)/.exec(read('setup.mjs'))?.[1],
    Git: /Git (\d+\.\d+) or later/.exec(read('e2e/tools/git.ts'))?.[1],
    Go: goVersion(),
  };
  const versions = Array.from(named, ([, program = '', version]) => [program, version] as const);
  expect(Object.fromEntries(versions)).toEqual(wanted);
});

test('the page about the installation names the versions of Helm that charts are tested with', () => {
  const module = read('e2e/tools/kubernetes-1.36/go.mod');
  const tested = ['4', '3'].map((major) => new RegExp(`helm\\.sh/helm/v${major} v(\\d+\\.\\d+)`).exec(module)?.[1]);
  expect(read('docs/install.md')).toContain(`| Helm | 4 or 3 (tested with ${tested.join(' and ')}) |`);
});

test('the list of benchmarks has them all, and no page names another', () => {
  const [, list = ''] = read('bench/main.ts').split('const benchmarks');
  const names = Array.from(list.matchAll(/^ {2}(\w+): \{$/gm), ([, name]) => name);
  const namedIn = (page: string) => Array.from(read(page).matchAll(/npm run bench -- ([a-z]+)/g), ([, name]) => name);
  expect(names.length).toBeGreaterThan(5);
  expect(namedIn('bench/README.md').sort()).toEqual(names.sort());
  const pages = globSync(['*.md', 'docs/*.md', 'e2e/*.md'], { cwd: root });
  expect(pages.length).toBeGreaterThan(20);
  const others = pages.map((page) => [page, namedIn(page).filter((name) => !names.includes(name))] as const);
  expect(others.filter(([, unknown]) => unknown.length > 0)).toEqual([]);
});

/** The newest Go that a tool asks for, without the patch. */
function goVersion(): string | undefined {
  const modules = globSync('e2e/tools/*/go.mod', { cwd: root });
  const asked = modules.flatMap((path) => /^go (\d+\.\d+)/m.exec(read(path))?.[1] ?? []);
  return asked.sort((one, other) => one.localeCompare(other, 'en', { numeric: true })).at(-1);
}
