import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { configMaps, type KubeClient, type KubeObject, namespaces, secrets } from '../../lib/kube/index.ts';
import {
  type FleetApplication,
  type FleetAppProject,
  fleetApplicationSets,
  fleetApplications,
  fleetAppProjects,
  fleetGitOpsClusters,
  isSyncedAndHealthy,
  releaseNamespace,
  type SharedFleet,
} from '../fleet/index.ts';
import type { Network } from '../network/index.ts';
import { waitForObject, waitForObjects } from '../testbed/index.ts';
import { endlessHook, operationOf, terminateHangingSync } from './hanging-sync.ts';
import { describeLive } from './live.ts';
import { unexplained } from './rights.ts';
import { variantFiles } from './traffic.ts';
import { startTwoModes, type TwoModes } from './two-modes.ts';

// A managed and an autonomous agent of one principal, on real API servers with a real Argo CD each, behind a bad network.

const argocd = 'argocd';
/** An Argo CD that did not reach its repo server for a moment tries again after three minutes. */
const generous = { timeoutMs: 300_000 };
const refresh = { metadata: { annotations: { 'argocd.argoproj.io/refresh': 'normal' } } };
const stuck = { namespace: argocd, name: 'stuck' };
const sourceUid = 'argocd.argoproj.io/source-uid';
const isOutOfSync = (found: FleetApplication | undefined) => found?.status?.sync?.status === 'OutOfSync';
const automated = { automated: { prune: true, selfHeal: true }, syncOptions: ['CreateNamespace=true'] };

let stage: TwoModes;
let fleet: SharedFleet;
let network: Network;
let hub: KubeClient;
let managed: KubeClient;
let autonomous: KubeClient;
let repoURL: string;

beforeAll(async () => {
  stage = await startTwoModes();
  ({ fleet, network, hub, managed, autonomous } = stage);
  await fleet.git.commit(
    'variants',
    { ...variantFiles, 'stuck/hook.yaml': endlessHook, 'stuck/variant.yaml': variantFiles['red/variant.yaml'] ?? '' },
    'All colours',
  );
  repoURL = fleet.git.url('variants');
});
afterAll(() => stage?.stop());
beforeEach(() => onTestFailed(async () => console.error(await fleet?.logs(80))));

