import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import {
  fleetApplicationSets,
  fleetApplications,
  fleetGitOpsClusters,
  guestbookFiles,
  guestbookRepository,
  guestbookSet,
  guestbookValues,
  isSyncedAndHealthy,
  type RunningFleet,
  releaseNamespace,
  selectedClusters,
  startFleet,
} from '../fleet/index.ts';
import { builtImage, limitFlags, podmanFlags } from '../node/index.ts';
import { waitForObjects } from '../testbed/index.ts';
import { archiveImage } from './archive.ts';
import { makeBase } from './base.ts';
import { headCommit } from './commit.ts';
import { type BuildRequest, buildCommand } from './engine.ts';

// The image, built from the Dockerfile on a base of this machine's own Node.js, and its programs as real containers.

const run = promisify(execFile);
const project = new URL('../..', import.meta.url).pathname;
const base = 'localhost/argocd-fleet-base:test';
const npmProbe = ['view', 'zod', 'version'];
const tag = 'localhost/argocd-fleet:test';
const isRequired = process.env.TEST_IMAGE === '1';

const podman = async (...args: string[]) => (await run('podman', [...podmanFlags, ...args])).stdout;

/** What a script of Node.js prints in the image. */
const inImage = (script: string, ...args: readonly string[]) =>
  podman('run', '--rm', ...limitFlags, '--network', 'none', '--entrypoint', 'node', tag, '--eval', script, ...args);

/** Why this machine cannot run the suite; undefined when it can, or when it has to. */
async function findObstacle(): Promise<string | undefined> {
  if (isRequired) {
    return undefined;
  }
  if (process.env.TEST_IMAGE === '0') {
    return 'TEST_IMAGE=0 leaves the image out';
  }
  if (process.getuid?.() !== 0) {
    return 'needs root: it runs containers';
  }
  const noContainer = await failureOf(tryContainer());
  if (noContainer) {
    return `podman runs no containers here: ${lastLine(noContainer)}`;
  }
  const noPackages = await failureOf(run('npm', [...npmProbe, '--fetch-retries=0', '--fetch-timeout=20000']));
  return noPackages && `the package registry does not answer: ${lastLine(noPackages)}`;
}

/** One container, of a base like the one that the image is built on. */
async function tryContainer(): Promise<void> {
  const probe = `${base}-probe`;
  try {
    makeBase(probe, podmanFlags);
    await podman('run', '--rm', ...limitFlags, '--network', 'none', '--read-only', probe, 'node', '--version');
  } finally {
    await podman('rmi', '--force', '--ignore', probe);
  }
}

/** How the attempt ended that failed; undefined when it succeeded. */
async function failureOf(attempt: Promise<unknown>): Promise<Failure | undefined> {
  return await attempt.then(
    () => undefined,
    (error: Failure) => error,
  );
}

interface Failure {
  code?: string | number | undefined;
  stderr?: string;
  message: string;
}

function lastLine({ stderr, message }: Failure): string {
  return (stderr || message).trim().split('\n').at(-1) ?? '';
}

/** What a build says that fails for want of packages or of room: nothing that a change of this project has to do with. */
const noFaultOfOurs =
  /npm error (network|code (E(TIMEDOUT|CONN\w+|AI_AGAIN|NOTFOUND|5\d\d|429)|ERR_SOCKET_TIMEOUT))|No space left/i;

