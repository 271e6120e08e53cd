import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AgentCluster, namespace, type Pair, pairAppProjects, startPair } from '../e2e/pair/index.ts';
import { until } from '../lib/base/testing.ts';
import { type ConfigMap, configMaps, type Secret, secrets } from '../lib/kube/index.ts';

// What goes one way, on real API servers and through the real programs: a managed agent `cluster1` and an autonomous one.

const gpgKeys = { name: 'argocd-gpg-keys-cm', namespace };
const repository = { name: 'git', namespace };
let pair: Pair;
let edge: AgentCluster;
const logs = () => ({
  details: () => [pair.principal, pair.agent, edge.agent].map(({ output }) => output.slice(-2_000)).join('\n---\n'),
});

beforeAll(async () => {
  pair = await startPair({ name: 'cluster1', agent: { args: ['--keep-gpg-keys'] } });
  edge = await pair.addAgent({ name: 'edge', mode: 'autonomous' });
});
afterAll(async () => {
  await pair?.stop();
});

const base64 = (text: string) => Buffer.from(text).toString('base64');
const localRepository = () => pair.managed.client.get(secrets, repository);
const mirror = (name: string) => pair.hub.client.get(pairAppProjects, { name: `edge-${name}`, namespace });

async function createRepository(): Promise<Secret> {
  return pair.hub.client.create(secrets, {
    metadata: {
      ...repository,
      labels: { 'argocd.argoproj.io/secret-type': 'repository' },
      ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: 'not-there' }],
      finalizers: ['example.com/keep'],
    },
    data: { url: base64('https://example.com/x.git'), project: base64('team'), password: base64('not to be told') },
  } as Secret);
}

test('a repository follows its project to the managed cluster, is put back there and leaves with the project', async () => {
  await createRepository();
  expect(await localRepository()).toBeUndefined();
  await pair.hub.client.create(pairAppProjects, {
    metadata: { name: 'team', namespace },
    spec: { sourceNamespaces: ['cluster1'], sourceRepos: ['*'], destinations: [{ name: 'cluster1', namespace: '*' }] },
  });
  const copy = await until('the repository is there', localRepository, logs());
  expect(copy.data).toEqual((await pair.hub.client.get(secrets, repository))?.data);
  expect(copy.metadata.labels).toEqual({ 'argocd.argoproj.io/secret-type': 'repository' });
  expect(copy.metadata.ownerReferences).toBeUndefined();
  expect(copy.metadata.finalizers).toBeUndefined();

  await pair.managed.client.mergePatch(secrets, repository, {
    data: { url: base64('https://mine'), extra: base64('x') },
  });
  await until(
    'the change is put back',
    async () => (await localRepository())?.data?.url === base64('https://example.com/x.git'),
    logs(),
  );
  await pair.managed.client.delete(secrets, repository);
  await until('the deletion is undone', localRepository, logs());

  await pair.hub.client.mergePatch(
    pairAppProjects,
    { name: 'team', namespace },
    { spec: { destinations: [{ name: 'another', namespace: '*' }] } },
  );
  await until('it is taken away', async () => (await localRepository()) === undefined, logs());
  const said = `${pair.principal.output}${pair.agent.output}`;
  expect(said).not.toContain(base64('not to be told'));
  expect(said).not.toContain('not to be told');
});

test('a repository that was removed on the hub while the agent was away is removed when it is back', async () => {
  await pair.hub.client.mergePatch(
    pairAppProjects,
    { name: 'team', namespace },
    { spec: { destinations: [{ name: 'cluster1', namespace: '*' }] } },
  );
  await until('the repository is there again', localRepository, logs());
  await pair.agent.stop('SIGKILL');
  await pair.principal.stop('SIGKILL');
  await pair.hub.client.mergePatch(secrets, repository, { metadata: { finalizers: null } });
  await pair.hub.client.delete(secrets, repository);
  pair.principal.start();
  pair.agent.start();
  await until('it is removed', async () => (await localRepository()) === undefined, logs());
});

test('GPG keys reach the managed cluster and no other ConfigMap does', async () => {
  const localKeys = () => pair.managed.client.get(configMaps, gpgKeys);
  await pair.hub.client.create(configMaps, { metadata: gpgKeys, data: { '4AEE18F83AFDEB23': 'a key' } } as ConfigMap);
  await until('the keys are there', async () => (await localKeys())?.data?.['4AEE18F83AFDEB23'], logs());
  await pair.hub.client.mergePatch(configMaps, gpgKeys, { data: { '4AEE18F83AFDEB23': null, B: 'another key' } });
  await until('they are others', async () => (await localKeys())?.data?.B, logs());
  expect((await localKeys())?.data).toEqual({ B: 'another key' });
  const uid = (await localKeys())?.metadata.uid;
  await pair.hub.client.delete(configMaps, gpgKeys);
  const left = await until(
    'they are gone',
    async () => {
      const found = await localKeys();
      return found?.data?.B === undefined && found;
    },
    logs(),
  );
  // Argo CD's repo server does not start without the ConfigMap. It stays, is empty, and is no copy any more.
  expect(left.metadata.uid).toBe(uid);
  expect(left.data ?? {}).toEqual({});
  expect(left.metadata.annotations ?? {}).toEqual({});
});