describe('a managed cluster: the hub owns its Applications', () => {
  const shop = { namespace: argocd, name: 'shop' };

  test('what is created on the hub is deployed on the cluster, and its state shows on the hub', async () => {
    await hub.create(fleetApplications, app(shop, { name: 'cluster1' }, automated));
    const onHub = await becomes(hub, shop, isSyncedAndHealthy);
    expect(onHub?.spec?.destination).toEqual({ name: 'cluster1', namespace: 'shop' });
    expect(await deployed(managed, 'shop')).toBe('red');
  });

  test('a sync that the hub asks for runs once on the cluster, and its end shows on the hub', async () => {
    await runsOnce({ from: hub, mirror: shop, on: managed, app: shop });
  });

  test('a sync that hangs is terminated from the hub', async () => {
    await hub.create(fleetApplications, app(stuck, { name: 'cluster1' }, undefined, 'stuck'));
    await becomes(hub, stuck, isOutOfSync);
    await terminateHangingSync({ from: hub, key: stuck, on: managed, copy: stuck });
    await hub.delete(fleetApplications, stuck);
    await becomes(managed, stuck, (found) => found === undefined);
  });

  test('an edit on the cluster is undone, a deletion there too, and Argo CD goes on', async () => {
    await managed.mergePatch(fleetApplications, shop, { spec: { source: { path: 'blue' }, project: 'nowhere' } });
    await becomes(managed, shop, (a) => a?.spec?.source?.path === 'red' && a.spec.project === 'default');
    await becomes(managed, shop, isSyncedAndHealthy);
    const before = await managed.get(fleetApplications, shop);
    await managed.delete(fleetApplications, shop);
    await becomes(managed, shop, (a) => a !== undefined && a.metadata.uid !== before?.metadata.uid);
    await becomes(managed, shop, isSyncedAndHealthy);
    await becomes(hub, shop, isSyncedAndHealthy);
  });

  test('a project, its repository and the keys go to the clusters that they are for, and away again', async () => {
    const project = { namespace: argocd, name: 'team' };
    const repository = { namespace: argocd, name: 'team-repo' };
    const keys = { namespace: argocd, name: 'argocd-gpg-keys-cm' };
    await hub.create(fleetAppProjects, {
      metadata: project,
      spec: {
        destinations: [{ name: 'cluster1', namespace: '*' }],
        sourceRepos: ['*'],
      } as FleetAppProject['spec'],
    });
    await hub.create(secrets, {
      metadata: { ...repository, labels: { 'argocd.argoproj.io/secret-type': 'repository' } },
      stringData: { project: 'team', type: 'git', url: 'https://example.com/team.git', password: 's3cret' },
    });
    await hub.apply(
      configMaps,
      { metadata: keys, data: { '4AEE18F83AFDEB23': 'a key' } },
      { fieldManager: 'test', force: true },
    );
    const copy = await waitForObject(managed, fleetAppProjects, project, (p) => p !== undefined);
    expect(copy?.spec.destinations).toEqual([
      { name: 'in-cluster', server: 'https://kubernetes.default.svc', namespace: '*' },
    ]);
    await waitForObject(managed, secrets, repository, (s) => text(s?.data?.password) === 's3cret');
    await waitForObject(managed, configMaps, keys, (c) => c?.data?.['4AEE18F83AFDEB23'] === 'a key');
    expect(await autonomous.get(secrets, repository)).toBeUndefined();
    expect(await autonomous.get(fleetAppProjects, project)).toBeUndefined();

    await hub.mergePatch(fleetAppProjects, project, { spec: { description: 'The team' } });
    await waitForObject(managed, fleetAppProjects, project, (p) => p?.spec.description === 'The team');
    await managed.mergePatch(secrets, repository, { data: { password: Buffer.from('guess').toString('base64') } });
    await waitForObject(managed, secrets, repository, (s) => text(s?.data?.password) === 's3cret');
    await hub.mergePatch(fleetAppProjects, project, {
      spec: { destinations: [{ name: 'elsewhere', namespace: '*' }] },
    });
    await waitForObject(managed, secrets, repository, (s) => s === undefined);
    await waitForObject(managed, fleetAppProjects, project, (p) => p === undefined);
    const { metadata: taken } = (await managed.get(configMaps, keys)) ?? {};
    await hub.delete(configMaps, keys);
    // Argo CD's repo server does not start without it: it is given back as Argo CD's manifests had made it, without keys.
    const isCopy = (c: KubeObject | undefined) => c?.metadata.annotations?.[sourceUid] !== undefined;
    const left = await waitForObject(managed, configMaps, keys, (c) => c !== undefined && !isCopy(c));
    expect(left?.metadata).toMatchObject({ uid: taken?.uid, labels: { 'app.kubernetes.io/part-of': 'argocd' } });
    expect(left?.data ?? {}).toEqual({});
    await hub.create(configMaps, { metadata: keys, data: { '4AEE18F83AFDEB23': 'a key' } });
    await waitForObject(managed, configMaps, keys, (c) => c?.data?.['4AEE18F83AFDEB23'] === 'a key');
    await managed.delete(configMaps, keys);
    await waitForObject(
      managed,
      configMaps,
      keys,
      (c) => c?.metadata.uid !== taken?.uid && c?.data?.['4AEE18F83AFDEB23'] === 'a key',
    );
  });

  test("an Application in a namespace of the hub's own is in that namespace on the cluster, which is made for it", async () => {
    const elsewhere = { namespace: 'tenant', name: 'elsewhere' };
    await hub.create(namespaces, { metadata: { name: elsewhere.namespace } });
    await hub.create(fleetApplications, app(elsewhere, { name: 'cluster1' }));
    await becomes(managed, elsewhere, (a) => a !== undefined);
    await hub.delete(fleetApplications, elsewhere);
    await becomes(managed, elsewhere, (a) => a === undefined);
  });
});

