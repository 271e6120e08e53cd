import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { buildOf } from './build.ts';
import type { ReleasedName } from './projects.ts';
import { readPins } from './releases.ts';
import { FileServer, instead, right, status } from './testing/file-server.ts';

const program = fileURLToPath(new URL('./renew.ts', import.meta.url));
let folder = '';
let file = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'renew-'));
  file = join(folder, 'releases.json');
});
afterEach(() => rm(folder, { recursive: true }));

function renew(mirror: string, ...args: string[]) {
  return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    const options = { env: { ...process.env, NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1' } };
    execFile(
      process.execPath,
      [program, '--file', file, '--mirror', mirror, ...args],
      options,
      (error, stdout, stderr) => resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });
}

const sha256 = (content: string) => createHash('sha256').update(content).digest('hex');

/** What the projects publish of some versions, in their forms. */
async function publishers(versions: {
  etcd: string;
  kubernetes: string;
  helm: string;
  argocd: string;
}): Promise<FileServer> {
  const files: Record<string, string> = {};
  const etcd = `/github.com/etcd-io/etcd/releases/download/${versions.etcd}`;
  const argocd = `/github.com/argoproj/argo-cd/releases/download/${versions.argocd}`;
  const sums = { etcd: '', argocd: '' };
  for (const architecture of ['amd64', 'arm64', 's390x']) {
    const content = (name: string) => `${name} for ${architecture}`;
    for (const name of ['kube-apiserver', 'kube-controller-manager', 'kubectl']) {
      const path = `/dl.k8s.io/release/${versions.kubernetes}/bin/linux/${architecture}/${name}`;
      files[path] = content(name);
      files[`${path}.sha256`] = sha256(content(name));
    }
    const helm = `helm-${versions.helm}-linux-${architecture}.tar.gz`;
    files[`/get.helm.sh/${helm}`] = content('helm');
    files[`/get.helm.sh/${helm}.sha256sum`] = `${sha256(content('helm'))}  ${helm}\n`;
    const archive = `etcd-${versions.etcd}-linux-${architecture}.tar.gz`;
    files[`${etcd}/${archive}`] = content('etcd');
    sums.etcd += `${sha256(content('etcd'))}  ${archive}\n`;
    files[`${argocd}/argocd-linux-${architecture}`] = content('argocd');
    sums.argocd += `${sha256(content('argocd'))}  argocd-linux-${architecture}\n`;
  }
  return await FileServer.start({
    ...files,
    [`${etcd}/SHA256SUMS`]: sums.etcd,
    [`${argocd}/cli_checksums.txt`]: sums.argocd,
  });
}

/** Pins these versions, with checksums of nothing. */
async function pin(versions: Partial<Record<ReleasedName, string>>): Promise<void> {
  const url = 'https://files.invalid/file';
  const files = Object.fromEntries(
    ['linux-amd64', 'linux-arm64'].map((platform) => [platform, { url, sha256: sha256(''), published: url }]),
  );
  const pins = Object.entries(versions).map(([name, version]) => [name, { version, files }]);
  await writeFile(file, JSON.stringify(Object.fromEntries(pins)));
}

let server: FileServer;
afterEach(() => server.stop());

it('pins what the projects publish for the versions that the Go modules build, and for newer ones that are pinned', async () => {
  const [etcd, helm, kubernetes] = [
    buildOf('etcd').version,
    buildOf('helm').version,
    buildOf('kube-apiserver').version,
  ];
  server = await publishers({ etcd, helm, kubernetes, argocd: 'v99.0.0' });
  await pin({ etcd: 'v3.0.9', argocd: 'v98.0.0' });
  expect(await renew(server.url, 'argocd=v99.0.0')).toMatchObject({ code: 0, stdout: 'argocd: v98.0.0 -> v99.0.0\n' });
  const { code, stdout } = await renew(server.url);
  expect(code).toBe(0);
  expect(stdout.trim().split('\n')).toEqual([
    `etcd: v3.0.9 -> ${etcd}`,
    `kube-apiserver: not pinned -> ${kubernetes}`,
    `kube-controller-manager: not pinned -> ${kubernetes}`,
    `kubectl: not pinned -> ${kubernetes}`,
    `helm: not pinned -> ${helm}`,
    'argocd: v99.0.0 is as it was',
  ]);
  const download = `https://github.com/etcd-io/etcd/releases/download/${etcd}`;
  expect(readPins(file).etcd?.files['linux-arm64']).toEqual({
    url: `${download}/etcd-${etcd}-linux-arm64.tar.gz`,
    member: `etcd-${etcd}-linux-arm64/etcd`,
    sha256: sha256('etcd for arm64'),
    published: `${download}/SHA256SUMS`,
    bytes: 'etcd for arm64'.length,
  });
  expect(readPins(file).kubectl?.files['linux-amd64'].sha256).toBe(sha256('kubectl for amd64'));
});

it('pins the latest one of a program, and leaves the others alone', async () => {
  server = await publishers({ etcd: 'v9.8.7', helm: 'v9.9.9', kubernetes: 'v1.99.0', argocd: 'v99.0.0' });
  server.next(status(302, { location: 'https://github.com/helm/helm/releases/tag/v9.9.9' }));
  await pin({ etcd: 'v3.0.9', helm: 'v4.0.0' });
  expect((await renew(server.url, 'helm=latest')).stdout).toBe('helm: v4.0.0 -> v9.9.9\n');
  expect(server.asked[0]).toBe('/github.com/helm/helm/releases/latest');
  expect(readPins(file).helm?.files['linux-amd64'].sha256).toBe(sha256('helm for amd64'));
  expect(readPins(file).etcd?.version).toBe('v3.0.9');
});

describe('writes nothing', () => {
  const versions = { etcd: 'v3.9.9', helm: 'v4.9.9', kubernetes: 'v1.99.0', argocd: 'v99.0.0' };
  let before = '';
  beforeEach(async () => {
    server = await publishers(versions);
    await pin({ etcd: 'v3.0.9', helm: 'v4.9.9' });
    before = await readFile(file, 'utf8');
  });

  it.each([
    ['when a release has changed', 'helm=v4.9.9', 'A release does not change: find out why before you trust either.'],
    ['when there is no such version', 'etcd=v3.9.8', 'download/v3.9.8/SHA256SUMS: it answered 404'],
    ['when there is no latest version', 'etcd=latest', 'releases/latest: it leads to undefined and not to a version'],
    ['for what is no version', 'etcd=3.9.9', 'etcd=3.9.9 is not NAME=VERSION.'],
    ['for an option that there is not', '--force', 'Usage: npm run tools:renew'],
    ['for what has no releases', 'supervise=v1.0.0', 'supervise=v1.0.0 is not NAME=VERSION.'],
  ])('%s', async (_when, argument, message) => {
    const { code, stderr } = await renew(server.url, 'argocd=v99.0.0', argument);
    expect(code).toBe(1);
    expect(stderr).toContain(message);
    expect(stderr).toMatch(/Nothing was written\.\n$/);
    expect(await readFile(file, 'utf8')).toBe(before);
  });

  it.each(['0', '1000000001'])('when the size is %s', async (size) => {
    server.next(right, status(206, { 'content-range': `bytes 0-0/${size}` }));
    const { code, stderr } = await renew(server.url, 'etcd=v3.9.9');
    expect(code).toBe(1);
    expect(stderr).toContain('asked for one byte, it answered 206 and no size that a program may have');
    expect(await readFile(file, 'utf8')).toBe(before);
  });

  it.each([
    '<html>Log in</html>',
    '',
    'abc  etcd-v3.9.9-linux-amd64.tar.gz',
    `${sha256('')}  etcd-v3.9.9-linux-arm.tar.gz`,
  ])('when the checksums are %j', async (text) => {
    server.next(instead(text));
    const { code, stderr } = await renew(server.url, 'etcd=v3.9.9');
    expect(code).toBe(1);
    expect(stderr).toContain('SHA256SUMS: there is no one SHA-256 of etcd-v3.9.9-linux-amd64.tar.gz in it');
    expect(await readFile(file, 'utf8')).toBe(before);
  });
});
