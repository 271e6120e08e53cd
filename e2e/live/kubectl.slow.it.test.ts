import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { until } from '../../lib/base/testing.ts';
import { configMaps, type KubeObject, namespaces, resourceType, secrets } from '../../lib/kube/index.ts';
import { issueCertificate } from '../../lib/pki/index.ts';
import { type KubeletPod, kubeletPods, type Node, startNode } from '../node/index.ts';
import type { Pair } from '../pair/index.ts';
import { kubeconfigText } from '../testbed/index.ts';
import { Kubectl } from './kubectl.ts';
import { deployWeb, startProxiedPair } from './shop.ts';

// kubectl with an agent's client certificate, pointed at the resource proxy: what it can do and what its user reads.

const generous = { timeoutMs: 120_000 };
const deployments = resourceType<KubeObject & { spec?: { replicas?: number } }>({
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
});
const tracked = { 'argocd.argoproj.io/tracking-id': 'web:apps/Deployment:shop/web' };

let pair: Pair;
let node: Node;
let kubectl: Kubectl;
let asAbsent: Kubectl;

beforeAll(async () => {
  const proxied = await startProxiedPair();
  const { port } = proxied;
  pair = proxied.pair;
  const { client, dir } = pair.managed;
  const as = async (commonName: string) => {
    const credential = await issueCertificate({ authority: pair.authority, commonName, usages: ['client'] });
    // As in Argo CD's cluster Secret; the client leaves the query away.
    const server = `https://127.0.0.1:${port}?agentName=${commonName}`;
    const kubeconfig = join(dir, `${commonName}.kubeconfig`);
    const text = kubeconfigText({ name: 'proxy', server, ca: pair.authority.certificate }, credential);
    await writeFile(kubeconfig, text, { mode: 0o600 });
    const home = join(dir, `home-${commonName}`);
    await mkdir(home, { recursive: true });
    return Kubectl.prepare(kubeconfig, home);
  };
  [kubectl, asAbsent, node] = await Promise.all([
    as(pair.name),
    as('absent'),
    startNode({ cluster: pair.managed, dir }),
    deployWeb(pair.hub.client, pair.name, client, proxied.proxy),
    client.create(namespaces, { metadata: { name: 'foreign' } }),
  ]);
  const script = 'echo first line; echo last line; exec sleep 100000';
  const pod = (name: string, annotations: Record<string, string>) => ({
    metadata: { name, namespace: 'shop', annotations },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [{ name: 'main', image: 'busybox', command: ['sh', '-c', script] }],
    },
  });
  const deployment = (name: string, annotations: Record<string, string>) => ({
    metadata: { name, namespace: 'shop', annotations },
    spec: {
      replicas: 0,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: { containers: [{ name: 'main', image: 'busybox' }] },
      },
    },
  });
  await Promise.all([
    client.create(deployments, deployment('web', tracked)),
    client.create(deployments, deployment('other', {})),
    client.create(kubeletPods, pod('talker', tracked) as KubeletPod),
    client.create(kubeletPods, pod('stranger', {}) as KubeletPod),
    client.create(configMaps, { metadata: { name: 'plans', namespace: 'foreign' }, data: { a: 'b' } }),
    client.create(secrets, { metadata: { name: 'private', namespace: 'foreign' }, data: { password: 'czNjcjN0' } }),
  ]);
  const isRunning = async () => {
    const found = await client.get(kubeletPods, { name: 'talker', namespace: 'shop' });
    return found?.status?.phase === 'Running';
  };
  await until('the pod runs', isRunning, generous);
}, 300_000);
afterAll(async () => {
  await node?.stop();
  await pair?.stop();
});

/** Runs a command that must succeed; what it printed. */
async function ok(args: string, input = ''): Promise<string> {
  const { code, stdout, stderr } = await kubectl.run(args.split(' '), input);
  expect(code, `kubectl ${args}: ${stderr}`).toBe(0);
  return stdout;
}

const web = () => pair.managed.client.get(deployments, { name: 'web', namespace: 'shop' });
const manifest = (name: string, data: string, metadata: object = {}) =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'shop', ...metadata },
    data: { data },
  });

