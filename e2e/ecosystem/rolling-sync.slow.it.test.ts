import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, onTestFailed, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { configMaps, deployments, Informer, type KubeObject, resourceType, secrets } from '../../lib/kube/index.ts';
import { applyDeliveredArgoCd } from '../argocd/index.ts';
import { type FleetApplication, fleetApplications, fleetAppProjects, isSyncedAndHealthy } from '../fleet/index.ts';
import { type GitServer, startGitServer } from '../git/index.ts';
import { type Node, startNode } from '../node/index.ts';
import {
  type AgentCluster,
  argoCdProgram,
  freePort,
  type Pair,
  type Program,
  putArgoCdSettings,
  startPair,
} from '../pair/index.ts';
import { type Cluster, startCluster } from '../testbed/index.ts';
import { gatedShop } from './gated-shop.ts';

// An ApplicationSet with RollingSync on the hub, run by Argo CD's own application set controller, over the clusters of two
// agents. Each cluster has the Argo CD that the add-on delivers, with a node that runs the pods.

interface ApplicationSet extends KubeObject {
  spec: object;
  status?: { applicationStatus?: { application: string; status: string; message: string; step: string }[] };
}
const applicationSets = resourceType<ApplicationSet>({
  group: 'argoproj.io',
  version: 'v1alpha1',
  kind: 'ApplicationSet',
  plural: 'applicationsets',
  namespaced: true,
});

const namespace = 'argocd';
const patience = { timeoutMs: 240_000 };
const set = { namespace, name: 'shop' };