describe('an autonomous cluster: it owns its Applications, and the hub mirrors them', () => {
  const web = { namespace: argocd, name: 'web' };
  const mirror = { namespace: 'cluster2', name: 'web' };

  test('what is created on the cluster is deployed there, and shows on the hub with its project', async () => {
    await autonomous.apply(
      fleetAppProjects,
      {
        metadata: { namespace: argocd, name: 'default' },
        spec: {
          sourceRepos: ['*'],
          destinations: [{ server: '*', namespace: '*' }],
          clusterResourceWhitelist: [{ group: '*', kind: '*' }],
        } as FleetAppProject['spec'],
      },
      { fieldManager: 'test', force: true },
    );
    const made = await autonomous.create(
      fleetApplications,
      app(web, { server: 'https://kubernetes.default.svc' }, automated),
    );
    const shown = await becomes(hub, mirror, isSyncedAndHealthy);
    expect(shown?.spec).toMatchObject({
      project: 'cluster2-default',
      destination: { name: 'cluster2', namespace: 'web' },
    });
    expect(shown?.metadata.annotations).toMatchObject({ 'argocd.argoproj.io/source-uid': made.metadata.uid });
    expect(await deployed(autonomous, 'web')).toBe('red');
    const project = await waitForObject(
      hub,
      fleetAppProjects,
      { namespace: argocd, name: 'cluster2-default' },
      (p) => p !== undefined,
    );
    expect(project?.spec).toMatchObject({
      sourceNamespaces: ['cluster2'],
      destinations: [
        { name: 'cluster2', server: expect.stringMatching(/^https:\/\/.+\\\?agentName=cluster2$/), namespace: '*' },
      ],
    });
  });

  test('a sync that the hub asks for runs once on the cluster, and its end shows on the hub', async () => {
    await runsOnce({ from: hub, mirror, on: autonomous, app: web });
  });

  test('a refresh from the hub finds a commit, and is over when it is done', async () => {
    const revision = await fleet.git.commit('variants', { ...variantFiles, 'note.txt': 'news' }, 'News');
    await hub.mergePatch(fleetApplications, mirror, refresh);
    await becomes(
      hub,
      mirror,
      (a) =>
        a?.status?.sync?.revision === revision &&
        isSyncedAndHealthy(a) &&
        a.metadata.annotations?.['argocd.argoproj.io/refresh'] === undefined,
    );
  });

  test('a sync that hangs is terminated from the hub', async () => {
    const mirror = { namespace: 'cluster2', name: 'stuck' };
    await autonomous.create(fleetApplications, app(stuck, { name: 'in-cluster' }, undefined, 'stuck'));
    await becomes(hub, mirror, isOutOfSync);
    await terminateHangingSync({ from: hub, key: mirror, on: autonomous, copy: stuck });
    await autonomous.delete(fleetApplications, stuck);
    await becomes(hub, mirror, (found) => found === undefined);
  });

  test('an edit on the hub is undone, a deletion there too, and the cluster is not touched', async () => {
    const before = await autonomous.get(fleetApplications, web);
    await hub.mergePatch(fleetApplications, mirror, {
      spec: { source: { path: 'blue' }, destination: { namespace: 'else' } },
    });
    await becomes(hub, mirror, (a) => a?.spec?.source?.path === 'red' && a.spec.destination?.namespace === 'web');
    const shown = await hub.get(fleetApplications, mirror);
    await hub.delete(fleetApplications, mirror);
    await becomes(
      hub,
      mirror,
      (a) => a !== undefined && a.metadata.uid !== shown?.metadata.uid && isSyncedAndHealthy(a),
    );
    const finalizers = ['resources-finalizer.argocd.argoproj.io'];
    await hub.mergePatch(fleetApplications, mirror, { metadata: { finalizers } });
    await hub.delete(fleetApplications, mirror);
    await becomes(
      hub,
      mirror,
      (a) => a !== undefined && a.metadata.deletionTimestamp === undefined && isSyncedAndHealthy(a),
    );
    const after = await autonomous.get(fleetApplications, web);
    expect({ uid: after?.metadata.uid, spec: after?.spec }).toEqual({ uid: before?.metadata.uid, spec: before?.spec });
  });

  test('an edit on the cluster shows on the hub; what is deleted there goes on the hub', async () => {
    const team = { namespace: argocd, name: 'team' };
    const shown = { namespace: argocd, name: 'cluster2-team' };
    await autonomous.create(fleetAppProjects, {
      metadata: team,
      spec: { description: 'One', sourceRepos: ['*'] } as object,
    });
    await waitForObject(hub, fleetAppProjects, shown, (p) => p?.spec.description === 'One');
    await autonomous.mergePatch(fleetAppProjects, team, { spec: { description: 'Two' } });
    await waitForObject(hub, fleetAppProjects, shown, (p) => p?.spec.description === 'Two');
    await autonomous.delete(fleetAppProjects, team);
    await waitForObject(hub, fleetAppProjects, shown, (p) => p === undefined);
    await autonomous.mergePatch(fleetApplications, web, { spec: { source: { path: 'green' } } });
    await becomes(hub, mirror, (a) => a?.spec?.source?.path === 'green' && isSyncedAndHealthy(a));
    await autonomous.delete(fleetApplications, web);
    await becomes(hub, mirror, (a) => a === undefined);
  });

  test('an ApplicationSet of the cluster makes its Applications, which show on the hub', async () => {
    const set = { namespace: argocd, name: 'pages' };
    const page = { namespace: argocd, name: 'page' };
    const shown = { namespace: 'cluster2', name: 'page' };
    const { spec } = app(page, { server: 'https://kubernetes.default.svc' }, automated);
    const template = { metadata: { name: '{{name}}' }, spec };
    const generators = [{ list: { elements: [{ name: 'page' }] } }];
    await autonomous.create(fleetApplicationSets, { metadata: set, spec: { generators, template } } as KubeObject);
    await becomes(hub, shown, isSyncedAndHealthy);
    await autonomous.delete(fleetApplicationSets, set);
    await becomes(hub, shown, (a) => a === undefined);
  });
});