test('GPG keys of the cluster’s own are given back when the hub has none any more', async () => {
  const localKeys = () => pair.managed.client.get(configMaps, gpgKeys);
  const own = { labels: { 'app.kubernetes.io/part-of': 'argocd' }, annotations: { 'example.com/of': 'the cluster' } };
  const { uid } = await until('a ConfigMap of the cluster alone', async () => (await localKeys())?.metadata, logs());
  await pair.managed.client.mergePatch(configMaps, gpgKeys, { metadata: own, data: { OWN: 'its key' } });
  await pair.hub.client.create(configMaps, { metadata: gpgKeys, data: { HUB: 'a key' } } as ConfigMap);
  await until(
    'the hub’s keys are there instead',
    async () => isDeepStrictEqual((await localKeys())?.data, { HUB: 'a key' }),
    logs(),
  );
  await pair.hub.client.delete(configMaps, gpgKeys);
  await until('its own are back', async () => isDeepStrictEqual((await localKeys())?.data, { OWN: 'its key' }), logs());
  const { metadata } = (await localKeys()) ?? {};
  expect(metadata).toMatchObject({ uid, ...own });
  expect(metadata?.annotations).toEqual(own.annotations);
});

test('a project of an autonomous agent is mirrored, protected, and never the hub’s own', async () => {
  const own = { name: 'edge-taken', namespace };
  await pair.hub.client.create(pairAppProjects, { metadata: own, spec: { description: 'of the hub' } });
  for (const name of ['tools', 'taken']) {
    await edge.cluster.client.create(pairAppProjects, {
      metadata: { name, namespace, finalizers: ['resources-finalizer.argocd.argoproj.io'] },
      spec: {
        sourceRepos: ['*'],
        destinations: [{ server: 'https://kubernetes.default.svc', namespace: 'x' }],
        roles: [{ name: 'r', policies: [`p, proj:${name}:r, applications, get, ${name}/*, allow`] }],
      },
    });
  }
  const first = await until('the mirror is there', () => mirror('tools'), logs());
  expect(first.spec).toEqual({
    sourceRepos: ['*'],
    sourceNamespaces: ['edge'],
    destinations: [
      { name: 'edge', server: 'https://argocd-agent-resource-proxy:9090\\?agentName=edge', namespace: 'x' },
    ],
    roles: [{ name: 'r', policies: ['p, proj:edge-tools:r, applications, get, edge-tools/edge/*, allow'] }],
  });
  await pair.hub.client.mergePatch(
    pairAppProjects,
    { name: 'edge-tools', namespace },
    { spec: { sourceRepos: ['mine'] } },
  );
  await until('the edit is put back', async () => isDeepStrictEqual((await mirror('tools'))?.spec, first.spec), logs());
  await pair.hub.client.delete(pairAppProjects, { name: 'edge-tools', namespace });
  await until(
    'the deletion is undone',
    async () => {
      const now = await mirror('tools');
      return now !== undefined && now.metadata.uid !== first.metadata.uid;
    },
    logs(),
  );
  expect((await pair.hub.client.get(pairAppProjects, own))?.spec).toEqual({ description: 'of the hub' });
  await pair.principal.says(/AppProject cannot be had here: the hub has a project of its own of that name/);

  // Also while the agent is away, from the start of the principal.
  await edge.agent.stop('SIGKILL');
  await pair.principal.stop('SIGKILL');
  await pair.hub.client.mergePatch(
    pairAppProjects,
    { name: 'edge-tools', namespace },
    { spec: { sourceRepos: ['mine'] } },
  );
  const after = pair.principal.output.length;
  pair.principal.start();
  // Changes while the agent was away are not known to be foreign, so only later changes are reverted.
  const found = (await mirror('tools'))?.spec;
  await pair.principal.says(/principal serves agents/, { after });
  await pair.hub.client.mergePatch(
    pairAppProjects,
    { name: 'edge-tools', namespace },
    { spec: { sourceRepos: ['other'] } },
  );
  await until(
    'the later edit is put back',
    async () => isDeepStrictEqual((await mirror('tools'))?.spec, found),
    logs(),
  );
  edge.agent.start();
  await until(
    'the agent puts all right',
    async () => isDeepStrictEqual((await mirror('tools'))?.spec, first.spec),
    logs(),
  );

  await edge.cluster.client.mergePatch(
    pairAppProjects,
    { name: 'tools', namespace },
    { metadata: { finalizers: null } },
  );
  await edge.cluster.client.delete(pairAppProjects, { name: 'tools', namespace });
  await until('the mirror goes with it', async () => (await mirror('tools')) === undefined, logs());
});
