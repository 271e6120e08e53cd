import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Credentials } from './credentials.ts';
import { contextFromEnvironment, contextFromFile, contextInCluster } from './kubeconfig.ts';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kubeconfig-'));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true, force: true });
});

const base64 = (text: string) => Buffer.from(text).toString('base64');

async function write(name: string, content: string | object): Promise<string> {
  const file = path.join(folder, name);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content));
  return file;
}

function kubeconfig(user: object, cluster: object = {}): object {
  return {
    'current-context': 'a',
    clusters: [{ name: 'one', cluster: { server: 'https://api.example:6443/prefix/', ...cluster } }],
    users: [{ name: 'me', user }],
    contexts: [{ name: 'a', context: { cluster: 'one', user: 'me', namespace: 'mine' } }],
  };
}

const read = async (content: object) => {
  const file = await write('config', content);
  return new Credentials(() => contextFromFile(file));
};

test('reads certificates and trust from files beside the kubeconfig, or from the kubeconfig itself', async () => {
  await write('pki/ca.crt', 'the ca');
  await write('pki/me.crt', 'the certificate');
  const credentials = await read(
    kubeconfig(
      { 'client-certificate': 'pki/me.crt', 'client-key-data': base64('the key'), as: 'jane' },
      { 'certificate-authority': 'pki/ca.crt', 'tls-server-name': 'api', 'proxy-url': 'http://proxy:3128' },
    ),
  );
  expect(credentials).toMatchObject({
    server: 'https://api.example:6443/prefix',
    proxyUrl: 'http://proxy:3128',
    namespace: 'mine',
  });
  expect(await credentials.current()).toMatchObject({
    headers: { 'impersonate-user': 'jane' },
    tls: {
      ca: Buffer.from('the ca'),
      cert: Buffer.from('the certificate'),
      key: Buffer.from('the key'),
      servername: 'api',
    },
  });
});

test('a token, a token file that changes, a password', async () => {
  expect((await (await read(kubeconfig({ token: 'plain' }))).current()).headers.authorization).toBe('Bearer plain');

  const tokenFile = await write('token', 'first\n');
  const credentials = await read(kubeconfig({ tokenFile: 'token', token: 'older' }));
  expect((await credentials.current()).headers.authorization).toBe('Bearer first');
  await writeFile(tokenFile, 'second');
  credentials.invalidate();
  expect((await credentials.current()).headers.authorization).toBe('Bearer second');

  const password = await read(kubeconfig({ username: 'jane', password: 'secret' }));
  expect((await password.current()).headers.authorization).toBe(`Basic ${base64('jane:secret')}`);
});

test('credentials never go over a connection that is not encrypted', async () => {
  const credentials = await read(kubeconfig({ token: 'plain' }, { server: 'http://api.example' }));
  expect(await credentials.current()).toMatchObject({ headers: {}, tls: {} });
});

test('an exec plug-in gives the token, and is asked again after a refusal', async () => {
  const program = `
    const { appendFileSync, readFileSync } = require('node:fs');
    appendFileSync('calls', '.', { flag: 'a' });
    const token = 'token-' + readFileSync('calls', 'utf8').length;
    console.log(JSON.stringify({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status: { token } }));
  `.replaceAll("'calls'", JSON.stringify(path.join(folder, 'calls')));
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: process.execPath, args: ['-e', program] };
  const credentials = await read(kubeconfig({ exec }, { 'certificate-authority-data': base64('the ca') }));
  const authorization = async () => (await credentials.current()).headers.authorization;
  expect(await authorization()).toBe('Bearer token-1');
  expect(await authorization()).toBe('Bearer token-1');
  credentials.invalidate();
  expect(await authorization()).toBe('Bearer token-2');
  expect((await credentials.current()).tls).toEqual({ ca: Buffer.from('the ca'), allowPartialTrustChain: true });
});

test('files of KUBECONFIG are merged: the first that defines a name wins, those that are not there are left out', async () => {
  const first = await write('first', {
    users: [{ name: 'me', user: { token: 'of the first' } }],
    contexts: [{ name: 'b', context: { cluster: 'two', user: 'me' } }],
    clusters: null,
  });
  const second = await write('second', {
    ...kubeconfig({ token: 'of the second' }),
    clusters: [
      { name: 'one', cluster: { server: 'https://one' } },
      { name: 'two', cluster: { server: 'https://two', 'insecure-skip-tls-verify': true } },
    ],
  });
  vi.stubEnv('KUBECONFIG', [first, path.join(folder, 'none'), second].join(path.delimiter));
  const current = new Credentials(contextFromEnvironment());
  expect(current).toMatchObject({ server: 'https://one', namespace: 'mine' });
  expect((await current.current()).headers.authorization).toBe('Bearer of the first');
  const other = new Credentials(contextFromEnvironment({ context: 'b' }));
  expect(other).toMatchObject({ server: 'https://two', namespace: undefined });
  expect((await other.current()).tls).toEqual({ rejectUnauthorized: false });
  expect(() => new Credentials(contextFromEnvironment({ context: 'c' }))).toThrow('there is no context "c"');
});

test('a kubeconfig without a cluster, or that is none, is refused with its name', async () => {
  const empty = await write('empty', '');
  expect(() => contextFromFile(empty)).toThrow(`kubeconfig ${empty}: the current context "" names no cluster`);
  const broken = await write('broken', { clusters: [{ name: 'one', cluster: {} }] });
  expect(() => contextFromFile(broken)).toThrow(`kubeconfig ${broken}: `);
  expect(() => contextFromFile(broken)).toThrow('clusters[0].cluster.server');
});

test('a pod has its service account', async () => {
  const environment = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };
  expect(() => contextInCluster(environment, folder)).toThrow('not running in a cluster');
  await write('token', 'of the pod\n');
  await write('ca.crt', 'the ca');
  await write('namespace', 'argocd');
  const credentials = new Credentials(() => contextInCluster(environment, folder));
  expect(credentials).toMatchObject({ server: 'https://[fd00::1]:443', namespace: 'argocd', proxyUrl: undefined });
  expect(await credentials.current()).toMatchObject({
    headers: { authorization: 'Bearer of the pod' },
    tls: { ca: Buffer.from('the ca') },
  });
});