describeLive(() => stage);

describe('over a bad network', () => {
  const on = (cluster: string, name: string) =>
    cluster === 'cluster1'
      ? {
          client: hub,
          key: { namespace: argocd, name },
          far: managed,
          farKey: { namespace: argocd, name },
          to: { name: 'cluster1' },
        }
      : {
          client: autonomous,
          key: { namespace: argocd, name },
          far: hub,
          farKey: { namespace: 'cluster2', name },
          to: { name: 'in-cluster' },
        };
  const both = ['cluster1', 'cluster2'];

  test.each([
    ['everything takes 300 ms on its way', async () => network.delay(300), async () => network.delay(0)],
    ['the connection is cut', async () => network.cut(), async () => undefined],
    ['nothing gets through, and nobody is told', async () => network.blackHole(), async () => network.heal()],
    ['the principal cannot be reached', async () => network.refuse(), async () => network.heal()],
  ])('%s: what is written meanwhile arrives, both ways', async (what, begin, end) => {
    const name = `net-${what.length}`;
    const places = both.map((cluster) => on(cluster, name));
    for (const { client, key, to } of places) {
      await client.create(fleetApplications, app(key, to, automated));
    }
    await Promise.all(places.map(({ far, farKey }) => becomes(far, farKey, isSyncedAndHealthy)));
    await begin();
    for (const { client, key } of places) {
      await client.mergePatch(fleetApplications, key, { spec: { source: { path: 'blue' } } });
      await client.create(
        fleetApplications,
        app(
          { ...key, name: `${name}-new` },
          (await client.get(fleetApplications, key))?.spec?.destination ?? {},
          automated,
        ),
      );
    }
    await end();
    for (const { far, farKey, client, key } of places) {
      const news = { ...farKey, name: `${name}-new` };
      await becomes(far, farKey, (a) => a?.spec?.source?.path === 'blue' && isSyncedAndHealthy(a));
      await becomes(far, news, isSyncedAndHealthy);
      await becomes(client, { ...key, name: `${name}-new` }, isSyncedAndHealthy);
      for (const one of [name, `${name}-new`]) {
        await client.delete(fleetApplications, { ...key, name: one });
      }
      await waitForObjects(far, fleetApplications, { namespace: farKey.namespace, ...generous }, (all) =>
        all.every(({ metadata }) => !metadata.name.startsWith(name)),
      );
    }
  });
});

