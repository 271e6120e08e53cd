import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type AgentCluster,
  application,
  type Collector,
  namespace,
  type Pair,
  pairApplications,
  pairAppProjects,
  put,
  startCollector,
  startPair,
} from '../../e2e/pair/index.ts';
import { type Redis, startRedis } from '../../e2e/redis/index.ts';
import { until } from '../../lib/base/testing.ts';
import { configMaps, events, leases, namespaces, secrets } from '../../lib/kube/index.ts';
import { createLogger } from '../../lib/ops/index.ts';
import {
  type ClusterInfo,
  clusterInfoKey,
  decodeClusterInfo,
  encodeClusterInfo,
  RedisLink,
} from '../../lib/redis/index.ts';

/** A managed agent `cluster1` and an autonomous one `edge` on one principal; a Redis on the hub and one on `cluster1`. */
let pair: Pair;
let edge: AgentCluster;
let hubRedis: Redis;
let localRedis: Redis;
let collector: Collector;
const stop = new AbortController();
const links: Promise<void>[] = [];
const mode = 'argocd-agent.argoproj-labs.io/agent-mode';
const logs = () => ({
  details: () => [pair.principal, pair.agent, edge.agent].map(({ output }) => output.slice(-3_000)).join('\n---\n'),
});

beforeAll(async () => {
  [hubRedis, localRedis] = await Promise.all([startRedis({ args: ['--requirepass', 'secret'] }), startRedis()]);
  collector = await startCollector();
  const traced = [`--otlp-address=${collector.address}`, '--otlp-insecure'];
  pair = await startPair({
    principal: {
      redis: hubRedis.port,
      args: [...traced, '--namespace-create-enable', '--namespace-create-labels=team=edge', '--redis-password=secret'],
    },
    agent: {
      redis: localRedis.port,
      args: [...traced, '--heartbeat-interval=50ms', '--cache-refresh-interval=50ms'],
    },
  });
  edge = await pair.addAgent({ name: 'edge', mode: 'autonomous', withoutNamespace: true });
});
afterAll(async () => {
  stop.abort();
  await Promise.all(links);
  await pair?.stop();
  await Promise.all([hubRedis?.stop(), localRedis?.stop(), collector?.stop()]);
});

async function linkTo({ port }: Redis, password = ''): Promise<RedisLink> {
  const link = new RedisLink({
    address: `127.0.0.1:${port}`,
    credentials: () => ({ username: '', password }),
    tls: () => undefined,
    logger: createLogger({ level: 'fatal' }),
  });
  links.push(link.run(stop.signal));
  await until('Redis is there', async () => link.problem === undefined);
  return link;
}