let pair: Pair<Cluster>;
let rest: AgentCluster<Cluster>;
let controller: Program;
let git: GitServer;
let folder: string;
const nodes: Node[] = [];
const stopped = new AbortController();
/** What the hub's Applications showed, in the order in which the API server said it. */
const history: { name: string; health: string | undefined; sync: string | undefined; isAsked: boolean }[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rolling-sync-'));
  git = await startGitServer(join(folder, 'git'));
  const mapping = { args: ['--destination-based-mapping'] };
  pair = await startPair({ name: 'first', principal: mapping, agent: mapping }, () => startCluster());
  rest = await pair.addAgent({ name: 'second', ...mapping });
  const { client } = pair.hub;
  for (const cluster of [pair.managed, rest.cluster]) {
    nodes.push(await startNode({ cluster, dir: join(folder, `node-${nodes.length}`) }));
    await applyDeliveredArgoCd(cluster.client, namespace);
  }
  for (const name of ['first', 'second']) {
    await client.mergePatch(secrets, { namespace, name: `cluster-${name}` }, { metadata: { labels: { wave: name } } });
  }
  await client.create(fleetAppProjects, {
    metadata: { namespace, name: 'default' },
    spec: {
      sourceRepos: ['*'],
      destinations: [{ namespace: '*', server: '*', name: '*' }],
      clusterResourceWhitelist: [{ group: '*', kind: '*' }],
    },
  });
  const informer = new Informer({ client, type: fleetApplications, namespace });
  const note = ({ metadata, status, operation }: FleetApplication) =>
    history.push({
      name: metadata.name,
      health: status?.health?.status,
      sync: status?.sync?.status,
      isAsked: operation !== undefined,
    });
  informer.subscribe({ added: note, updated: (_, now) => note(now) });
  void informer.run(stopped.signal).catch(() => undefined);
  await putArgoCdSettings(pair.hub);
  const port = async () => `127.0.0.1:${await freePort()}`;
  controller = await argoCdProgram('argocd-applicationset-controller', pair.hub, [
    '--enable-progressive-syncs',
    `--metrics-addr=${await port()}`,
    `--probe-addr=${await port()}`,
    `--webhook-addr=${await port()}`,
  ]);
  controller.start();
  await controller.says(/Starting workers/);
}, 600_000);
afterAll(async () => {
  stopped.abort();
  await controller?.stop('SIGKILL');
  await Promise.all(nodes.map((node) => node.stop()));
  await pair?.stop();
  await git?.stop();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(() =>
  onTestFailed(async () => {
    const show = async (client: Cluster['client']) => JSON.stringify(await client.list(fleetApplications), null, 1);
    const sets = JSON.stringify(await pair.hub.client.list(applicationSets), null, 1);
    console.error(sets, await show(pair.hub.client), history, controller.output.slice(-6_000));
  }),
);

const onHub = async (name: string) =>
  (await pair.hub.client.get(fleetApplications, { namespace, name: `shop-${name}` })) as FleetApplication;
const waveOf = async (name: string) =>
  (await pair.hub.client.get(applicationSets, set))?.status?.applicationStatus?.find(
    ({ application }) => application === `shop-${name}`,
  )?.status;
const openGate = (cluster: Cluster, release: number) =>
  cluster.client.create(configMaps, { metadata: { namespace: 'default', name: `gate-${release}` }, data: { a: 'b' } });
const refresh = (name: string) =>
  pair.hub.client.mergePatch(
    fleetApplications,
    { namespace, name: `shop-${name}` },
    { metadata: { annotations: { 'argocd.argoproj.io/refresh': 'normal' } } },
  );
/** The gate that the pods of a cluster's Deployment wait for; undefined when the cluster has no Deployment. */
async function deployed(cluster: Cluster): Promise<string | undefined> {
  const found = await cluster.client.get(deployments, { namespace: 'default', name: 'shop' });
  const { volumes = [] } = (found?.spec?.template?.spec ?? {}) as { volumes?: { configMap?: { name: string } }[] };
  return volumes[0]?.configMap?.name;
}
/** The place of the first entry from `after` on. */
function first(after: number, name: string, accept: (entry: (typeof history)[number]) => boolean): number {
  const index = history.slice(after).findIndex((entry) => entry.name === `shop-${name}` && accept(entry));
  return index < 0 ? Number.POSITIVE_INFINITY : after + index;
}
/** The controller has looked at the ApplicationSet once more. */
async function looksAgain(): Promise<void> {
  const after = controller.output.length;
  const annotations = { 'test/look': `${after}` };
  await pair.hub.client.mergePatch(applicationSets, set, { metadata: { annotations } });
  await controller.says(/end reconcile in/, { after });
}

test('step 2 is not synchronised before the agent of step 1 reports Healthy', async () => {
  await git.commit('shop', { 'shop.yaml': gatedShop(1) }, 'Release 1');
  await pair.hub.client.create(applicationSets, {
    metadata: set,
    spec: {
      goTemplate: true,
      generators: [{ clusters: { selector: { matchExpressions: [{ key: 'wave', operator: 'Exists' }] } } }],
      strategy: {
        type: 'RollingSync',
        rollingSync: {
          steps: ['first', 'second'].map((wave) => ({
            matchExpressions: [{ key: 'wave', operator: 'In', values: [wave] }],
          })),
        },
      },
      template: {
        metadata: { name: 'shop-{{.name}}', labels: { wave: '{{.metadata.labels.wave}}' } },
        spec: {
          project: 'default',
          source: { repoURL: git.url('shop'), path: '.', targetRevision: 'main' },
          destination: { name: '{{.name}}', namespace: 'default' },
        },
      },
    },
  } as ApplicationSet);
  await until('an Application for each cluster', async () =>
    (await Promise.all([onHub('first'), onHub('second')])).every((found) => found !== undefined),
  );
  await until('the first cluster has it', async () => (await deployed(pair.managed)) === 'gate-1', patience);
  await until(async () => {
    expect((await onHub('first')).status).toMatchObject({
      sync: { status: 'Synced' },
      health: { status: 'Progressing' },
    });
    expect((await onHub('second')).status?.sync?.status).toBe('OutOfSync');
    expect(await Promise.all([waveOf('first'), waveOf('second')])).toEqual(['Progressing', 'Waiting']);
  }, patience);
  await looksAgain();
  expect((await onHub('second')).status?.operationState).toBeUndefined();
  expect(await deployed(rest.cluster)).toBeUndefined();

  await openGate(pair.managed, 1);
  await until('the second cluster has it', async () => (await deployed(rest.cluster)) === 'gate-1', patience);
  await openGate(rest.cluster, 1);
  await until(async () => {
    expect([await onHub('first'), await onHub('second')].map(isSyncedAndHealthy)).toEqual([true, true]);
    expect(await Promise.all([waveOf('first'), waveOf('second')])).toEqual(['Healthy', 'Healthy']);
  }, patience);
  const healthy = first(0, 'first', ({ health, sync }) => health === 'Healthy' && sync === 'Synced');
  const asked = first(0, 'second', ({ isAsked }) => isAsked);
  expect(healthy).toBeLessThan(asked);
  expect(asked).toBeLessThan(Number.POSITIVE_INFINITY);
}, 600_000);

test('a rollout stands still while the agent of its step is away, and goes on when it is back', async () => {
  const start = history.length;
  await git.commit('shop', { 'shop.yaml': gatedShop(2) }, 'Release 2');
  await refresh('first');
  await until('step 1 progresses', async () => (await waveOf('first')) === 'Progressing', patience);
  await refresh('second');
  await until('step 2 waits', async () => (await waveOf('second')) === 'Waiting', patience);
  await until('the first cluster has it', async () => (await deployed(pair.managed)) === 'gate-2', patience);
  await until('the hub knows', async () => (await onHub('first')).status?.health?.status === 'Progressing', patience);

  await pair.agent.stop();
  await openGate(pair.managed, 2);
  await until(
    'the cluster is healthy, and nobody says so',
    async () => isSyncedAndHealthy(await pair.managed.client.get(fleetApplications, { namespace, name: 'shop-first' })),
    patience,
  );
  await looksAgain();
  expect(await Promise.all([waveOf('first'), waveOf('second')])).toEqual(['Progressing', 'Waiting']);
  expect(await deployed(rest.cluster)).toBe('gate-1');

  pair.agent.start();
  await until('the second cluster has it', async () => (await deployed(rest.cluster)) === 'gate-2', patience);
  await openGate(rest.cluster, 2);
  await until('both are done', async () => (await waveOf('second')) === 'Healthy', patience);
  const moved = first(start, 'first', ({ health }) => health === 'Progressing');
  const healthy = first(moved, 'first', ({ health, sync }) => health === 'Healthy' && sync === 'Synced');
  // Argo CD 3.5 asks some more times for what is synced already.
  const outdated = first(start, 'second', ({ sync }) => sync === 'OutOfSync');
  expect(healthy).toBeLessThan(first(outdated, 'second', ({ isAsked }) => isAsked));
}, 600_000);

test('known limit: an agent that is away when a release appears holds step 2 up no longer than its last report', async () => {
  await pair.agent.stop();
  await git.commit('shop', { 'shop.yaml': gatedShop(3) }, 'Release 3');
  await refresh('second');
  await until('step 2 goes first', async () => (await deployed(rest.cluster)) === 'gate-3', patience);
  expect(await deployed(pair.managed)).toBe('gate-2');
  expect(isSyncedAndHealthy(await onHub('first'))).toBe(true);
}, 600_000);