describe('reading', () => {
  test('get, as a table, wide, as YAML, in all namespaces', async () => {
    const table = await ok('-n shop get deployments');
    expect(table).toMatch(/^NAME +READY +UP-TO-DATE +AVAILABLE +AGE\nweb +0\/0 /);
    expect(table).not.toContain('other');
    expect(await ok('-n shop get deployments -o wide')).toMatch(
      /CONTAINERS +IMAGES +SELECTOR\nweb .* busybox +app=web/,
    );
    expect(await ok('get deployments -A -o name')).toBe('deployment.apps/web\n');
    expect(parse(await ok('-n shop get deployment web -o yaml'))).toMatchObject({
      kind: 'Deployment',
      spec: { replicas: 0 },
    });
    expect(await ok('-n shop get deployment web --no-headers')).toMatch(/^web /);
    expect(await ok('get namespace shop -o name')).toBe('namespace/shop\n');
    expect(await ok('get namespaces -o name')).toBe('namespace/shop\n');
  });

  test('describe, events, logs, exec', async () => {
    expect(await ok('-n shop describe pod talker')).toMatch(/^Name: +talker/);
    // A pod runs before all that is told of it is written.
    await until('the pod has events', async () => /pod\/talker/i.test(await ok('-n shop events')), generous);
    expect(await ok('-n shop describe pod talker')).toMatch(/Events:\n/);
    expect(await ok('-n shop events')).not.toContain('stranger');
    await until('the pod has spoken', async () => (await ok('-n shop logs talker')).includes('last line'), generous);
    expect(await ok('-n shop logs talker')).toBe('first line\nlast line\n');
    expect(await ok('-n shop logs talker --tail=1')).toBe('last line\n');
    expect(await ok('-n shop exec talker -- echo hello')).toBe('hello\n');
  });

  test('what there is: kinds, versions, schemas, rights', async () => {
    expect(await ok('api-resources')).toMatch(/^deployments +deploy +apps\/v1 +true +Deployment$/m);
    expect(await ok('api-versions')).toMatch(/^apps\/v1$/m);
    expect(await ok('version')).toMatch(/Server Version: v1\./);
    expect(await ok('explain deployment.spec.replicas')).toMatch(/FIELD: replicas <integer>/);
    expect(await ok('-n shop auth can-i get deployments')).toBe('yes\n');
    expect(await ok('auth whoami')).toMatch(/Username/);
  });

  test('-w shows what happens', async () => {
    const watch = kubectl.start(['-n', 'shop', 'get', 'deployments', '-w', '--output-watch-events']);
    try {
      await watch.says(/ADDED +web/);
      for (const name of ['other', 'web']) {
        const patch = { metadata: { labels: { seen: 'yes' } } };
        await pair.managed.client.mergePatch(deployments, { name, namespace: 'shop' }, patch);
      }
      await watch.says(/MODIFIED +web/);
      expect(watch.output).not.toContain('other');
    } finally {
      await watch.stop('SIGKILL');
    }
  });
});

describe('writing', () => {
  test.each([
    ['merge', '{"metadata":{"labels":{"by-merge":"yes"}}}'],
    ['json', '[{"op":"add","path":"/metadata/labels/by-json","value":"yes"}]'],
    ['strategic', '{"metadata":{"labels":{"by-strategic":"yes"}}}'],
  ])('patch --type=%s', async (type, patch) => {
    await ok('-n shop label deployment web labelled=yes --overwrite');
    expect(await ok(`-n shop patch deployment web --type=${type} -p ${patch}`)).toMatch(/deployment.apps\/web patched/);
    expect((await web())?.metadata.labels).toMatchObject({ labelled: 'yes', [`by-${type}`]: 'yes' });
  });

  test('scale, restart and image of a deployment', async () => {
    expect(await ok('-n shop scale deployment web --replicas=2')).toBe('deployment.apps/web scaled\n');
    expect((await web())?.spec?.replicas).toBe(2);
    await ok('-n shop scale deployment web --replicas=0');
    expect(await ok('-n shop rollout restart deployment web')).toBe('deployment.apps/web restarted\n');
    expect(await ok('-n shop set image deployment web main=busybox:2')).toBe('deployment.apps/web image updated\n');
  });

  test.each(['', ' --server-side'])('apply%s creates, changes and leaves alone', async (how) => {
    const name = `applied${how.trim()}`;
    const apply = (data: string, rest = '') =>
      ok(`apply${how} -f -${rest}`, manifest(name, data, { annotations: tracked }));
    expect(await apply('one', ' --dry-run=server')).toContain('dry run');
    expect(await apply('one')).toMatch(how === '' ? /created/ : /serverside-applied/);
    await apply('two');
    const now = await pair.managed.client.get(configMaps, { name, namespace: 'shop' });
    expect(now?.data).toEqual({ data: 'two' });
    expect(await apply('two')).toMatch(how === '' ? /unchanged/ : /serverside-applied/);
    expect(await ok(`-n shop delete configmap ${name}`)).toContain('deleted');
  });

  test('create, replace and delete', async () => {
    expect(await ok('create -f -', manifest('made', 'one', { annotations: tracked }))).toBe('configmap/made created\n');
    expect(await ok('replace -f -', manifest('made', 'two', { annotations: tracked }))).toBe(
      'configmap/made replaced\n',
    );
    expect(await ok('-n shop delete configmap made')).toMatch(/configmap "made" deleted/);
    expect(await pair.managed.client.get(configMaps, { name: 'made', namespace: 'shop' })).toBeUndefined();
  });
});

