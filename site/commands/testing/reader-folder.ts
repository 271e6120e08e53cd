import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { toolPath } from '../../../e2e/tools/index.ts';
import { until } from '../../../lib/base/testing.ts';
import { projectRoot } from '../pages.ts';

/** How a line ended, and what its reader saw. */
export interface LineRun {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Commands that go on until the reader ends them: they have worked when they have shown something. */
const endless = /\s--(watch|follow)\b/;

const programs = {
  'argocd-agent': 'argocd-agent',
  'argocd-agentctl': 'argocd-agentctl',
  'gitops-controller': 'gitops-controller',
};

/** A folder as a reader has it who follows the pages: the checkout's folders, and the programs on the PATH. */
export class ReaderFolder {
  readonly #folder: string;
  readonly #env: Readonly<Record<string, string>>;

  private constructor(folder: string, env: Readonly<Record<string, string>>) {
    this.#folder = folder;
    this.#env = env;
  }

  /**
   * @param folder an empty one
   * @param kubeconfigs of the contexts `hub`, `hub1` and `hub2`, and of `cluster1`, `edge` and `east`
   */
  static async prepare(
    folder: string,
    kubeconfigs: { readonly hub: string; readonly cluster: string },
  ): Promise<ReaderFolder> {
    const [bin, home] = [join(folder, '.bin'), join(folder, '.home')];
    await Promise.all([mkdir(bin), mkdir(home)]);
    for (const name of ['charts', 'install', 'Makefile']) {
      await symlink(join(projectRoot, name), join(folder, name));
    }
    for (const tool of ['kubectl', 'helm'] as const) {
      await symlink(await toolPath(tool), join(bin, tool));
    }
    for (const [name, entry] of Object.entries(programs)) {
      const script = `#!/bin/sh\nexec '${process.execPath}' '${join(projectRoot, 'bin', entry)}.ts' "$@"\n`;
      await writeFile(join(bin, name), script);
      await chmod(join(bin, name), 0o755);
    }
    const kubeconfig = join(home, 'kubeconfig');
    await writeFile(kubeconfig, await merged(kubeconfigs), { mode: 0o600 });
    return new ReaderFolder(folder, { PATH: `${bin}:${process.env.PATH}`, HOME: home, KUBECONFIG: kubeconfig });
  }

  /** Runs shell in the folder, to its end, or until it shows something when it is one of those that go on. */
  async run(shell: string, input = ''): Promise<LineRun> {
    const script = `set -eo pipefail\n${shell}`;
    // A group of its own, so that all of a pipe can be ended.
    const child = spawn('bash', ['-c', script], { cwd: this.#folder, env: { ...this.#env }, detached: true });
    let [out, err] = ['', ''];
    child.stdout.on('data', (text: Buffer) => {
      out += text;
    });
    child.stderr.on('data', (text: Buffer) => {
      err += text;
    });
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    const closed = new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve));
    if (!endless.test(shell)) {
      return { code: await closed, out, err };
    }
    try {
      const isOver = () => child.exitCode !== null;
      await until(`"${shell}" to show something`, () => out !== '' || isOver(), {
        timeoutMs: 60_000,
        details: () => err,
      });
      return { code: isOver() ? child.exitCode : 0, out, err };
    } finally {
      endGroup(child);
      await closed;
    }
  }
}

function endGroup({ pid, exitCode }: ChildProcess): void {
  if (pid !== undefined && exitCode === null) {
    process.kill(-pid, 'SIGKILL');
  }
}

/** One kubeconfig with all contexts that the pages name; the hub is the current one. */
async function merged({ hub, cluster }: { readonly hub: string; readonly cluster: string }): Promise<string> {
  const contexts = { hub: ['hub', 'hub1', 'hub2'], cluster: ['cluster1', 'edge', 'east'] };
  const sides = await Promise.all(
    Object.entries({ hub, cluster }).map(async ([side, path]) => {
      const { clusters, users } = parse(await readFile(path, 'utf8'));
      return {
        clusters: [{ ...clusters[0], name: side }],
        users: [{ ...users[0], name: side }],
        contexts: contexts[side as 'hub' | 'cluster'].map((name) => ({ name, context: { cluster: side, user: side } })),
      };
    }),
  );
  const all = (key: 'clusters' | 'users' | 'contexts') => sides.flatMap((side): unknown[] => side[key]);
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: all('clusters'),
    users: all('users'),
    contexts: all('contexts'),
    'current-context': 'hub',
  });
}
