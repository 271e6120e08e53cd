import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { createClient, RESP_TYPES } from '@redis/client';
import { hash } from 'bcryptjs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { configMaps, type KubeClient, secrets } from '../../lib/kube/index.ts';
import { issueCertificate, type KeyCertificate } from '../../lib/pki/index.ts';
import { deployWeb, ProxyClient, TerminalClient } from '../live/index.ts';
import { type KubeletPod, kubeletPods, type Node, startNode } from '../node/index.ts';
import {
  type AgentCluster,
  application,
  freePort,
  namespace,
  type Originals,
  type Pair,
  pairApplications,
  pairAppProjects,
  put,
  startPair,
} from '../pair/index.ts';
import { type Redis, startRedis } from '../redis/index.ts';

// What principal and agents do for users, whichever programs they are. The tests play Argo CD.

const patient = { timeoutMs: 60_000 };
const refresh = 'argocd.argoproj.io/refresh';
const sourceUid = 'argocd.argoproj.io/source-uid';
const operation = { sync: { prune: true } };
const startedAt = '2026-01-01T00:00:00Z';

/** How agents log in and connect, and how Applications find theirs. */
export interface PairWay {
  readonly way: string;
  readonly isMapped: boolean;
}

/** The ways that every two programs are tested with. */
export const pairWays: readonly PairWay[] = [
  { way: 'by destination, certificates, HTTP/2', isMapped: true },
  { way: 'by name, passwords, WebSocket', isMapped: false },
];

