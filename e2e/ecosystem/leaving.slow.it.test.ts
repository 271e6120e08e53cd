import { afterAll, beforeAll, beforeEach, expect, onTestFailed, test } from 'vitest';
import { effort, until } from '../../lib/base/testing.ts';
import { configMaps } from '../../lib/kube/index.ts';
import {
  type ArgoObject,
  application,
  namespace,
  pairApplicationSets,
  pairApplications,
  pairAppProjects,
  permissiveProject,
} from '../pair/index.ts';
import { autonomous, type LeavingScene, startLeavingScene, target } from './leaving-scene.ts';
import {
  autonomousWays,
  type Kind,
  type LeavingPlace,
  type LeavingWay,
  managedWays,
  type Order,
  orders,
  teamOf,
} from './leaving-ways.ts';

// What becomes of workloads when their Application leaves, with the Argo CD that the add-on delivers: it removes them because of
// a finalizer on the copy, and of nothing else. Each way, in each order in which the two sides learn of it, for each kind of
// Application. lib/argocd/leaving.test.ts has more ways (finalizers that change, an Application made anew) and a hub that takes
// no writes; lib/argocd/managed/deletion.test.ts has moves between two agents, and argocd-agent's agent.

const patience = { timeoutMs: 200_000 };
const sourceUid = 'argocd.argoproj.io/source-uid';
const foreground = 'resources-finalizer.argocd.argoproj.io/foreground';

let scene: LeavingScene;
/** All that has left. */
const left: Cell[] = [];

beforeAll(async () => {
  scene = await startLeavingScene();
}, 600_000);
afterAll(() => scene?.stop(), 120_000);
beforeEach(() => onTestFailed(async () => console.log(await scene.troubles())));

/** One Application, and where it stands. */
interface Cell extends LeavingPlace {
  readonly kind: Kind;
  readonly way: string;
  readonly order: Order;
  readonly rule: LeavingWay;
  readonly onCluster: { readonly namespace: string; readonly name: string };
  /** UID of the ConfigMap that it deployed. */
  workload?: string | undefined;
}

/** What became of it. */
interface Outcome {
  readonly workload: 'went' | 'stays';
  /** An Application of the cluster alone is its own. */
  readonly application: 'went' | 'own' | 'copy';
  readonly hub: 'went' | 'stays';
}

const slug = (text: string) => text.toLowerCase().replace(/[^a-z0-9]+/g, '-');
const keyOf = ({ metadata }: ArgoObject) => `${metadata.namespace}/${metadata.name}`;
const placeOf = (ref: { readonly namespace: string; readonly name: string }) => `${ref.namespace}/${ref.name}`;

function cellsOf(order: Order): Cell[] {
  const cell = (kind: Kind, way: string, rule: LeavingWay): Cell => {
    const name = slug(`${orders.indexOf(order)}-${kind}-${way}`);
    const at = rule.namespaceIn?.(order) ?? namespace;
    const isOwn = kind === 'autonomous';
    return {
      ...{ kind, way, order, rule, name },
      hub: scene.pair.hub.client,
      cluster: (isOwn ? scene.own.cluster : scene.pair.managed).client,
      onHub: { namespace: isOwn ? autonomous : at, name },
      onCluster: { namespace: at, name },
    };
  };
  const managed = Object.entries(managedWays).filter(([, rule]) => rule.orders?.includes(order) ?? true);
  return [
    ...managed.flatMap(([way, rule]) => (['copy', 'taken over'] as const).map((kind) => cell(kind, way, rule))),
    ...Object.entries(autonomousWays).map(([way, rule]) => cell('autonomous', way, rule)),
  ];
}

/** What the rule says. */
function expected({ kind, rule }: Cell): Outcome {
  const isGone = rule.goes.includes(kind);
  const isOwn =
    kind === 'autonomous' ? rule.staysOnCluster === true : kind === 'taken over' && rule.staysOnHub === true;
  return {
    workload: isGone ? 'went' : 'stays',
    application: kind !== 'autonomous' && rule.staysOnCluster ? 'copy' : isOwn ? 'own' : 'went',
    hub: rule.staysOnHub ? 'stays' : 'went',
  };
}

