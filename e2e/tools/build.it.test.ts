import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const program = fileURLToPath(new URL('./prepare.ts', import.meta.url));
let cache = '';
beforeEach(async () => {
  cache = await mkdtemp(join(tmpdir(), 'tools-'));
});
afterEach(() => rm(cache, { recursive: true }));

function prepare(args: string[], env: Record<string, string> = {}) {
  return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    const options = { env: { ...process.env, TOOLS_CACHE: cache, ...env } };
    execFile(process.execPath, [program, ...args], options, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });
}

describe('prepare', () => {
  it('builds a tool once, whoever asks at the same time', async () => {
    const results = await Promise.all([1, 2, 3].map(() => prepare(['--only', 'supervise'])));
    expect(results.map(({ code }) => code)).toEqual([0, 0, 0]);
    expect(results.filter(({ stdout }) => stdout.includes('built in'))).toHaveLength(1);
    expect(results.filter(({ stdout }) => stdout.includes('cached'))).toHaveLength(2);
    const [folder = ''] = await readdir(cache);
    expect(await readdir(join(cache, folder))).toEqual(['supervise']);
  });

  it('says that Go is missing, and which version is needed', async () => {
    const { code, stderr } = await prepare(['--only', 'supervise'], { PATH: '/nowhere' });
    expect(code).toBe(1);
    expect(stderr).toContain('Go is needed to build supervise, and there is no `go` on the PATH');
    expect(stderr).toContain('1.26 or newer');
  });

  it('does not wait for a builder that was killed', async () => {
    await prepare(['--only', 'supervise'], { PATH: '/nowhere' });
    const [folder = ''] = await readdir(cache);
    // No process can have that id.
    await writeFile(join(cache, folder, 'lock'), '4999999');
    expect((await prepare(['--only', 'supervise'])).stdout).toContain('built in');
  });

  it('takes the Argo CD of ARGOCD_BIN, if it can be run', async () => {
    expect((await prepare(['--only', 'argocd'], { ARGOCD_BIN: process.execPath })).stdout).toContain('installed');
    const { code, stderr } = await prepare(['--only', 'argocd'], { ARGOCD_BIN: program });
    expect(code).toBe(1);
    expect(stderr).toContain(`ARGOCD_BIN=${program} is not an executable file`);
    expect(await readdir(cache)).toEqual([]);
  });

  it('refuses what it does not know', async () => {
    const { code, stderr } = await prepare(['--only', 'etcd,nothing']);
    expect(code).toBe(2);
    expect(stderr).toContain('There is no tool nothing.');
    expect(stderr).toContain('kube-apiserver');
  });
});