/** Declares the tests of a principal with a managed and an autonomous agent, in the `describe` that calls it. */
export function testDelivery(isMapped: boolean, executables: () => Promise<Originals>): void {
  let folder: string;
  let pair: Pair;
  let other: AgentCluster;
  let hub: KubeClient;

  /** How agents log in and connect, for the principal and for each agent. */
  async function access() {
    if (isMapped) {
      return { principal: ['--destination-based-mapping'], managed: ['--destination-based-mapping'], autonomous: [] };
    }
    const file = (name: string) => join(folder, name);
    const users = ['cluster1', 'cluster2'];
    const hashed = await hash('secret', 4);
    await writeFile(file('users'), users.map((user) => `${user}:${hashed}\n`).join(''));
    await Promise.all(users.map((user) => writeFile(file(user), `${user}:secret`, { mode: 0o600 })));
    const agent = (user: string) => ['--enable-websocket', `--creds=userpass:${file(user)}`];
    return {
      principal: ['--enable-websocket', `--auth=userpass:${file('users')}`],
      managed: agent('cluster1'),
      autonomous: agent('cluster2'),
    };
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'users-'));
    const [originals, args] = await Promise.all([executables(), access()]);
    const { principal, managed } = args;
    pair = await startPair({ originals, principal: { args: principal }, agent: { args: managed } });
    hub = pair.hub.client;
    other = await pair.addAgent({ name: 'cluster2', mode: 'autonomous', args: args.autonomous });
  });
  afterAll(async () => {
    await pair?.stop();
    await rm(folder, { recursive: true });
  });

  const waitFor = <T>(what: string, look: () => Promise<T>) =>
    until(what, look, {
      ...patient,
      details: () =>
        [pair.principal, pair.agent, other.agent].map(({ output }) => output.slice(-2_000)).join('\n---\n'),
    });
  const restart = async (program: Pair['principal']) => {
    await program.stop();
    program.start();
  };

  /** An Application, where users ask for something (`hub`) and where Argo CD works (`cluster`). */
  const ways = [
    {
      mode: 'managed',
      on: () => ({ name: 'shop', namespace: isMapped ? namespace : pair.name }),
      owner: () => hub,
      cluster: () => pair.managed.client,
      destination: () => ({ name: isMapped ? pair.name : 'in-cluster', namespace: 'shop' }),
    },
    {
      mode: 'autonomous',
      on: () => ({ name: 'shop', namespace: 'cluster2' }),
      owner: () => other.cluster.client,
      cluster: () => other.cluster.client,
      destination: () => ({ name: 'in-cluster', namespace: 'shop' }),
    },
  ];

  describe.each(ways)('$mode', ({ mode, on, owner, cluster, destination }) => {
    const local = { name: 'shop', namespace };
    const onHub = () => hub.get(pairApplications, on());
    const onCluster = () => cluster().get(pairApplications, local);
    const own = () => (mode === 'managed' ? on() : local);
    const far = () => (mode === 'managed' ? onCluster() : onHub());
    const phase = (found: Awaited<ReturnType<typeof onHub>>) =>
      (found?.status?.operationState as { phase?: string } | undefined)?.phase;
    const works = (fields: object) => cluster().mergePatch(pairApplications, local, fields);

    test('an Application is created, edited, and its status is reported', async () => {
      const metadata = { annotations: { note: 'x' } };
      const made = application({ ...own(), metadata, spec: { destination: destination() } });
      await owner().create(pairApplications, made);
      await waitFor('it is there', far);
      await owner().mergePatch(pairApplications, own(), { spec: { source: { path: 'blue' } } });
      await waitFor('the edit', async () => JSON.stringify((await far())?.spec.source).includes('blue'));
      await works({ status: { sync: { status: 'Synced' }, health: { status: 'Healthy' } } });
      await waitFor('the status', async () => (await onHub())?.status?.sync);
    });

    test('a change by others is undone', async () => {
      const reach = mode === 'managed' ? cluster() : hub;
      const key = mode === 'managed' ? local : on();
      await reach.mergePatch(pairApplications, key, { spec: { source: { path: 'red' } } });
      await waitFor('the revert', async () => JSON.stringify((await far())?.spec.source).includes('blue'));
    });

    test('a sync that the hub asks for runs, is shown while it runs, and is terminated', async () => {
      await hub.mergePatch(pairApplications, on(), { operation });
      await waitFor('the operation', async () => (await onCluster())?.operation);
      await works({ status: { operationState: { phase: 'Running', operation, startedAt } } });
      await waitFor('it runs', async () => phase(await onHub()) === 'Running');
      expect((await onHub())?.operation, 'what `argocd app terminate-op` needs').toMatchObject(operation);
      await hub.mergePatch(pairApplications, on(), { status: { operationState: { phase: 'Terminating' } } });
      await waitFor('it is to end', async () => phase(await onCluster()) === 'Terminating');
      await works({ operation: null, status: { operationState: { phase: 'Failed', finishedAt: startedAt } } });
      await waitFor('it has ended', async () => phase(await onHub()) === 'Failed' && !(await onHub())?.operation);
    });

    test('a refresh that the hub asks for is passed on, and is over when it is done', async () => {
      // Not `normal`: that is what an agent that has reverted a change asks for by itself.
      await hub.mergePatch(pairApplications, on(), { metadata: { annotations: { [refresh]: 'hard' } } });
      await waitFor('the refresh', async () => (await onCluster())?.metadata.annotations?.[refresh] === 'hard');
      await waitFor('its end', async () => {
        // Argo CD answers as often as it is asked: argocd-agent's agent copies the annotation with every update.
        await works({ metadata: { annotations: { [refresh]: null } } });
        return (await onHub())?.metadata.annotations?.[refresh] === undefined;
      });
    });

    test('after restarts of both sides, changes go on, and a deletion too', async () => {
      const uid = (await onCluster())?.metadata.uid;
      await restart(pair.principal);
      await owner().mergePatch(pairApplications, own(), { spec: { source: { path: 'green' } } });
      await waitFor('the edit', async () => JSON.stringify((await far())?.spec.source).includes('green'));
      await restart(mode === 'managed' ? pair.agent : other.agent);
      await owner().mergePatch(pairApplications, own(), { spec: { source: { path: 'white' } } });
      await waitFor('the edit', async () => JSON.stringify((await far())?.spec.source).includes('white'));
      expect((await onCluster())?.metadata.uid).toBe(uid);
      await owner().delete(pairApplications, own());
      await waitFor('it is gone', async () => (await far()) === undefined);
    });
  });

  test('a mirror of an AppProject that is changed while the principal is away is corrected', async () => {
    const key = { name: 'cluster2-team', namespace };
    const spec = { description: 'One', sourceRepos: ['*'], destinations: [{ server: '*', namespace: '*' }] };
    await other.cluster.client.create(pairAppProjects, { metadata: { name: 'team', namespace }, spec });
    await waitFor('the mirror', () => hub.get(pairAppProjects, key));
    await pair.principal.stop();
    await hub.mergePatch(pairAppProjects, key, { spec: { description: 'Two' } });
    pair.principal.start();
    await waitFor('it is corrected', async () => (await hub.get(pairAppProjects, key))?.spec.description === 'One');
  });

  test('an Application that a managed cluster has already is adopted', async () => {
    const cluster = pair.managed.client;
    const key = { name: 'legacy', namespace };
    const annotations = { 'argocd.argoproj.io/adoption-policy': 'always' };
    const { metadata } = await cluster.create(pairApplications, application({ ...key, metadata: { annotations } }));
    const destination = { name: isMapped ? pair.name : 'in-cluster', namespace: 'shop' };
    const on = { name: 'legacy', namespace: isMapped ? namespace : pair.name };
    const made = await hub.create(pairApplications, application({ ...on, spec: { destination } }));
    const copy = await waitFor('it is adopted', async () => {
      const found = await cluster.get(pairApplications, key);
      return found?.metadata.annotations?.[sourceUid] === made.metadata.uid ? found : undefined;
    });
    expect([copy.metadata.uid, copy.spec.source]).toEqual([metadata.uid, made.spec.source]);
  });

  test('project, repository and keys of the hub reach a managed cluster, change and leave with it', async () => {
    const cluster = pair.managed.client;
    const project = { name: 'shared', namespace };
    const repository = { name: 'git', namespace };
    const keys = { name: 'argocd-gpg-keys-cm', namespace };
    const labels = { 'argocd.argoproj.io/secret-type': 'repository' };
    const url = async () => Buffer.from((await cluster.get(secrets, repository))?.data?.url ?? '', 'base64').toString();
    const describes = async () => (await cluster.get(pairAppProjects, project))?.spec.description;
    await hub.create(pairAppProjects, {
      metadata: project,
      spec: {
        description: 'One',
        sourceRepos: ['*'],
        sourceNamespaces: [pair.name],
        destinations: [{ name: pair.name, server: '*', namespace: '*' }],
      },
    });
    await put(hub, 'git', { url: 'https://example.com/one', project: 'shared' }, { labels });
    await hub.create(configMaps, { metadata: keys, data: { A: 'one' } });
    await waitFor('the project', async () => (await describes()) === 'One');
    await waitFor('the repository', async () => (await url()) === 'https://example.com/one');
    await waitFor('the keys', async () => (await cluster.get(configMaps, keys))?.data?.A === 'one');

    // One after the other: argocd-agent's principal sends a project's repositories with it, perhaps an older state last.
    await put(hub, 'git', { url: 'https://example.com/two', project: 'shared' }, { labels });
    await waitFor('the edit of the repository', async () => (await url()) === 'https://example.com/two');
    await hub.mergePatch(pairAppProjects, project, { spec: { description: 'Two' } });
    await waitFor('the edit of the project', async () => (await describes()) === 'Two');
    await hub.mergePatch(configMaps, keys, { data: { A: 'two' } });
    await waitFor('the edit of the keys', async () => (await cluster.get(configMaps, keys))?.data?.A === 'two');

    await cluster.mergePatch(pairAppProjects, project, { spec: { description: 'Three' } });
    await waitFor('the revert', async () => (await describes()) === 'Two');

    await hub.delete(configMaps, keys);
    await hub.delete(secrets, repository);
    // argocd-agent's agent deletes the ConfigMap, without which Argo CD's repo server does not start.
    await waitFor('no keys', async () => (await cluster.get(configMaps, keys))?.data?.A === undefined);
    await waitFor('no repository', async () => (await cluster.get(secrets, repository)) === undefined);
    await hub.delete(pairAppProjects, project);
    await waitFor('no project', async () => (await cluster.get(pairAppProjects, project)) === undefined);
  });
}