/** What is there, of many. */
async function observe(cells: readonly Cell[]): Promise<Map<Cell, Outcome>> {
  const { hub, managed } = scene.pair;
  const clients = [hub.client, managed.client, scene.own.cluster.client];
  const lists = await Promise.all(
    clients.map(async (client) => {
      const [applications, maps] = await Promise.all([
        client.list(pairApplications),
        client.list(configMaps, { namespace: target }),
      ]);
      const places = new Map(applications.map((one) => [keyOf(one), one]));
      return [client, { places, uids: new Set(maps.map(({ metadata }) => metadata.uid)) }] as const;
    }),
  );
  const found = new Map(lists);
  return new Map(
    cells.map((cell) => {
      const there = found.get(cell.cluster);
      const local = there?.places.get(placeOf(cell.onCluster));
      const onHub = found.get(cell.hub)?.places.get(placeOf(cell.onHub));
      return [
        cell,
        {
          workload: there?.uids.has(cell.workload) ? 'stays' : 'went',
          application: local === undefined ? 'went' : isOwn(cell, local) ? 'own' : 'copy',
          hub: onHub === undefined || onHub.metadata.deletionTimestamp !== undefined ? 'went' : 'stays',
        },
      ];
    }),
  );
}

/** Whether it is as it was before it became a copy. */
function isOwn({ kind }: Cell, { metadata, spec }: ArgoObject): boolean {
  const { labels, annotations, deletionTimestamp } = metadata;
  const revision = (spec.source as { readonly targetRevision: string }).targetRevision;
  return (
    kind === 'autonomous' ||
    (annotations?.[sourceUid] === undefined &&
      deletionTimestamp === undefined &&
      labels?.mine === 'yes' &&
      revision === 'main')
  );
}

function specOf(cell: Cell, destination: object, targetRevision: string) {
  return {
    source: { repoURL: scene.git.url('shop'), path: cell.name, targetRevision },
    destination: { ...destination, namespace: target },
    syncPolicy: { automated: {} },
  };
}

/** The Application of the cluster itself. */
function ownApplication(cell: Cell): ArgoObject {
  return application({
    ...cell.onCluster,
    metadata: { labels: { mine: 'yes' }, finalizers: cell.kind === 'autonomous' ? cell.rule.finalizers : [foreground] },
    spec: specOf(cell, { server: 'https://kubernetes.default.svc' }, 'main'),
  });
}

async function deploy(cell: Cell): Promise<void> {
  const { hub, cluster, rule, kind, name } = cell;
  if (kind !== 'copy') {
    await cluster.create(pairApplications, ownApplication(cell));
  }
  if (kind === 'autonomous') {
    return;
  }
  if (rule.hasProject) {
    await hub.create(pairAppProjects, { metadata: { namespace, name }, spec: permissiveProject });
  }
  const spec = { ...specOf(cell, { name: scene.pair.name }, 'HEAD'), ...(rule.hasProject && { project: name }) };
  if (rule.isSet) {
    const template = { metadata: { name: '{{name}}' }, spec: { project: 'default', ...spec } };
    const generators = [{ list: { elements: [{ name }] } }];
    await hub.create(pairApplicationSets, {
      metadata: { namespace, name },
      spec: { generators, template, syncPolicy: { preserveResourcesOnDeletion: true } },
    });
    return;
  }
  await hub.create(pairApplications, application({ ...cell.onHub, metadata: { finalizers: rule.finalizers }, spec }));
}

/** All have deployed, and hub and cluster have the same. */
async function deployAll(cells: readonly Cell[]): Promise<void> {
  const map = ({ name }: Cell) =>
    JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { of: 'shop' } });
  await scene.git.commit('shop', Object.fromEntries(cells.map((cell) => [`${cell.name}/map.json`, map(cell)])), 'Maps');
  await Promise.all(cells.map(deploy));
  await until(async () => {
    for (const cluster of new Set(cells.map((cell) => cell.cluster))) {
      const maps = await cluster.list(configMaps, { namespace: target });
      const uids = new Map(maps.map(({ metadata: { name, uid } }) => [name, uid]));
      for (const cell of cells.filter((one) => one.cluster === cluster)) {
        cell.workload = uids.get(cell.name);
      }
    }
    expect(cells.filter(({ workload }) => workload === undefined).map(({ name }) => name)).toEqual([]);
    const found = await observe(cells);
    const isDeployed = ({ hub, application: one }: Outcome, { kind }: Cell) =>
      hub === 'stays' && one === (kind === 'autonomous' ? 'own' : 'copy');
    expect(cells.filter((cell) => !isDeployed(found.get(cell) as Outcome, cell)).map(({ name }) => name)).toEqual([]);
  }, patience);
}

async function leaveAll(cells: readonly Cell[]): Promise<void> {
  for (const cell of cells) {
    await cell.rule.leave(cell);
  }
}

