import { execFile, execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  applicationSets,
  applications,
  type Fleet,
  gitOpsClusters,
  guestbookFiles,
  guestbookRepository,
  guestbookSet,
  guestbookValues,
  isSyncedAndHealthy,
  programLogs,
  releaseNamespace,
  selectedClusters,
  startFleet,
  waitForObjects,
} from '../fleet/index.ts';
import { builtImage, limitFlags, podmanFlags } from '../node/index.ts';
import { makeBase } from './base.ts';
import { buildCommand } from './engine.ts';

// The image, built from the Dockerfile on a base of this machine's own Node.js, and its programs as real containers.

const run = promisify(execFile);
const project = new URL('../..', import.meta.url).pathname;
const base = 'localhost/argocd-fleet-base:test';
const tag = 'localhost/argocd-fleet:test';

/** Why the suite cannot run here; undefined when it can. */
const obstacle = await findObstacle();

async function findObstacle(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'containers of this suite need root';
  for (const name of ['podman', 'buildah']) {
    try {
      await run(name, [...podmanFlags, 'info']);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      return `${name} ${code === 'ENOENT' ? 'is not installed (apt-get install podman buildah runc)' : 'does not work'}`;
    }
  }
  // The build asks a package registry, which may be slow or away: not a reason to refuse a change.
  if (process.env.CI && !process.env.TEST_IMAGE) return 'in CI only with TEST_IMAGE=1';
  return undefined;
}

if (obstacle !== undefined) console.log(`The image is not tested: ${obstacle}.`);

const podman = async (...args: string[]) => (await run('podman', [...podmanFlags, ...args])).stdout;

describe.skipIf(obstacle !== undefined)(`the image${obstacle ? ` (skipped: ${obstacle})` : ''}`, () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'image-'));
    makeBase(base, podmanFlags);
    const own = await readFile(join(homedir(), '.npmrc'), 'utf8').catch(() => '');
    const npmrc = join(folder, 'npmrc');
    await writeFile(npmrc, `${own}\ncafile=/etc/ssl/certs/ca-certificates.crt\n`, { mode: 0o600 });
    const { command, args } = buildCommand({
      engine: 'buildah',
      tag,
      revision: execFileSync('git', ['rev-parse', 'HEAD'], { cwd: project, encoding: 'utf8' }).trim(),
      date: new Date().toISOString(),
      base,
      npmrc,
      flags: ['--network', 'host', '--isolation', 'chroot', ...limitFlags],
    });
    await run(command, [...podmanFlags, ...args], { cwd: project, maxBuffer: 64 * 1024 * 1024 });
  }, 900_000);
  afterAll(async () => {
    const left = (await podman('ps', '--all', '--quiet', '--filter', `ancestor=${tag}`)).trim();
    if (left !== '') await podman('rm', '--force', '--time', '0', ...left.split('\n'));
    await podman('rmi', '--force', '--ignore', tag, base);
    await rm(folder, { recursive: true, force: true });
  });

  test('holds the programs and what they need, and nothing to build with', async () => {
    const [image] = JSON.parse(await podman('image', 'inspect', tag)) as { Size: number; Config: { User: string } }[];
    const [own] = JSON.parse(await podman('image', 'inspect', base)) as { Size: number }[];
    expect(image?.Config.User).toBe('999:999');
    const megabytes = (bytes = 0) => Math.round(bytes / 1e6);
    console.log(
      `image: ${megabytes(image?.Size)} MB, ${megabytes((image?.Size ?? 0) - (own?.Size ?? 0))} above its base`,
    );
    const look = 'ls node_modules; ls /usr/local/bin; ls /opt/argocd-fleet';
    const text = await podman('run', '--rm', ...limitFlags, '--network', 'none', tag, 'sh', '-c', look);
    const found = text.split('\n');
    expect(found).toEqual(expect.arrayContaining(['argocd-agent', 'gitops-controller', 'node', 'templates', 'zod']));
    for (const name of ['npm', 'typescript', 'vitest', 'e2e']) expect(found).not.toContain(name);
  });

  test.each([
    ['argocd-agent', 'version'],
    ['argocd-agent', 'principal --help'],
    ['argocd-agent', 'agent --help'],
    ['gitops-controller', 'version'],
    ['gitops-controller', 'controller --help'],
  ])('%s %s starts in it, on a read-only root file system, as nobody in particular', async (program, words) => {
    const flags = ['--read-only', '--read-only-tmpfs=false', '--cap-drop', 'ALL', '--network', 'none', ...limitFlags];
    const measure = `const { spawnSync } = require('node:child_process'); const begin = performance.now();
      const { status, stderr } = spawnSync(${JSON.stringify(program)}, ${JSON.stringify(words.split(' '))});
      console.log(JSON.stringify({ status, ms: Math.round(performance.now() - begin), stderr: String(stderr) }));`;
    const { status, ms, stderr } = JSON.parse(await podman('run', '--rm', ...flags, tag, 'node', '--eval', measure));
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    console.log(`${program} ${words}: ${ms} ms`);
  });

  describe('delivered to a fleet', () => {
    let fleet: Fleet;
    beforeAll(async () => {
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
        await waitForObjects(hub.client, gitOpsClusters, generous, ([g]) => g?.status?.clusters?.connected === 2);
        await hub.client.create(applicationSets, guestbookSet(git.url(guestbookRepository)));
        await waitForObjects(
          hub.client,
          applications,
          { namespace: 'argocd', ...generous },
          (found) => found.length === 2 && found.every(isSyncedAndHealthy),
        );
      } catch (error) {
        console.error(await programLogs(fleet));
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
      await vi.waitFor(
        async () => {
          const names = (await podman('ps', '--format', '{{.Names}}', '--filter', `ancestor=${tag}`))
            .trim()
            .split('\n');
          for (const name of names) {
            const status = await podman('exec', name, 'cat', '/proc/1/status');
            expect(status, name).toMatch(/^Uid:\t999\t999\t999\t999$/m);
            expect(status, name).toMatch(/^CapEff:\t0+$/m);
            expect(status, name).toMatch(/^CapBnd:\t0+$/m);
            expect(status, name).toMatch(/^NoNewPrivs:\t1$/m);
            const write = podman('exec', name, 'sh', '-c', '> /opt/argocd-fleet/x');
            await expect(write, name).rejects.toThrow(/Read-only file system/i);
          }
        },
        { timeout: 120_000, interval: 2_000 },
      );
    });

    test('answers helm test, and lets go of the clusters', async () => {
      await fleet.helm('test', 'argocd-agent-addon', '--namespace', releaseNamespace, '--timeout', '3m');
      await fleet.hub.client.delete(applicationSets, { namespace: 'argocd', name: 'guestbook' });
      await fleet.helm('uninstall', 'argocd-agent-addon', '--namespace', releaseNamespace, '--timeout', '5m');
    });
  });
});
