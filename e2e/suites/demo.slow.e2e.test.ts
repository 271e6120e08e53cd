import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readlink, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { connectionRecord } from '../../lib/clusters/index.ts';
import { configMaps, KubeClient, leases } from '../../lib/kube/index.ts';
import { fleetApplications, isSyncedAndHealthy } from '../fleet/index.ts';
import { waitForObject } from '../testbed/index.ts';
import { cacheFolder } from '../tools/index.ts';
import { processesNaming, runNode, stillAlive, testbedFolderOf, waitForLine } from './runners.ts';

// What the demo prints, as somebody has it who opens each link and pastes each command.

const execute = promisify(execFile);

test('every line at the end of the demo is true', { tags: 'linux' }, async () => {
  const PATH = await pathWithoutKubectl();
  const demo = runNode([new URL('../demo/main.ts', import.meta.url).pathname], { ...process.env, PATH });
  expect(await waitForLine(demo, /Ctrl-C stops everything|The demo failed[\s\S]*Ctrl-C/)).toBe(
    'Ctrl-C stops everything',
  );
  const folder = await testbedFolderOf(demo.child);
  const printed = demo.seen.join('\n');
  const clusters = clientsOf(printed);

  await opensTheDoors(printed);
  await showsVersions(printed, clusters.get('hub'));
  await runsOnlyItsTools(printed, folder);

  const suggestions = [...printed.matchAll(/^ {2}(\S.*)\n {4}(\S.*)$/gm)].map(([, what, command = '']) => ({
    what,
    command,
  }));
  expect(suggestions.map(({ what }) => what)).toHaveLength(5);
  // Somewhere else than in the project, and without a name for Git.
  const shell = { cwd: folder, env: { ...process.env, PATH, GIT_CONFIG_GLOBAL: '/dev/null' } };
  for (const { command } of suggestions) {
    const [, effect] = effects.find(([pattern]) => pattern.test(command)) ?? [];
    expect(effect, `nothing is known of ${command}`).toBeDefined();
    await effect?.(command, shell, clusters);
  }
  for (const client of clusters.values()) {
    await client.close();
  }
  const before = await processesNaming(folder);
  demo.child.kill('SIGINT');
  const [code] = await once(demo.child, 'exit');
  expect(code).toBe(0);
  await until(async () => expect(await stillAlive(before, folder)).toEqual([]));
  expect(existsSync(folder)).toBe(false);
});

type Shell = { readonly cwd: string; readonly env: NodeJS.ProcessEnv };
type Clusters = ReadonlyMap<string, KubeClient>;

/** What comes of each command, by what it looks like. */
const effects: readonly [RegExp, (command: string, shell: Shell, clusters: Clusters) => Promise<void>][] = [
  [
    /argocd-agentctl status --watch$/,
    async (command, shell) => {
      const child = spawn('bash', ['-c', command], { ...shell, stdio: ['ignore', 'pipe', 'inherit'] });
      let text = '';
      child.stdout.on('data', (chunk: Buffer) => {
        text += chunk;
      });
      await until('both clusters in the status', () => /cluster1\s+connected[\s\S]*cluster2\s+connected/.test(text));
      child.kill('SIGINT');
      const [code] = await once(child, 'exit');
      expect(code).toBe(0);
    },
  ],
  [
    /^git -C \S+ revert --no-edit HEAD$/,
    async (command, shell, clusters) => {
      await paste(command, shell);
      for (const name of ['cluster1', 'cluster2']) {
        const key = { namespace: 'guestbook', name: 'greeting' };
        await waitForObject(clientOf(clusters, name), configMaps, key, (found) => found?.data?.text === 'Hello');
      }
    },
  ],
  [
    /argocd-agentctl trace guestbook-cluster1 .*--follow$/,
    async (command, shell) => {
      const revision = await paste('git -C git/guestbook rev-parse HEAD', shell);
      const trace = await paste(command, shell);
      expect(trace).toMatch(new RegExp(`compared .* at revision ${revision.trim()}`));
      expect(trace).toContain('It has arrived.');
    },
  ],
  [
    /kubectl label managedcluster cluster3 /,
    async (command, shell, clusters) => {
      await paste(command, shell);
      const key = { namespace: 'argocd', name: 'guestbook-cluster3' };
      await waitForObject(clientOf(clusters, 'hub'), fleetApplications, key, isSyncedAndHealthy);
    },
  ],
  [
    /kubectl --context cluster2 .* scale deployment argocd-agent-agent --replicas=0$/,
    async (command, shell, clusters) => {
      await paste(command, shell);
      for (const isConnected of [false, true]) {
        const key = { namespace: 'argocd', name: 'argocd-agent-cluster2' };
        const accept = (lease: Parameters<typeof connectionRecord>[0] | undefined) =>
          lease !== undefined && connectionRecord(lease)?.isConnected === isConnected;
        await waitForObject(clientOf(clusters, 'hub'), leases, key, accept);
      }
    },
  ],
];