describe('when the fleet is given up', () => {
  test('the programs turn out to have had the rights that they needed, and no others', async ({ skip }) => {
    // Deployed into Argo CD's own namespace, and with finalizers: the clean-up has to release it.
    const last = { namespace: argocd, name: 'last' };
    const finalizers = ['resources-finalizer.argocd.argoproj.io'];
    const made = app(last, { name: 'cluster1' }, automated);
    const destination = { name: 'cluster1', namespace: argocd };
    await hub.create(fleetApplications, { ...made, spec: { ...made.spec, destination } });
    await hub.create(fleetAppProjects, {
      metadata: { namespace: argocd, name: 'last' },
      spec: { destinations: [{ name: 'cluster1', namespace: '*' }], sourceRepos: ['*'] } as object,
    });
    await becomes(managed, last, isSyncedAndHealthy);
    await waitForObject(managed, fleetAppProjects, last, (p) => p !== undefined);
    await managed.mergePatch(fleetApplications, last, { metadata: { finalizers } });
    await managed.mergePatch(fleetAppProjects, last, { metadata: { finalizers } });

    const second = { namespace: argocd, name: 'autonomous' };
    await hub.delete(fleetGitOpsClusters, second);
    await waitForObject(hub, fleetGitOpsClusters, second, (g) => g === undefined, generous);
    await fleet.helm('uninstall', 'argocd-agent-addon', '--namespace', releaseNamespace, '--timeout', '9m');
    const conduct = await stage.review?.conduct();
    if (conduct === undefined) {
      return skip('the API servers of this provider do not record who asks for what');
    }
    expect(unexplained(conduct)).toEqual([]);
  });
});

/** A hook that never ends. */
function app(
  key: { namespace: string; name: string },
  destination: { name?: string; server?: string },
  syncPolicy?: object,
  path = 'red',
): FleetApplication {
  return {
    metadata: key,
    spec: {
      project: 'default',
      source: { repoURL, path, targetRevision: 'main' },
      destination: { ...destination, namespace: key.name },
      ...(syncPolicy && { syncPolicy }),
    },
  };
}

type Key = { namespace: string; name: string };

const becomes = (client: KubeClient, key: Key, accept: (found: FleetApplication | undefined) => boolean) =>
  waitForObject(client, fleetApplications, key, accept, generous);

async function deployed(client: KubeClient, namespace: string): Promise<string | undefined> {
  return (await client.get(configMaps, { namespace, name: 'variant' }))?.data?.text;
}

/** Sets an operation as Argo CD's API server does, and follows it to its end. */
async function runsOnce(where: { from: KubeClient; mirror: Key; on: KubeClient; app: Key }): Promise<void> {
  const { from, mirror, on, app: key } = where;
  const info = [{ name: 'asked', value: 'on the hub' }];
  const isOurs = (found: FleetApplication | undefined) =>
    operationOf(found)?.operation?.info?.[0]?.value === 'on the hub';
  const starts = new Set<string>();
  const stop = new AbortController();
  const watching = waitForObject(
    on,
    fleetApplications,
    key,
    (found) => {
      if (isOurs(found)) {
        starts.add(operationOf(found)?.startedAt ?? '');
      }
      return false;
    },
    { signal: stop.signal, ...generous },
  ).catch(() => undefined);
  // Argo CD's API server takes no sync while another one is in progress.
  const isFree = (found: FleetApplication | undefined) =>
    found?.operation === undefined && operationOf(found)?.phase !== 'Running';
  await Promise.all([becomes(from, mirror, isFree), becomes(on, key, isFree)]);
  await from.mergePatch(fleetApplications, mirror, { operation: { info, sync: { revision: 'main' } } });
  await becomes(
    from,
    mirror,
    (found) => isOurs(found) && operationOf(found)?.phase === 'Succeeded' && found?.operation === undefined,
  );
  // The watch of the cluster may show it later than that of the hub.
  await until(() => starts.size > 0);
  stop.abort();
  await watching;
  expect([...starts]).toHaveLength(1);
}

function text(data: string | undefined): string {
  return Buffer.from(data ?? '', 'base64').toString();
}