describe('refusals', () => {
  test.each([
    ['-n foreign get secret private', /secrets "foreign\/private" belongs to no Application of this cluster/],
    ['-n shop get deployment other', /deployments "shop\/other" belongs to no Application of this cluster/],
    ['-n shop delete deployment other', /deployments "shop\/other" belongs to no Application of this cluster/],
    ['-n shop scale deployment other --replicas=9', /"shop\/other" belongs to no Application of this cluster/],
    ['-n shop logs stranger', /belongs to no Application of this cluster/],
    ['-n shop exec stranger -- echo hello', /belongs to no Application of this cluster/],
    [
      '-n foreign create configmap x --from-literal=a=b',
      /nothing may be created in namespace foreign: no Application of this cluster deploys there/,
    ],
    ['create namespace more', /nothing may be created outside of namespaces/],
    ['create clusterrole all --verb=get --resource=pods', /nothing may be created outside of namespaces/],
    ['delete namespace shop --wait=false', /namespaces "shop" belongs to no Application of this cluster/],
    ['-n shop create token default', /tokens of service accounts are not handed out through the resource proxy/],
    ['-n shop port-forward talker 1:1', /portforward is not served by the resource proxy/],
    ['get --raw /api/v1/namespaces/shop/services/a/proxy/', /is not served by the resource proxy/],
    ['get --raw /api/v1/namespaces/foreign/secrets/private?watch=true', /belongs to no Application of this cluster/],
    ['get --raw /api?agentName=absent', /the credentials are those of agent cluster1, the query names agent absent/],
    ['get --raw /metrics', /\/metrics is not served by the resource proxy/],
    ['--as=admin get namespaces', /impersonation is not served by the resource proxy/],
    ['-n shop get deployment nothing', /deployments.apps "nothing" not found/],
  ])('kubectl %s', async (args, words) => {
    const { code, stdout, stderr } = await kubectl.run(args.split(' '));
    expect([code === 0, stdout]).toEqual([false, '']);
    expect(stderr).toMatch(words);
  });

  test('lists show nothing of others', async () => {
    for (const args of ['-n foreign get secrets', '-n foreign get configmaps', 'get nodes', '-n foreign events']) {
      const { code, stdout, stderr } = await kubectl.run(args.split(' '));
      expect([code, stdout, stderr]).toEqual([0, '', expect.stringMatching(/^No (resources|events) found|^$/)]);
    }
  });

  test('nothing was changed, and the absent agent is named', async () => {
    const { client } = pair.managed;
    expect(await client.get(namespaces, { name: 'more' })).toBeUndefined();
    expect((await client.get(namespaces, { name: 'shop' }))?.metadata.deletionTimestamp).toBeUndefined();
    expect((await client.get(deployments, { name: 'other', namespace: 'shop' }))?.spec?.replicas).toBe(0);
    const { code, stderr } = await asAbsent.run(['get', 'namespaces']);
    expect([code, stderr]).toEqual([1, expect.stringContaining('agent absent is not connected')]);
  });
});
