import { type ChildProcess, execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { tarOf } from '../../lib/base/index.ts';
import { until } from '../../lib/base/testing.ts';
import { onPath } from './on-path.ts';
import { type FileAnswer, FileServer, instead, missing, noAnswer, stall, webPage } from './testing/file-server.ts';

const program = fileURLToPath(new URL('./prepare.ts', import.meta.url));
let cache = '';
beforeEach(async () => {
  cache = await mkdtemp(join(tmpdir(), 'tools-'));
});
afterEach(() => rm(cache, { recursive: true }));

interface Result {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Whatever the environment says: the network is loopback alone, and nothing is chosen. */
const settings = Object.fromEntries(
  [
    'ARGOCD_BIN',
    'TOOLS_DOWNLOAD',
    'TOOLS_MIRROR',
    'TOOLS_RELEASES',
    'HTTP_PROXY',
    'HTTPS_PROXY',
    'http_proxy',
    'https_proxy',
  ].map((variable) => [variable, '']),
);

function start(args: string[], env: Record<string, string> = {}): { child: ChildProcess; ended: Promise<Result> } {
  const { promise, resolve } = Promise.withResolvers<Result>();
  const options = { env: { ...process.env, ...settings, TOOLS_CACHE: cache, ...env } };
  const child = execFile(process.execPath, [program, ...args], options, (error, stdout, stderr) =>
    resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
  );
  return { child, ended: promise };
}

const prepare = (args: string[], env?: Record<string, string>) => start(args, env).ended;

describe('prepare', () => {
  it('builds a tool once, whoever asks at the same time', async () => {
    const results = await Promise.all([1, 2, 3].map(() => prepare(['--only', 'supervise'])));
    expect(results.map(({ code }) => code)).toEqual([0, 0, 0]);
    expect(results.filter(({ stdout }) => stdout.includes('built in'))).toHaveLength(1);
    expect(results.filter(({ stdout }) => stdout.includes('cached'))).toHaveLength(2);
    const [folder = '', ...others] = await readdir(cache);
    expect(others).toEqual([]);
    expect(await readdir(join(cache, folder))).toEqual(['supervise']);
  });

  it('builds in the order of the names', async () => {
    const commands = await mkdtemp(join(tmpdir(), 'commands-'));
    try {
      const build = '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho "$3" >> "$BUILT"\n: > "$2"\n';
      await writeFile(join(commands, 'go'), build, { mode: 0o755 });
      const BUILT = join(commands, 'built');
      const names = ['kube-apiserver', 'helm', 'ocm', 'etcd'];
      const env = { TOOLS_DOWNLOAD: '0', PATH: commands, BUILT };
      expect((await prepare(['--only', names.join(',')], env)).stdout.match(/built in \d+ s/g)).toHaveLength(4);
      const built = (await readFile(BUILT, 'utf8')).trim().split('\n');
      expect(built.map((module) => names.find((name) => module.includes(name)) ?? module)).toEqual(names);
    } finally {
      await rm(commands, { recursive: true });
    }
  });

  it('says that Go is missing, and which version is needed', async () => {
    const { code, stderr } = await prepare(['--only', 'supervise'], { PATH: '/nowhere' });
    expect(code).toBe(1);
    expect(stderr).toContain('Go is needed to build supervise, and there is no `go` on the PATH');
    expect(stderr).toContain('1.26 or newer');
  });

  it('does not wait for a builder that was killed', async () => {
    // No process can have that id.
    await mkdir(join(cache, 'supervise.held'));
    await writeFile(join(cache, 'supervise.held', '4999999-1-killed'), '');
    expect((await prepare(['--only', 'supervise'])).stdout).toContain('built in');
  });

  it.each<[string, Record<string, string>, string]>([
    ['in the environment', { GOOS: 'windows', GOARCH: 'ppc64', GO111MODULE: 'off', GOFLAGS: '-mod=vendor' }, ''],
    ['by `go env -w`', {}, 'GOOS=plan9\nGOFLAGS=-buildmode=nosuch\n'],
  ])('builds for this machine, whatever is set %s for other builds', async (_where, variables, written) => {
    const GOENV = join(cache, 'goenv');
    await writeFile(GOENV, written);
    // An installed Redis would be taken.
    const PATH = join(spawnSync('go', ['env', 'GOROOT'], { encoding: 'utf8' }).stdout.trim(), 'bin');
    const env = { ...variables, GOENV, PATH, TOOLS_DOWNLOAD: '0' };
    expect(await prepare(['--only', 'redis-server'], env)).toMatchObject({ code: 0 });
    const [folder = ''] = (await readdir(cache)).filter((name) => name.startsWith('redis-server-'));
    const { stderr } = spawnSync(join(cache, folder, 'redis-server'), ['nosuch'], { encoding: 'utf8' });
    expect(stderr).toContain('"nosuch" is no option');
  });

  it('builds into a relative folder', async () => {
    const env = { TOOLS_CACHE: relative(process.cwd(), cache), TOOLS_DOWNLOAD: '0' };
    expect((await prepare(['--only', 'supervise'], env)).stdout).toContain('built in');
    expect(await readdir(cache)).toHaveLength(1);
  });

  it.each(['SIGINT', 'SIGTERM'] as const)('leaves nothing when it ends by %s: Go has ended before', async (signal) => {
    const commands = await mkdtemp(join(tmpdir(), 'commands-'));
    try {
      const build =
        '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\n' +
        'trap \'echo ended > "$SEEN"; exit 1\' TERM\n: > "$2"\n: > "$GOTMPDIR/work"\necho started > "$SEEN"\nwhile :; do sleep 0.1; done\n';
      await writeFile(join(commands, 'go'), build, { mode: 0o755 });
      const SEEN = join(commands, 'seen');
      const env = { TOOLS_DOWNLOAD: '0', PATH: `${commands}:${process.env.PATH}`, SEEN };
      const { child, ended } = start(['--only', 'supervise,redis-server'], env);
      await until(async () => expect(await readFile(SEEN, 'utf8')).toBe('started\n'));
      const exit = once(child, 'exit');
      child.kill(signal);
      await ended;
      expect(await exit).toEqual([null, signal]);
      expect(await readFile(SEEN, 'utf8')).toBe('ended\n');
      const left = await readdir(cache, { recursive: true, withFileTypes: true });
      expect(left.filter((entry) => entry.isFile()).map(({ name }) => name)).toEqual([]);
    } finally {
      await rm(commands, { recursive: true });
    }
  });

  it('removes what a killed build has left', async () => {
    await prepare(['--only', 'supervise'], { TOOLS_DOWNLOAD: '0' });
    const [folder = ''] = await readdir(cache);
    await rename(join(cache, folder, 'supervise'), join(cache, folder, 'supervise.0a1b'));
    await mkdir(join(cache, folder, 'supervise.0a1b.tmp', 'b001'), { recursive: true });
    expect((await prepare(['--only', 'supervise'], { TOOLS_DOWNLOAD: '0' })).stdout).toContain('built in');
    expect(await readdir(join(cache, folder))).toEqual(['supervise']);
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

describe('prepare, of what is released', () => {
  const script = '#!/bin/sh\necho released\n';
  const archive = gzipSync(tarOf([{ path: 'released/supervise', content: script }], new Date(0)));
  const path = '/tools/files.invalid/v1.2.3/supervise.tar.gz';
  let mirror: FileServer;
  let mirrored: Record<string, string>;
  let pins = '';
  beforeEach(async () => {
    mirror = await FileServer.start({ [path]: archive });
    pins = join(cache, '..', `${cache.split('/').at(-1)}.json`);
    mirrored = { TOOLS_MIRROR: `${mirror.url}/tools/`, TOOLS_RELEASES: pins };
    await pin({});
  });
  afterEach(async () => {
    await mirror.stop();
    await rm(pins);
  });

  /** Pins the archive, but for these fields. */
  async function pin(other: Record<string, unknown>): Promise<void> {
    const url = 'https://files.invalid/v1.2.3/supervise.tar.gz';
    const sha256 = createHash('sha256').update(archive).digest('hex');
    const file = { url, member: 'released/supervise', sha256, published: `${url}.sha256`, ...other };
    const files = { 'linux-amd64': file, 'linux-arm64': file };
    await writeFile(pins, JSON.stringify({ supervise: { version: 'v1.2.3', files } }));
  }

  const only = ['--only', 'supervise'];

  it('downloads it from a mirror, once, whoever asks at the same time', async () => {
    const results = await Promise.all([1, 2].map(() => prepare(only, mirrored)));
    expect(results.map(({ code }) => code)).toEqual([0, 0]);
    const output = results.map(({ stdout }) => stdout).join('');
    expect(output).toMatch(/^supervise {16}v1\.2\.3 {4}downloaded in 0 s \(0\.0 MB\)$/m);
    expect(output).toMatch(/^1 downloaded \(0\.0 MB\) and 0 built in 0\.\d minutes; .* has 0\.0 MB$/m);
    expect(output).toMatch(/^supervise {16}v1\.2\.3 {4}cached$/m);
    expect(mirror.asked.filter((asked) => asked === path)).toHaveLength(1);
    const [folder = '', ...others] = await readdir(cache);
    expect(others).toEqual([]);
    expect(await readdir(join(cache, folder))).toEqual(['supervise']);
    const tool = join(cache, folder, 'supervise');
    expect(await readFile(tool, 'utf8')).toBe(script);
    expect((await stat(tool)).mode & 0o777).toBe(0o755);
  });

  it('needs no Go for it', async () => {
    const commands = await mkdtemp(join(tmpdir(), 'commands-'));
    try {
      for (const command of ['tar', 'gzip']) {
        await symlink(onPath(command) ?? '', join(commands, command));
      }
      expect((await prepare(only, { ...mirrored, PATH: commands })).stdout).toContain('downloaded in');
    } finally {
      await rm(commands, { recursive: true });
    }
  });

  it('goes on from where a killed process was', async () => {
    mirror.next(stall(0), stall(100));
    const { child, ended } = start(only, mirrored);
    await until(async () => {
      const [folder = ''] = (await readdir(cache)).filter((name) => name.startsWith('supervise-'));
      expect((await stat(join(cache, folder, 'download.part'))).size).toBe(100);
    });
    child.kill('SIGKILL');
    await Promise.all([ended, once(child, 'exit')]);
    expect((await prepare(only, mirrored)).stdout).toContain('downloaded in');
    expect(mirror.asked.at(-1)).toBe(`${path} bytes=100-`);
  });

  it.each<[string, FileAnswer, string]>([
    ['wrong bytes', instead('something else'), 'what came has not the published SHA-256'],
    ['a web page', webPage, 'the answer is a web page and not the file, as of a proxy that wants a login'],
    ['nothing', missing, 'it answered 404'],
  ])('builds it and says why, where the server gives %s', async (_what, answer, why) => {
    mirror.next(answer, answer);
    const { code, stdout, stderr } = await prepare(only, mirrored);
    expect(code).toBe(0);
    expect(stdout).toContain('built in');
    expect(stderr).toContain(`supervise: Go builds it, since it could not be downloaded. ${mirror.url}${path}: ${why}`);
    // Nothing of it is left.
    expect(await readdir(cache)).toHaveLength(1);
  });

  it('builds it and says why, where the archive has no such program', async () => {
    await pin({ member: 'released/another' });
    const { stdout, stderr } = await prepare(only, mirrored);
    expect(stdout).toContain('built in');
    expect(stderr).toContain(
      'supervise: Go builds it, since it could not be downloaded. released/another cannot be unpacked: tar: ',
    );
  });

  it('ends, and does not build it, when the disk is full', { tags: 'linux' }, async () => {
    const folder = join(cache, `supervise-${createHash('sha256').update(archive).digest('hex').slice(0, 12)}`);
    await mkdir(folder);
    await symlink('/dev/full', join(folder, 'download.part'));
    const { code, stderr } = await prepare(only, mirrored);
    expect(code).toBe(1);
    expect(stderr).toContain(`${folder}/download.part cannot be written: ENOSPC: no space left on device`);
  });

  it('builds it within five seconds, where no server answers, and asks once for all processes', async () => {
    let asked = 0;
    mirror.next(() => {
      asked = performance.now();
    }, noAnswer);
    const { child, ended } = start(only, mirrored);
    let waited = 0;
    child.stderr?.on('data', (text: string) => {
      if (waited === 0 && text.includes('supervise: downloading (0 modules)')) {
        waited = performance.now() - asked;
      }
    });
    const { stdout, stderr } = await ended;
    expect(stdout).toContain('built in');
    const host = mirror.url.slice('http://'.length);
    const why = `Go builds supervise, since no download is possible. ${host}: no answer within 4 s. TOOLS_MIRROR can name a mirror.`;
    expect(stderr.split('\n')).toContain(why);
    expect(waited).toBeGreaterThan(3000);
    expect(waited).toBeLessThan(5000);
    expect(mirror.asked).toHaveLength(1);

    for (const folder of (await readdir(cache)).filter((name) => name.startsWith('supervise-'))) {
      await rm(join(cache, folder), { recursive: true });
    }
    const again = await prepare(only, mirrored);
    expect(again.stdout).toContain('built in');
    expect(again.stderr.split('\n')).toContain(why);
    expect(mirror.asked).toHaveLength(1);
  });

  it('asks a server that gave nothing again, when a certificate is trusted since, or nobody knows why it was', async () => {
    await mirror.stop();
    expect((await prepare(only, mirrored)).stdout).toContain('built in');
    const [memory = ''] = (await readdir(cache)).filter((name) => name.startsWith('unreachable-'));
    mirror = await FileServer.start({ [path]: archive }, Number(new URL(mirrored.TOOLS_MIRROR ?? '').port));
    for (const folder of (await readdir(cache)).filter((name) => name.startsWith('supervise-'))) {
      await rm(join(cache, folder), { recursive: true });
    }
    const trusting = { ...mirrored, NODE_EXTRA_CA_CERTS: join(cache, 'none') };
    expect((await prepare(only, trusting)).stdout).toContain('downloaded in');
    await writeFile(join(cache, memory), '');
    await rm(join(cache, (await readdir(cache)).find((name) => name.startsWith('supervise-')) ?? ''), {
      recursive: true,
    });
    expect((await prepare(only, mirrored)).stdout).toContain('downloaded in');
  });

  it('builds it at once, where there is no network', async () => {
    const { stdout, stderr } = await prepare(only, { TOOLS_RELEASES: pins });
    expect(stdout).toContain('built in');
    expect(stderr).toMatch(
      /^Go builds supervise, since no download is possible\. files\.invalid: no address is known/m,
    );
  });

  it('builds it without asking, when it is told to', async () => {
    await prepare(only, mirrored);
    const asked = mirror.asked.length;
    expect((await prepare(only, { ...mirrored, TOOLS_DOWNLOAD: '0' })).stdout).toContain('built in');
    expect(mirror.asked).toHaveLength(asked);
  });

  it.each([
    ['The proxy (HTTPS_PROXY) is not a URL such as http://proxy.example:3128', { HTTPS_PROXY: 'proxy:3128' }],
    ['TOOLS_DOWNLOAD=never: 0 builds every tool; otherwise unset it', { TOOLS_DOWNLOAD: 'never' }],
    ['The mirror (TOOLS_MIRROR) is not a URL such as https://mirror.example/tools', { TOOLS_MIRROR: '/tools' }],
    [
      'The mirror (TOOLS_MIRROR) is not a URL such as https://mirror.example/tools',
      { TOOLS_MIRROR: 'https://me:secret@mirror/' },
    ],
  ])('refuses a wrong setting: %s', async (message, env) => {
    const { code, stderr } = await prepare(only, { ...mirrored, ...env });
    expect(code).toBe(1);
    expect(stderr).toBe(`${message}\n`);
  });

  it.each([
    ['sha256', undefined],
    ['sha256', ''],
    ['url', 'http://files.invalid/supervise'],
  ])('refuses a pin whose %s is %s: nothing is downloaded unchecked', async (field, value) => {
    await pin({ [field]: value });
    const { code, stderr } = await prepare(only, mirrored);
    expect(code).toBe(1);
    expect(stderr).toContain(pins);
    expect(stderr).toContain(`supervise.files["linux-amd64"].${field}`);
    expect(mirror.asked).toEqual([]);
  });
});