/** Runs a command in bash; what it prints. @throws Error when it fails */
async function paste(command: string, shell: Shell): Promise<string> {
  return (await execute('bash', ['-c', command], shell)).stdout;
}

/** A PATH with what the demo asks of a machine, and nothing else. */
async function pathWithoutKubectl(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'path-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  for (const name of ['bash', 'sh', 'git', 'go']) {
    const found = (process.env.PATH ?? '').split(delimiter).find((entry) => existsSync(join(entry, name)));
    if (found !== undefined) {
      await symlink(join(found, name), join(folder, name));
    }
  }
  return folder;
}

/** The clusters whose kubeconfigs are printed. */
function clientsOf(printed: string): Clusters {
  const lines = printed.matchAll(/^ {2}(\w+) +(\/\S+\.kubeconfig)$/gm);
  return new Map(Array.from(lines, ([, name = '', file = '']) => [name, KubeClient.fromKubeconfig(file)]));
}

function clientOf(clusters: Clusters, name: string): KubeClient {
  const client = clusters.get(name);
  if (client === undefined) {
    throw new Error(`there is no kubeconfig of ${name}`);
  }
  return client;
}

/** The fleet page opens without more ado; Argo CD's UI is there, or is said not to be. */
async function opensTheDoors(printed: string): Promise<void> {
  const [link = ''] = /http:\S+\/sign-in\/\S+/.exec(printed) ?? [];
  const signedIn = await fetch(link, { redirect: 'manual' });
  expect(signedIn.status).toBe(303);
  const cookie = (signedIn.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  const page = await fetch(new URL(signedIn.headers.get('location') ?? '', link), { headers: { cookie } });
  expect(page.status).toBe(200);
  expect((await page.text()).replaceAll(/<[^>]+>/g, '')).toContain('All 2 clusters are ready.');
  const stranger = await fetch(page.url);
  expect(stranger.status).toBe(401);
  await stranger.body?.cancel();

  const argoCd = await fetch(new URL('/', link), { headers: { accept: 'text/html', cookie } });
  const isHtml = /^text\/html/.test(argoCd.headers.get('content-type') ?? '');
  await argoCd.body?.cancel();
  const [line] = /^Argo CD's UI: .*$/m.exec(printed) ?? [];
  expect(line).toMatch(argoCd.status === 200 && isHtml ? /^Argo CD's UI: http:.*password/ : /no UI.*ARGOCD_BIN=/);
}

async function showsVersions(printed: string, hub: KubeClient | undefined): Promise<void> {
  const response = await hub?.request('/version');
  const { gitVersion } = JSON.parse((await response?.body.text()) ?? '{}') as { gitVersion: string };
  const numbered = (name: string) => `${name} \\d+\\.\\d+\\.\\d+`;
  const others = ['Open Cluster Management', 'Argo CD', 'Helm'].map(numbered).join(', ');
  expect(printed).toMatch(new RegExp(`Kubernetes ${gitVersion.slice(1).replaceAll('.', '\\.')}, ${others}$`, 'm'));
}

/** Which of the project's tools run is said before: nothing else was made for the demo. */
async function runsOnlyItsTools(printed: string, folder: string): Promise<void> {
  const programs = await Promise.all(
    (await processesNaming(folder)).map(({ pid }) => readlink(`/proc/${pid}/exe`).catch(() => '')),
  );
  const tools = new Set(programs.filter((program) => program.startsWith(cacheFolder())).map((path) => basename(path)));
  // Those in containers have paths of their own.
  expect(tools.size).toBeGreaterThan(3);
  const [, named = ''] = / ([a-z][\w, -]*): downloaded or built at the first run/.exec(printed) ?? [];
  expect([...tools].filter((tool) => !named.split(', ').includes(tool))).toEqual([]);
}
