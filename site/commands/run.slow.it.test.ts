import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test } from 'vitest';
import { borrowCluster, playKubelet, type SharedCluster } from '../../e2e/testbed/index.ts';
import { reasonNotToRun } from './not-run.ts';
import { commandPages } from './pages.ts';
import { linesByScene, type PageScene } from './scenes.ts';
import { type ShellLine, shellLines } from './shell.ts';
import { ReaderFolder } from './testing/reader-folder.ts';

// The commands of the pages, as they stand there, in bash, against real API servers. `PAGE=docs/install.md` runs one page.

const folders: string[] = [];
const clusters: SharedCluster[] = [];
const ended = new AbortController();
let run = 0;
afterEach(async () => {
  await Promise.all(clusters.splice(0).map((cluster) => cluster.stop()));
});
afterAll(async () => {
  ended.abort();
  await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })));
});

const lines = [...commandPages].flatMap(([page, text]) => shellLines(page, text));
const cases = [...linesByScene(lines)].filter(([{ page }]) => [undefined, page].includes(process.env.PAGE));

for (const [scene, own] of cases) {
  const runnable = own.filter((line) => reasonNotToRun(line) === undefined);
  for (const [program, some] of Map.groupBy(runnable, programOf)) {
    const title = `${scene.page}, from "${scene.from}"`;
    const options = { timeout: 400_000, ...(program !== undefined && { tags: program }) };
    test(program === undefined ? title : `${title}, with ${program}`, options, () => runLines(scene, some));
  }
}

async function runLines(scene: PageScene, own: readonly ShellLine[]): Promise<void> {
  const reader = await readerOf(scene);
  // What a block defines; each line runs in a shell of its own.
  let prelude = { block: -1, text: '' };
  for (const line of own) {
    prelude = prelude.block === line.block ? prelude : { block: line.block, text: '' };
    const text = filledIn(scene, line);
    if (/^\w+(\(\) \{|=\S*$)/.test(text)) {
      prelude.text += `${text}\n`;
      continue;
    }
    for (const shell of startingLike(scene.before, line.text) ?? []) {
      await mustWork(reader, shell);
    }
    const { code, out, err } = await reader.run(`${prelude.text}${text}`);
    const at = `${line.page}:${line.line}: ${text}\n${out.slice(-2_000)}\n${err.slice(-2_000)}`;
    // One run shows all that is wrong.
    expect.soft(startingLike(scene.codes, line.text) ?? [0], at).toContain(code);
    // The scene has what the page speaks of.
    expect.soft(err, at).not.toMatch(/No resources found|warning: .*deprecated/i);
    run++;
  }
}

/** What a line needs that the machine may not have. */
function programOf({ text }: ShellLine): 'jq' | 'make' | undefined {
  return (['jq', 'make'] as const).find((program) => new RegExp(`(^|\\| *)${program} `).test(text));
}

test('most lines are run', ({ skip }) => {
  skip(process.env.PAGE !== undefined, 'PAGE names one page');
  expect(run).toBeGreaterThan(60);
});

async function readerOf({ hub = [], cluster, first = [] }: PageScene): Promise<ReaderFolder> {
  const folder = await mkdtemp(join(tmpdir(), 'pages-'));
  folders.push(folder);
  const borrow = async (name: string) => {
    const borrowed = await borrowCluster({ name });
    clusters.push(borrowed);
    void playKubelet(borrowed.client, ended.signal).catch(() => undefined);
    return borrowed;
  };
  const onHub = await borrow('hub');
  const other = cluster === undefined ? onHub : await borrow('cluster');
  const reader = await ReaderFolder.prepare(folder, { hub: onHub.kubeconfig, cluster: other.kubeconfig });
  for (const [context, items] of [
    ['hub', hub],
    ['cluster1', cluster ?? []],
  ] as const) {
    if (items.length > 0) {
      const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
      await mustWork(reader, `kubectl --context ${context} create -f -`, list);
    }
  }
  for (const shell of first) {
    await mustWork(reader, shell);
  }
  return reader;
}

async function mustWork(reader: ReaderFolder, shell: string, input = ''): Promise<void> {
  const { code, out, err } = await reader.run(shell, input);
  expect(code, `${shell}\n${out.slice(-2_000)}\n${err.slice(-2_000)}`).toBe(0);
}

function filledIn({ replace = {} }: PageScene, { text }: ShellLine): string {
  return Object.entries(replace).reduce((filled, [word, value]) => filled.replaceAll(word, value), text);
}

function startingLike<T>(entries: Readonly<Record<string, T>> | undefined, text: string): T | undefined {
  return Object.entries(entries ?? {}).find(([start]) => text.startsWith(start))?.[1];
}