describe('the image', { tags: 'containers' }, () => {
  let folder: string;
  let reason: string | undefined;
  let built: BuildRequest & { engine: 'buildah' };
  beforeAll(async () => {
    reason = await findObstacle();
    if (reason !== undefined) {
      return;
    }
    folder = await mkdtemp(join(tmpdir(), 'image-'));
    makeBase(base, podmanFlags);
    const own = await readFile(join(homedir(), '.npmrc'), 'utf8').catch(() => '');
    const npmrc = join(folder, 'npmrc');
    // What this machine has been given already need not be asked for again.
    const settings = [own, 'cafile=/etc/ssl/certs/ca-certificates.crt', 'cache=/npm-cache', 'prefer-offline=true', ''];
    await writeFile(npmrc, settings.join('\n'), { mode: 0o600 });
    const cache = (await run('npm', ['config', 'get', 'cache'])).stdout.trim();
    await mkdir(cache, { recursive: true });
    const { revision, date } = headCommit(project);
    const flags = ['--network', 'host', '--isolation', 'chroot', '--volume', `${cache}:/npm-cache`, ...limitFlags];
    built = { engine: 'buildah', tag, revision, date: date.toISOString(), base, npmrc, flags };
    const { command, args } = buildCommand(built);
    const build = run(command, [...podmanFlags, ...args], { cwd: project, maxBuffer: 64 * 1024 * 1024 });
    const failure = await failureOf(build);
    if (failure === undefined) {
      return;
    }
    const said = `${failure.stderr ?? ''}${failure.message}`;
    if (isRequired || !noFaultOfOurs.test(said)) {
      throw failure;
    }
    reason = `the image cannot be built here: ${noFaultOfOurs.exec(said)?.[0]}`;
  }, 900_000);
  beforeEach(({ skip }) => skip(reason !== undefined, reason));
  afterAll(async () => {
    if (folder === undefined) {
      return;
    }
    const left = (await podman('ps', '--all', '--quiet', '--filter', `ancestor=${tag}`)).trim();
    if (left !== '') {
      await podman('rm', '--force', '--time', '0', ...left.split('\n'));
    }
    await podman('rmi', '--force', '--ignore', tag, base);
    await rm(folder, { recursive: true, force: true });
  });

  test('holds the programs and what they need, and nothing to build with: no shell, no package manager', async () => {
    const [image] = JSON.parse(await podman('image', 'inspect', tag)) as { Size: number; Config: { User: string } }[];
    expect(image?.Config.User).toBe('999:999');
    const sum = `const size = (path) => fs.statSync(path).isFile() ? fs.statSync(path).size : fs.readdirSync(path).reduce((sum, name) => sum + size(path + '/' + name), 0);
      for (const path of process.argv.slice(1)) console.log(path, (size(path) / 1e6).toFixed(1), 'MB')`;
    const parts = ['/usr/local/bin/node', '/lib', '/opt/argocd-fleet'];
    console.log(`image: ${Math.round((image?.Size ?? 0) / 1e6)} MB\n${await inImage(sum, ...parts)}`);
    const text = await inImage(
      `for (const path of ['/', '/usr/local/bin', '/bin', '/opt/argocd-fleet']) console.log(fs.readdirSync(path).join('\\n'))`,
    );
    const found = text.split('\n');
    const wanted = [
      'argocd-agent',
      'argocd-agentctl',
      'gitops-controller',
      'node',
      'templates',
      'LICENSE',
      'THIRD-PARTY-NOTICES',
    ];
    expect(found).toEqual(expect.arrayContaining(wanted));
    for (const name of ['npm', 'node_modules', 'e2e', 'sh', 'bash', 'apt', 'sbin']) {
      expect(found).not.toContain(name);
    }
  });

  test('names the packages of its libraries, for scanners', async () => {
    const text = await inImage(
      `for (const name of fs.readdirSync('/var/lib/dpkg/status.d')) console.log(name, fs.readFileSync('/usr/share/doc/' + name + '/copyright').length)`,
    );
    expect(text).toMatch(/^libc6 \d+$/m);
    expect(text).toMatch(/^libstdc\+\+6 \d+$/m);
  });

  test('built again from another checkout, is the same to the last byte', async () => {
    const copy = join(folder, 'checkout');
    const { stdout } = await run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
      cwd: project,
    });
    for (const path of stdout.split('\0').filter((one) => one !== '' && existsSync(join(project, one)))) {
      await cp(join(project, path), join(copy, path));
    }
    // As with another umask, and as if it had been checked out at another time.
    await run('chmod', ['-R', 'go-rwx', copy]);
    const platforms = [`linux/${process.arch === 'x64' ? 'amd64' : process.arch}`];
    const archive = await archiveImage(
      { ...built, name: tag, platforms, folder: copy },
      async (command, args) =>
        (await run(command, [...podmanFlags, ...args], { cwd: project, maxBuffer: 64 * 1024 * 1024 })).stdout,
    );
    expect(archive.ids).toEqual([(await podman('image', 'inspect', '--format', '{{.Id}}', tag)).trim()]);
    expect(archive.digest).toMatch(/^sha256:[0-9a-f]{64}$/);
    console.log(`image: ${Math.round(archive.content.length / 1e6)} MB compressed, ${archive.digest}`);
  }, 900_000);

  test.each([
    ['argocd-agent', 'version'],
    ['argocd-agent', 'principal --help'],
    ['argocd-agent', 'agent --help'],
    ['gitops-controller', 'version'],
    ['argocd-agentctl', 'version'],
    ['kubectl-argocd_fleet', 'version'],
    ['gitops-controller', 'controller --help'],
    // The originals' manifests name the programs so.
    ['/bin/argocd-agent', 'agent --help'],
    ['/manager', '--mode=controller --help'],
  ])('%s %s starts in it, on a read-only root file system, as nobody in particular', async (program, words) => {
    const flags = ['--read-only', '--read-only-tmpfs=false', '--cap-drop', 'ALL', '--network', 'none', ...limitFlags];
    const measure = `const { spawnSync } = require('node:child_process'); const begin = performance.now();
      const { status, stderr } = spawnSync(${JSON.stringify(program)}, ${JSON.stringify(words.split(' '))});
      console.log(JSON.stringify({ status, ms: Math.round(performance.now() - begin), stderr: String(stderr) }));`;
    const { status, ms, stderr } = JSON.parse(
      await podman('run', '--rm', ...flags, '--entrypoint', 'node', tag, '--eval', measure),
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    console.log(`${program} ${words}: ${ms} ms`);
  });

  test.each(['argocd-agent', 'gitops-controller', 'argocd-agentctl'])(
    '%s starts as the user that OpenShift gives',
    async (program) => {
      const flags = [
        '--user',
        '1000660000:0',
        '--read-only',
        '--read-only-tmpfs=false',
        '--cap-drop',
        'ALL',
        '--network',
        'none',
      ];
      const text = await podman('run', '--rm', ...flags, ...limitFlags, '--entrypoint', program, tag, 'version');
      expect(text).toMatch(/\d+\.\d+\.\d+/);
    },
  );

  test('takes arguments alone as those of argocd-agent, as the image of the original does', async () => {
    const text = await podman('run', '--rm', ...limitFlags, '--network', 'none', tag, 'version');
    expect(text).toMatch(/^argocd-agent/);
  });

  describe('delivered to a fleet', () => {
    let fleet: RunningFleet;
    beforeAll(async () => {
      if (reason !== undefined) {
        return;
      }
      const images = { 'quay.io/open-cluster-management/argocd-fleet': builtImage(tag) };
      fleet = await startFleet({ labels: selectedClusters, images });
      await fleet.git.commit(guestbookRepository, guestbookFiles('Hello'), 'A guestbook');
    });
    afterAll(() => fleet?.stop());

    test('enrolls the clusters and brings an Application to each', async () => {
      const { hub, git } = fleet;
      const generous = { timeoutMs: 240_000 };
      try {
        await fleet.install(guestbookValues);
        await waitForObjects(hub.client, fleetGitOpsClusters, generous, ([g]) => g?.status?.clusters?.connected === 2);
        await hub.client.create(fleetApplicationSets, guestbookSet(git.url(guestbookRepository)));
        await waitForObjects(
          hub.client,
          fleetApplications,
          { namespace: 'argocd', ...generous },
          (found) => found.length === 2 && found.every(isSyncedAndHealthy),
        );
      } catch (error) {
        console.error(await fleet.logs());
        throw error;
      }
      const running = await podman(
        'ps',
        '--format',
        '{{.Image}} {{.Command}} {{.Names}}',
        '--filter',
        `ancestor=${tag}`,
      );
      expect(running.trim().split('\n')).toHaveLength(4);
    });

    test('runs without rights in it: no capabilities, no way to any, nothing to write to', async () => {
      // A container may just be replaced by its successor: then the names are asked for again.
      await until(async () => {
        const names = (await podman('ps', '--format', '{{.Names}}', '--filter', `ancestor=${tag}`)).trim().split('\n');
        for (const name of names) {
          const inside = (script: string) => podman('exec', name, 'node', '--eval', script);
          const status = await inside(`console.log(fs.readFileSync('/proc/1/status', 'utf8'))`);
          expect(status, name).toMatch(/^Uid:\t999\t999\t999\t999$/m);
          expect(status, name).toMatch(/^CapEff:\t0+$/m);
          expect(status, name).toMatch(/^CapBnd:\t0+$/m);
          expect(status, name).toMatch(/^NoNewPrivs:\t1$/m);
          const write = inside(`fs.writeFileSync('/opt/argocd-fleet/x', '')`);
          await expect(write, name).rejects.toThrow(/EROFS/);
        }
      });
    });

    test('answers helm test, and lets go of the clusters', async () => {
      await fleet.helm('test', 'argocd-agent-addon', '--namespace', releaseNamespace, '--timeout', '3m');
      await fleet.hub.client.delete(fleetApplicationSets, { namespace: 'argocd', name: 'guestbook' });
      await fleet.helm('uninstall', 'argocd-agent-addon', '--namespace', releaseNamespace, '--timeout', '5m');
    });
  });
});