/** Declares the tests of live access through a principal to a managed agent, in the `describe` that calls it. */
export function testLiveAccess(executables: () => Promise<Originals>): void {
  let pair: Pair;
  let node: Node;
  let credential: KeyCertificate;
  let redis: { readonly hub: Redis; readonly cluster: Redis };
  let ports: { readonly resources: number; readonly redis: number };

  beforeAll(async () => {
    ports = { resources: await freePort(), redis: await freePort() };
    redis = { hub: await startRedis(), cluster: await startRedis() };
    pair = await startPair({
      originals: await executables(),
      principal: { resourceProxy: ports.resources, redisProxy: ports.redis, redis: redis.hub.port },
      agent: { redis: redis.cluster.port },
    });
    node = await startNode({ cluster: pair.managed, dir: pair.managed.dir });
    credential = await issueCertificate({ authority: pair.authority, commonName: pair.name, usages: ['client'] });
    // An agent of this project serves only what belongs to an Application that it has.
    await deployWeb(pair.hub.client, pair.name, pair.managed.client, undefined);
  });
  afterAll(async () => {
    await node?.stop();
    await pair?.stop();
    await Promise.all([redis?.hub.stop(), redis?.cluster.stop()]);
  });
  const details = () => [pair.principal, pair.agent].map(({ output }) => output.slice(-2_000)).join('\n---\n');

  test('an object that Argo CD tracks is read and changed, another is refused', async () => {
    const { client } = pair.managed;
    const partOf = { 'app.kubernetes.io/part-of': 'argocd' };
    await client.create(configMaps, { metadata: { name: 'argocd-cm', namespace, labels: partOf } });
    const tracked = { 'argocd.argoproj.io/tracking-id': 'web:/ConfigMap:default/settings' };
    await client.create(configMaps, {
      metadata: { name: 'settings', namespace: 'default', annotations: tracked },
      data: { a: 'b' },
    });
    await client.create(configMaps, { metadata: { name: 'foreign', namespace: 'default' } });
    const proxy = new ProxyClient(ports.resources, pair.authority, credential);
    const path = (name: string) => `/api/v1/namespaces/default/configmaps/${name}`;
    const read = () => proxy.send('GET', path('settings'));
    const found = await until('it is read', async () => ((await read()).status === 200 ? read() : undefined), {
      ...patient,
      details,
    });
    expect(JSON.parse(found.text).data).toEqual({ a: 'b' });
    const body = JSON.stringify({ data: { a: 'c' } });
    const headers = { 'content-type': 'application/merge-patch+json' };
    expect((await proxy.send('PATCH', path('settings'), { body, headers })).status).toBe(200);
    expect((await client.get(configMaps, { name: 'settings', namespace: 'default' }))?.data).toEqual({ a: 'c' });
    expect((await proxy.send('GET', path('foreign'))).status).toBeGreaterThanOrEqual(400);
  });

  test('logs and a terminal of a pod that Argo CD tracks', async () => {
    const { client } = pair.managed;
    const key = { name: 'web', namespace: 'default' };
    const annotations = { 'argocd.argoproj.io/tracking-id': 'web:/Pod:default/web' };
    const command = ['sh', '-c', 'echo hello; exec sleep 100000'];
    await client.create(kubeletPods, {
      metadata: { ...key, annotations },
      spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'main', image: 'busybox', command }] },
    } as KubeletPod);
    const isRunning = async () => (await client.get(kubeletPods, key))?.status?.phase === 'Running';
    await until('the pod runs', isRunning, { timeoutMs: 120_000 });
    const path = '/api/v1/namespaces/default/pods/web';
    const proxy = new ProxyClient(ports.resources, pair.authority, credential);
    const logs = async () => (await proxy.send('GET', `${path}/log?container=main`)).text.includes('hello');
    await until('its logs', logs, { ...patient, details });
    const at = { port: ports.resources, authority: pair.authority, client: credential };
    const streams = 'stdin=true&stdout=true&stderr=true&tty=true';
    const terminal = await TerminalClient.open(at, `${path}/exec?container=main&${streams}&command=sh`);
    terminal.type("echo al''ive\n");
    await terminal.shows('alive');
    terminal.webSocket.close();
  });

  test("an Application's tree is read from the cluster's Redis", async () => {
    const connect = (port: number) =>
      createClient({ socket: { host: '127.0.0.1', port, reconnectStrategy: false } }).connect();
    const [cluster, server] = await Promise.all([connect(redis.cluster.port), connect(ports.redis)]);
    try {
      const tree = gzipSync('{"nodes":[]}');
      await cluster.set('app|resources-tree|web|1.8.3.gz', tree);
      const key = `app|resources-tree|${pair.name}_web|1.8.3.gz`;
      const asBytes = server.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
      await until('the tree', async () => tree.equals((await asBytes.get(key)) ?? Buffer.of()), {
        ...patient,
        details,
      });
    } finally {
      cluster.destroy();
      server.destroy();
    }
  });
}