describe('an autonomous agent', () => {
  const onHub = (name: string) => pair.hub.client.get(pairApplications, { name, namespace: 'edge' });

  test("its Application and project appear on the hub, in a namespace made for them, and requests of the hub's reach it", async () => {
    const { client } = edge.cluster;
    await client.create(pairAppProjects, { metadata: { name: 'shop', namespace }, spec: { sourceRepos: ['*'] } });
    await client.create(pairApplications, application({ name: 'web', namespace, spec: { project: 'shop' } }));
    const mirror = await until('it is on the hub', () => onHub('web'), logs());
    expect(mirror.spec).toMatchObject({ project: 'edge-shop', destination: { name: 'edge' } });
    expect((await pair.hub.client.get(namespaces, { name: 'edge' }))?.metadata.labels).toMatchObject({ team: 'edge' });
    await until(
      'the project is on the hub',
      () => pair.hub.client.get(pairAppProjects, { name: 'edge-shop', namespace }),
      logs(),
    );
    await pair.hub.client.mergePatch(pairApplications, { name: 'web', namespace: 'edge' }, { operation: { sync: {} } });
    await until(
      'the operation reaches the cluster',
      async () => (await client.get(pairApplications, { name: 'web', namespace }))?.operation,
      logs(),
    );
    await client.delete(pairApplications, { name: 'web', namespace });
    await until('it is gone', async () => (await onHub('web')) === undefined, logs());
  });

  test('comes in another mode only when an operator allows it, also after a restart of the principal', async () => {
    const { hub, principal } = pair;
    await edge.agent.stop();
    await principal.stop();
    principal.start();
    await principal.says(/principal serves agents/, { after: principal.output.length });
    const impostor = await pair.otherAgent({}, edge.cluster);
    const said = principal.output.length;
    impostor.start();
    await impostor.says(/authentication failed: this agent's mode is pinned to autonomous/);
    await principal.says(/An agent is refused: It comes as managed, but it has been autonomous.*agent-mode/, {
      after: said,
    });
    const event = await until(
      'operators are told',
      async () => (await hub.client.list(events, { namespace })).find(({ reason }) => reason === 'AgentModeRefused'),
      logs(),
    );
    expect(event.regarding).toMatchObject({ kind: 'Secret', name: 'cluster-edge' });
    await until('the refusal is counted', async () => {
      const text = await (await fetch(`http://127.0.0.1:${pair.principalMetricsPort}/metrics`)).text();
      return /refused_logins_total\{reason="wrong-mode"\} [1-9]/.exec(text) ?? undefined;
    });
    const cluster = { name: 'cluster-edge', namespace };
    await hub.client.mergePatch(secrets, cluster, { metadata: { annotations: { [mode]: 'managed' } } });
    await impostor.says(/Connected to the principal/);
    await until(
      'the new mode is recorded',
      async () => {
        const lease = await hub.client.get(leases, { name: 'argocd-agent-edge', namespace });
        return lease?.metadata.annotations?.[mode] === 'managed';
      },
      logs(),
    );
    const after = impostor.output.length;
    await hub.client.mergePatch(secrets, cluster, { metadata: { annotations: { [mode]: 'autonomous' } } });
    await impostor.says(/this agent's mode (has to be|is pinned to) autonomous/, { after });
    await impostor.stop();
    const back = edge.agent.output.length;
    edge.agent.start();
    await edge.agent.says(/Connected to the principal/, { after: back });
  });
});

describe('a managed agent beside it', () => {
  test('gets Applications, repositories and GPG keys', async () => {
    const { hub, managed } = pair;
    await hub.client.create(pairAppProjects, {
      metadata: { name: 'store', namespace },
      spec: {
        sourceRepos: ['*'],
        sourceNamespaces: ['*'],
        destinations: [{ name: '*', namespace: '*', server: '*' }],
      },
    });
    await put(
      hub.client,
      'repo-store',
      { url: 'https://example.com/store.git', project: 'store', password: 'p' },
      { labels: { 'argocd.argoproj.io/secret-type': 'repository' } },
    );
    await hub.client.create(configMaps, {
      metadata: { name: 'argocd-gpg-keys-cm', namespace },
      data: { ABCDEF: 'a key' },
    });
    await hub.client.create(
      pairApplications,
      application({ name: 'till', namespace: pair.name, spec: { project: 'store' } }),
    );
    await until('the Application', () => managed.client.get(pairApplications, { name: 'till', namespace }), logs());
    const repository = await until(
      'the repository',
      () => managed.client.get(secrets, { name: 'repo-store', namespace }),
      logs(),
    );
    expect(Buffer.from(repository.data?.password ?? '', 'base64').toString()).toBe('p');
    const keys = await until(
      'the GPG keys',
      () => managed.client.get(configMaps, { name: 'argocd-gpg-keys-cm', namespace }),
      logs(),
    );
    expect(keys.data).toEqual({ ABCDEF: 'a key' });
    expect(await edge.cluster.client.get(secrets, { name: 'repo-store', namespace })).toBeUndefined();
  });

  test('has the reason on its Application when credentials that it misses stay on the hub', async () => {
    const { hub, managed } = pair;
    const [here, there] = [
      { name: 'till', namespace: pair.name },
      { name: 'till', namespace },
    ];
    const warning = async () => {
      const { status } = (await hub.client.get(pairApplications, here)) ?? {};
      const conditions = (status?.conditions ?? []) as { type: string; message: string }[];
      return conditions.find(({ type }) => type === 'AgentWarning')?.message;
    };
    await put(
      hub.client,
      'repo-kept',
      { url: 'https://example.com/repo.git', password: 'p' },
      { labels: { 'argocd.argoproj.io/secret-type': 'repository' } },
    );
    const conditions = [{ type: 'ComparisonError', message: 'authentication required' }];
    await managed.client.mergePatch(pairApplications, there, { status: { conditions } });
    expect(await until('the reason', warning, logs())).toBe(
      `the hub keeps credentials for its source: Secret ${namespace}/repo-kept has no project; set project: store in it, share such repositories (--share-repositories of the principal), or add the repository on the cluster`,
    );
    await hub.client.mergePatch(secrets, { name: 'repo-kept', namespace }, { data: { project: btoa('store') } });
    await until('the Secret', () => managed.client.get(secrets, { name: 'repo-kept', namespace }), logs());
    await managed.client.mergePatch(pairApplications, there, { status: { conditions: null } });
    await until('no reason is left', async () => (await warning()) === undefined, logs());
  });

  test("traces its work on the hub's events", async () => {
    const { spans } = collector;
    await pair.hub.client.create(pairApplications, application({ name: 'traced', namespace: pair.name }));
    const made = await until(
      'the hub traces it',
      async () =>
        spans.find(
          ({ service, name, attributes }) =>
            service === 'principal' &&
            name === 'Application.create' &&
            attributes['k8s.resource.name'] === `${pair.name}/traced`,
        ),
      logs(),
    );
    expect(made.attributes).toMatchObject({ 'argocd.agent.name': pair.name, 'argocd.agent.mode': 'managed' });
    await until(
      'the agent traces it',
      async () => spans.find(({ service, parentId }) => service === 'agent-managed' && parentId === made.spanId),
      logs(),
    );
  });

  test('gives signs of life', async () => {
    await until('heartbeats are processed', async () => {
      const text = await (await fetch(`http://127.0.0.1:${pair.principalMetricsPort}/metrics`)).text();
      const [, count] =
        /principal_event_processing_time_count\{status="success",agent_name="cluster1",resource_type="heartbeat"\} (\d+)/.exec(
          text,
        ) ?? [];
      return Number(count) >= 3;
    });
  });

  test("what its Argo CD counts, and whether it is connected, is in the hub's Redis for Argo CD to show", async () => {
    const [hub, local] = await Promise.all([linkTo(hubRedis, 'secret'), linkTo(localRedis)]);
    const key = clusterInfoKey(`https://argocd-agent-resource-proxy:9090?agentName=${pair.name}`, 'gzip');
    const shown = (what: string, holds: (info: ClusterInfo) => boolean) =>
      until(
        what,
        async () => {
          const value = await hub.get(key);
          const info = value && decodeClusterInfo(value, 'gzip');
          return info && holds(info) ? info : undefined;
        },
        logs(),
      );
    const say = (applicationsCount: number) =>
      local.set(
        clusterInfoKey('https://kubernetes.default.svc', 'gzip'),
        encodeClusterInfo(
          {
            connectionState: { status: '', message: '', attemptedAt: undefined },
            serverVersion: '1.36',
            cacheInfo: { resourcesCount: 70, apisCount: 50, lastCacheSyncTime: '2026-01-02T03:04:05Z' },
            applicationsCount,
          },
          'gzip',
        ),
        60_000,
      );
    await say(1);
    expect(await shown('the counts', (info) => info.applicationsCount === 1)).toMatchObject({
      connectionState: { status: 'Successful' },
      serverVersion: '1.36',
      cacheInfo: { resourcesCount: 70, apisCount: 50 },
    });
    await say(2);
    await shown('a change', (info) => info.applicationsCount === 2);

    // Invalidate cache, as Argo CD's API server asks for it on the hub. It reaches the cluster's Argo CD where that can hear it.
    const refresh = 'argocd.argoproj.io/refresh';
    await pair.managed.client.create(secrets, {
      metadata: { name: 'in-cluster', namespace, labels: { 'argocd.argoproj.io/secret-type': 'cluster' } },
      data: { server: Buffer.from('https://kubernetes.default.svc').toString('base64') },
    });
    const asked = { metadata: { annotations: { [refresh]: '2026-01-02T03:10:00Z' } } };
    await pair.hub.client.mergePatch(secrets, { namespace, name: `cluster-${pair.name}` }, asked);
    await until(
      "the cluster's Argo CD is asked to drop its cache",
      async () => {
        const own = await pair.managed.client.get(secrets, { namespace, name: 'in-cluster' });
        return own?.metadata.annotations?.[refresh] !== undefined;
      },
      logs(),
    );

    await pair.agent.stop();
    const gone = await shown('that it is gone', (info) => info.connectionState.status === 'Failed');
    expect(gone).toMatchObject({
      applicationsCount: 0,
      cacheInfo: { resourcesCount: 0, apisCount: 0, lastCacheSyncTime: '2026-01-02T03:04:05Z' },
    });
    await pair.principal.stop();
    pair.principal.start();
    await hub.delete(key);
    pair.agent.start();
    await shown('all of it after a restart', (info) => {
      return info.connectionState.status === 'Successful' && info.applicationsCount === 2;
    });

    await hubRedis.stop();
    await pair.principal.says(/Redis cannot be used/);
    await pair.hub.client.create(pairApplications, application({ name: 'meanwhile', namespace: pair.name }));
    await until(
      'Applications go on without Redis',
      () => pair.managed.client.get(pairApplications, { name: 'meanwhile', namespace }),
      logs(),
    );
    hubRedis = await startRedis({ port: hubRedis.port, args: ['--requirepass', 'secret'] });
    await shown('all of it when Redis has lost it', (info) => info.applicationsCount === 2);
  });
});
