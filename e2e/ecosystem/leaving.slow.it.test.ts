import { afterAll, beforeAll, expect, onTestFailed, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { configMaps } from '../../lib/kube/index.ts';
import { application, namesOf, namespace, pairApplications } from '../pair/index.ts';
import { type DeliveredPair, startDeliveredPair } from './delivered-pair.ts';

// What becomes of workloads when their Application leaves the hub, with the Argo CD that the add-on delivers: it removes them
// because of a finalizer on the copy, and of nothing else. lib/argocd/leaving.test.ts has all ways in all orders.

const target = 'shop';
const foreground = 'resources-finalizer.argocd.argoproj.io/foreground';
const background = 'resources-finalizer.argocd.argoproj.io/background';
const ignored = { metadata: { labels: { 'argocd-agent.argoproj-labs.io/ignore-sync': 'true' } } };
const patience = { timeoutMs: 240_000 };

let scene: DeliveredPair;

beforeAll(async () => {
  scene = await startDeliveredPair({ namespaces: [target] });
}, 600_000);
afterAll(() => scene?.stop(), 120_000);

interface Way {
  readonly finalizers: readonly string[];
  readonly leave: (name: string) => Promise<unknown>;
  /** The workload is still there afterwards. */
  readonly stays: boolean;
}

const hubKey = (name: string) => ({ namespace: scene.pair.name, name });
const edit = (name: string, patch: object) => scene.pair.hub.client.mergePatch(pairApplications, hubKey(name), patch);
const remove = (name: string) => scene.pair.hub.client.delete(pairApplications, hubKey(name));
const finalizersOff = (name: string) => edit(name, { metadata: { finalizers: null } });

const ways: Readonly<Record<string, Way>> = {
  foreground: { finalizers: [foreground], leave: remove, stays: false },
  background: { finalizers: [background], leave: remove, stays: false },
  plain: { finalizers: [], leave: remove, stays: true },
  // As argocd-server does it for `argocd app delete --cascade=false`, and the ApplicationSet controller with
  // preserveResourcesOnDeletion.
  'not-cascading': {
    finalizers: [foreground],
    leave: async (name) => {
      await finalizersOff(name);
      await remove(name);
    },
    stays: true,
  },
  labelled: { finalizers: [foreground], leave: (name) => edit(name, ignored), stays: false },
  'off-labelled': {
    finalizers: [foreground],
    leave: async (name) => {
      await finalizersOff(name);
      await edit(name, ignored);
    },
    stays: true,
  },
  released: {
    finalizers: [foreground],
    leave: async (name) => {
      await edit(name, { metadata: { annotations: { 'argocd-agent.argoproj-labs.io/release': 'true' } } });
      await remove(name);
    },
    stays: true,
  },
};

const workloads = async () =>
  (await scene.pair.managed.client.list(configMaps, { namespace: target })).map(({ metadata }) => metadata.name);

async function deploy(order: string): Promise<string[]> {
  const { pair, git } = scene;
  const names: string[] = [];
  for (const [way, { finalizers }] of Object.entries(ways)) {
    const name = `${order}-${way}`;
    names.push(name);
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: {} };
    await git.commit(name, { 'map.json': JSON.stringify(map) }, 'A workload');
    const spec = {
      source: { repoURL: git.url(name), path: '.', targetRevision: 'HEAD' },
      destination: { name: pair.name, namespace: target },
      syncPolicy: { automated: {} },
    };
    await pair.hub.client.create(
      pairApplications,
      application({ name, namespace: pair.name, metadata: { finalizers }, spec }),
    );
  }
  await until(async () => expect(await workloads()).toEqual(expect.arrayContaining(names)), patience);
  return names;
}

async function leaveAll(order: string): Promise<void> {
  for (const [way, { leave }] of Object.entries(ways)) {
    await leave(`${order}-${way}`);
  }
}

/** The copies have gone, and what stays is what nobody asked to be removed. */
async function expectLeft(order: string, names: readonly string[]): Promise<void> {
  const copies = async () =>
    namesOf(await scene.pair.managed.client.list(pairApplications, { namespace })).filter((one) => names.includes(one));
  await until(async () => expect(await copies()).toEqual([]), patience);
  const stay = Object.entries(ways).flatMap(([way, { stays }]) => (stays ? [`${order}-${way}`] : []));
  expect((await workloads()).filter((one) => names.includes(one)).sort()).toEqual(stay.sort());
}

test.each([
  ['connected', []],
  ['agent-away', ['agent']],
  ['principal-away', ['principal']],
  ['both-away', ['principal', 'agent']],
] as const)(
  '%s: a workload goes only if the last state of its Application asks for it',
  async (order, away) => {
    onTestFailed(async () => console.log(await scene.troubles()));
    const names = await deploy(order);
    for (const program of away) {
      await scene.pair[program].stop();
    }
    await leaveAll(order);
    for (const program of away) {
      scene.pair[program].start();
    }
    await expectLeft(order, names);
  },
  600_000,
);

test('an Application of the cluster that has the name of the owner on the hub does not prune the copy', async () => {
  onTestFailed(async () => console.log(await scene.troubles()));
  const { pair, git } = scene;
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
      namespace: pair.name,
      metadata: { annotations, finalizers: [foreground] },
      spec: { ...spec('child'), destination: { name: pair.name, namespace: target } },
    }),
  );
  await until(async () => expect(await workloads()).toEqual(expect.arrayContaining(['of-root', 'of-child'])), patience);
  const copy = () => pair.managed.client.get(pairApplications, { namespace, name: 'child' });
  const before = (await copy())?.metadata;
  expect(before?.annotations).not.toHaveProperty(['argocd.argoproj.io/tracking-id']);
  await git.commit('root', { 'more.json': map('more-of-root') }, 'y');
  await pair.managed.client.mergePatch(
    pairApplications,
    { namespace, name: 'root' },
    { metadata: { annotations: { 'argocd.argoproj.io/refresh': 'normal' } } },
  );
  await until(async () => expect(await workloads()).toContain('more-of-root'), patience);
  expect((await copy())?.metadata.uid).toBe(before?.uid);
  expect((await copy())?.metadata.deletionTimestamp).toBeUndefined();
  expect(await workloads()).toContain('of-child');
}, 600_000);