async function leaveInOrder(order: Order, cells: readonly Cell[]): Promise<void> {
  const { agents, pair } = scene;
  const isAway = order === 'agent away' || order === 'both restart';
  const restarts = order === 'principal restarts' || order === 'both restart';
  const endAgents = () => Promise.all(agents.map((agent) => agent.stop('SIGKILL')));
  const startAgents = () => {
    for (const agent of agents) {
      agent.start();
    }
  };
  if (order === 'agent in the middle') {
    const after = pair.agent.output.length;
    const restart = pair.agent.says(/Application (leaves|deleted|is given back)/, { after }).then(endAgents);
    await Promise.all([leaveAll(cells), restart.then(startAgents)]);
    return;
  }
  if (restarts) {
    await scene.stopPrincipal();
  }
  if (isAway) {
    await endAgents();
  }
  await leaveAll(cells);
  if (restarts) {
    await scene.startPrincipal(teamOf(order));
  }
  if (isAway) {
    startAgents();
  }
}

const line = ({ kind, way, order }: Cell, { workload, application: one, hub }: Outcome) =>
  [kind, way, order, `workload ${workload}`, `Application on the cluster ${one}`, `on the hub ${hub}`].join(' | ');

/** What is not as the rule says; the workload alone, or the rest. */
async function exceptions(cells: readonly Cell[], of: (outcome: Outcome) => unknown = (all) => all): Promise<string[]> {
  const found = await observe(cells);
  return cells.flatMap((cell) => {
    const is = found.get(cell) as Outcome;
    return JSON.stringify(of(is)) === JSON.stringify(of(expected(cell))) ? [] : [line(cell, is)];
  });
}

// In the second one both are away, as in the last two one of them is.
test.each(orders.slice(0, effort(3, orders.length)))(
  '%s: a workload goes only if the last state of its Application asks for it',
  async (order) => {
    const cells = cellsOf(order);
    await deployAll(cells);
    await leaveInOrder(order, cells);
    left.push(...cells);
    await until(async () => expect(await exceptions(cells, (is) => [is.application, is.hub])).toEqual([]), patience);
    await until(async () => expect(await exceptions(cells)).toEqual([]), { timeoutMs: 10_000 });
  },
  600_000,
);

test('what stayed is there to the end', async () => {
  const found = await observe(left);
  console.log(left.map((cell) => line(cell, found.get(cell) as Outcome)).join('\n'));
  expect(await exceptions(left)).toEqual([]);
});

test('an Application of the cluster that has the name of the owner on the hub does not prune the copy', async () => {
  const { pair, git } = scene;
  const mapsOf = async () =>
    (await pair.managed.client.list(configMaps, { namespace: target })).map(({ metadata }) => metadata.name);
  const map = (name: string) => JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: {} });
  const spec = (name: string) => ({
    source: { repoURL: git.url(name), path: '.', targetRevision: 'HEAD' },
    destination: { server: 'https://kubernetes.default.svc', namespace: target },
    syncPolicy: { automated: { prune: true } },
  });
  await git.commit('root', { 'map.json': map('of-root') }, 'x');
  await git.commit('child', { 'map.json': map('of-child') }, 'x');
  await pair.managed.client.create(pairApplications, application({ name: 'root', namespace, spec: spec('root') }));
  const annotations = { 'argocd.argoproj.io/tracking-id': `root:argoproj.io/Application:${namespace}/child` };
  await pair.hub.client.create(
    pairApplications,
    application({
      name: 'child',
      namespace,
      metadata: { annotations, finalizers: [foreground] },
      spec: { ...spec('child'), destination: { name: pair.name, namespace: target } },
    }),
  );
  await until(async () => expect(await mapsOf()).toEqual(expect.arrayContaining(['of-root', 'of-child'])), patience);
  const copy = () => pair.managed.client.get(pairApplications, { namespace, name: 'child' });
  const before = (await copy())?.metadata;
  expect(before?.annotations).not.toHaveProperty(['argocd.argoproj.io/tracking-id']);
  await git.commit('root', { 'more.json': map('more-of-root') }, 'y');
  await pair.managed.client.mergePatch(
    pairApplications,
    { namespace, name: 'root' },
    { metadata: { annotations: { 'argocd.argoproj.io/refresh': 'normal' } } },
  );
  await until(async () => expect(await mapsOf()).toContain('more-of-root'), patience);
  expect((await copy())?.metadata.uid).toBe(before?.uid);
  expect((await copy())?.metadata.deletionTimestamp).toBeUndefined();
  expect(await mapsOf()).toContain('of-child');
}, 600_000);
