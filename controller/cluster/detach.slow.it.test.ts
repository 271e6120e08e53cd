import { expect, test } from 'vitest';
import { borrowCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import { namespaces, secrets } from '../../lib/kube/index.ts';
import {
  addOnDeploymentConfigs,
  gitOpsClusters,
  managedClusterAddOns,
  managedClusters,
  manifestWorks,
  placementDecisions,
  placements,
} from '../hub/index.ts';
import { useHub } from '../testing/hub.ts';

const hub = useHub(borrowCluster);
const held = { metadata: { finalizers: ['cluster.open-cluster-management.io/api-resource-cleanup'] } };
const cleanUpKey = (cluster: string) => ({ namespace: cluster, name: 'addon-argocd-agent-addon-pre-delete' });
const addOnKey = (cluster: string) => ({ namespace: cluster, name: 'argocd-agent-addon' });

/** Deletes a ManagedCluster as OCM does: it stays while it has add-ons and works, and the add-ons are deleted first. */
async function deleteCluster(cluster: string): Promise<void> {
  await hub.client.mergePatch(managedClusters, { name: cluster }, held);
  await hub.client.delete(managedClusters, { name: cluster });
  await hub.client.delete(managedClusterAddOns, addOnKey(cluster));
}

const works = (cluster: string) => hub.client.list(manifestWorks, { namespace: cluster });
const isTerminating = async (cluster: string, part: string) =>
  (await hub.work(cluster, part))?.metadata.deletionTimestamp !== undefined;
const uidsOf = async (cluster: string) =>
  (await works(cluster)).map(({ metadata }) => `${metadata.name} ${metadata.uid}`).sort();
const isFree = async (cluster: string) =>
  (await hub.addOn(cluster)) === undefined &&
  (await hub.client.list(secrets, { namespace: hub.ns })).every(({ metadata }) => !metadata.name.includes(cluster));
/** Creation times have whole seconds: waits until objects made from now on are younger. */
async function isOld(namespace: string, name: string): Promise<void> {
  const born = (await hub.client.get(gitOpsClusters, { namespace, name }))?.metadata.creationTimestamp;
  await until('the next second', async () => Date.now() >= Date.parse(born ?? '') + 1_000);
}
/** Waits until a GitOpsCluster reports that another one owns a cluster that it selects. */
const wants = (namespace: string, name: string, cluster: string) =>
  hub.fixture.conditionIs(
    [namespace, name],
    'PlacementEvaluated',
    'False',
    new RegExp(`${cluster} already belongs to the older GitOpsCluster`),
  );
const isGone = async (namespace: string, name: string) =>
  (await hub.client.get(gitOpsClusters, { namespace, name })) === undefined;

test('ocm defect H8: a ManagedCluster that is deleted is cleaned up in order, while OCM waits for its add-on', async () => {
  const { ns, a, b } = hub;
  await hub.enroll();
  await hub.holdWorks(a);
  await deleteCluster(a);
  await until('the agent to go', () => isTerminating(a, 'agent'));
  await hub.fixture.conditionIs(
    [ns, 'fleet'],
    'PlacementEvaluated',
    'True',
    new RegExp(`${a} is skipped: ManagedCluster ${a} is being deleted`),
  );
  expect(await isTerminating(a, 'argocd')).toBe(false);
  await hub.releaseWork(a, 'agent');
  await until('Argo CD to go', () => isTerminating(a, 'argocd'));
  await hub.releaseWork(a, 'argocd');
  await until('the clean-up', () => hub.client.get(manifestWorks, cleanUpKey(a)));
  expect((await hub.addOn(a))?.metadata.deletionTimestamp).toBeDefined();
  expect(await isTerminating(a, 'crds')).toBe(false);
  await hub.fixture.endCleanUp(a);
  await until('the work of the CRDs to go', () => isTerminating(a, 'crds'));
  await hub.releaseWork(a, 'crds');
  await until('nothing of it', async () => (await isFree(a)) && (await works(a)).length === 0);
  await hub.client.mergePatch(managedClusters, { name: a }, { metadata: { finalizers: null } });
  await hub.idle();
  expect(await works(a)).toEqual([]);
  expect(await isFree(a)).toBe(true);
  await hub.fixture.conditionIs([ns, 'fleet'], 'ClustersReady', 'False', /^0 of 1 clusters available/);
  expect(await uidsOf(b)).toHaveLength(3);
});

test('a ManagedCluster that is deleted and does not report delays nothing', async () => {
  const { a } = hub;
  await hub.enroll();
  await hub.holdWorks(a);
  await hub.fixture.clusterAvailable(a, 'Unknown');
  await deleteCluster(a);
  await until('the add-on to be let go', () => isFree(a));
  expect(await hub.client.get(manifestWorks, cleanUpKey(a))).toBeUndefined();
  for (const part of ['agent', 'argocd', 'crds']) {
    expect(await isTerminating(a, part)).toBe(true);
    await hub.releaseWork(a, part);
  }
});

test('a ManagedCluster that stops reporting during its detachment is released', async () => {
  const { a } = hub;
  await hub.enroll();
  await hub.holdWorks(a);
  await deleteCluster(a);
  await until('the agent to go', () => isTerminating(a, 'agent'));
  expect(await isFree(a)).toBe(false);
  await hub.fixture.clusterAvailable(a, 'Unknown');
  await until('the add-on to be let go', () => isFree(a));
  for (const part of ['agent', 'argocd', 'crds']) {
    await hub.releaseWork(a, part);
  }
});

test('a ManagedCluster that is deleted at once leaves no objects on the hub', async () => {
  const { a } = hub;
  await hub.enroll();
  await hub.client.delete(managedClusters, { name: a });
  await until('nothing of it', async () => (await isFree(a)) && (await works(a)).length === 0);
  await hub.fixture.managedCluster(a);
  await hub.enrolled(a);
});

test('ocm defect M2: an add-on that somebody deletes is made again, and the cluster is not affected', async () => {
  const { a } = hub;
  await hub.enroll();
  const before = await hub.addOn(a);
  const uids = await uidsOf(a);
  await hub.client.delete(managedClusterAddOns, addOnKey(a));
  const after = await until('another', async () => {
    const found = await hub.addOn(a);
    return found?.metadata.uid !== before?.metadata.uid && found;
  });
  await hub.idle();
  expect(after.metadata.finalizers).toEqual(['apps.open-cluster-management.io/gitopscluster-cleanup']);
  expect(await uidsOf(a)).toEqual(uids);
});

test('an add-on with a foreign finalizer waits for that one, too', async () => {
  const { a } = hub;
  await hub.enroll();
  const live = await hub.addOn(a);
  const finalizers = [...(live?.metadata.finalizers ?? []), 'example.com/other'];
  await hub.client.mergePatch(managedClusterAddOns, addOnKey(a), { metadata: { finalizers } });
  await hub.idle();
  const versions = await hub.versions();
  await hub.restart();
  await hub.idle();
  expect(await hub.versions()).toEqual(versions);
  await hub.unselect(a);
  await hub.fixture.endCleanUp(a);
  await until('our finalizer to go', async () => (await hub.addOn(a))?.metadata.finalizers?.length === 1);
  expect((await hub.addOn(a))?.metadata.finalizers).toEqual(['example.com/other']);
  await hub.client.mergePatch(managedClusterAddOns, addOnKey(a), { metadata: { finalizers: null } });
  await until('nothing left', async () => (await works(a)).length === 0);
});

test('a cluster whose namespace on the hub is deleted releases the namespace, and is enrolled again in the next', async () => {
  const { ns, a } = hub;
  await hub.enroll();
  await hub.client.delete(namespaces, { name: a });
  await until('the namespace to go', async () => (await hub.client.get(namespaces, { name: a })) === undefined);
  await hub.fixture.conditionIs([ns, 'fleet'], 'Ready', 'False', new RegExp(a));
  await hub.fixture.namespace(a);
  await until(
    'the cluster to be enrolled',
    async () => (await works(a)).length === 3 && (await hub.addOn(a)) !== undefined,
  );
  await hub.fixture.conditionIs([ns, 'fleet'], 'Ready', 'True');
});

test('a cluster whose namespace on the hub is deleted during its detachment is not waited for', async () => {
  const { a } = hub;
  await hub.enroll();
  await hub.unselect(a);
  await until('the clean-up', () => hub.client.get(manifestWorks, cleanUpKey(a)));
  await hub.client.delete(namespaces, { name: a });
  await until('the namespace to go', async () => (await hub.client.get(namespaces, { name: a })) === undefined);
  await until('nothing of it', () => isFree(a));
});

test('missing settings do not stop the clean-up of a cluster', async () => {
  const { a } = hub;
  await hub.enroll();
  const key = { namespace: a, name: 'settings' };
  const spec = { nodePlacement: { nodeSelector: { pool: 'a' } } };
  await hub.client.create(addOnDeploymentConfigs, { metadata: key, spec });
  const configs = [{ group: 'addon.open-cluster-management.io', resource: 'addondeploymentconfigs', ...key }];
  await hub.client.mergePatch(managedClusterAddOns, addOnKey(a), { spec: { configs } });
  await hub.idle();
  await hub.client.delete(addOnDeploymentConfigs, key);
  await hub.unselect(a);
  await hub.fixture.endCleanUp(a);
  await until('nothing of it', async () => (await isFree(a)) && (await works(a)).length === 0);
});

test('ocm defect H1: when the namespace of a GitOpsCluster is deleted its clusters are cleaned up first', async () => {
  const { ns, a, b } = hub;
  await hub.enroll();
  await hub.client.delete(namespaces, { name: ns });
  await Promise.all([a, b].map((cluster) => hub.fixture.endCleanUp(cluster)));
  await until('the namespace to go', async () => (await hub.client.get(namespaces, { name: ns })) === undefined);
  for (const cluster of [a, b]) {
    expect(await works(cluster)).toEqual([]);
    expect(await hub.addOn(cluster)).toBeUndefined();
  }
});

test('ocm defect H2: a missing page of decisions detaches no cluster', async () => {
  const { ns, a, b } = hub;
  await hub.enroll();
  const key = { namespace: ns, name: 'placement' };
  const isDisabled = { 'cluster.open-cluster-management.io/experimental-scheduling-disable': null };
  await hub.client.mergePatch(
    placements,
    key,
    { status: { numberOfSelectedClusters: 2, conditions: [] } },
    { subresource: 'status' },
  );
  await hub.client.mergePatch(placements, key, { metadata: { annotations: isDisabled } });
  // After a restart the controller is certain to read the Placement before the decisions change.
  await hub.restart();
  await hub.client.delete(placementDecisions, { namespace: ns, name: 'placement-decision-2' });
  await hub.fixture.conditionIs([ns, 'fleet'], 'PlacementEvaluated', 'Unknown', /announces 2 clusters.*name 1/);
  await hub.restart();
  await hub.idle();
  for (const cluster of [a, b]) {
    expect(await uidsOf(cluster)).toHaveLength(3);
  }
  await hub.client.mergePatch(placements, key, { status: { numberOfSelectedClusters: 1 } }, { subresource: 'status' });
  await hub.fixture.endCleanUp(b);
  await until('the one to be left', async () => (await works(b)).length === 0);
  expect(await uidsOf(a)).toHaveLength(3);
});

test('ocm defect H1: a fleet without its Placement is removed with its GitOpsCluster', async () => {
  const { ns, a, b } = hub;
  await hub.enroll();
  await hub.client.delete(placements, { namespace: ns, name: 'placement' });
  await hub.fixture.conditionIs([ns, 'fleet'], 'PlacementEvaluated', 'False', /does not exist/);
  for (const cluster of [a, b]) {
    expect(await uidsOf(cluster)).toHaveLength(3);
  }
  await hub.client.delete(gitOpsClusters, { namespace: ns, name: 'fleet' });
  await Promise.all([a, b].map((cluster) => hub.fixture.endCleanUp(cluster)));
  await until('the GitOpsCluster to go', () => isGone(ns, 'fleet'));
});

test.each(['the same namespace', 'another namespace'])(
  'ocm defect H3: a cluster goes over to a GitOpsCluster in %s without losing anything in between',
  async (where) => {
    const { ns, a } = hub;
    const other = where === 'the same namespace' ? ns : `${ns}-other`;
    await hub.fixture.placement(ns, 'first', [a]);
    await hub.fixture.gitOpsCluster(ns, 'older', 'first');
    hub.start();
    await hub.fixture.conditionIs([ns, 'older'], 'Ready', 'True');
    const uids = await uidsOf(a);
    await isOld(ns, 'older');
    await hub.fixture.namespace(other);
    await hub.fixture.placement(other, 'second', [a]);
    await hub.fixture.gitOpsCluster(other, 'younger', 'second', { principalServerPort: '' });
    await hub.fixture.conditionIs([other, 'younger'], 'Ready', 'False');
    await wants(other, 'younger', a);
    await hub.client.delete(gitOpsClusters, { namespace: ns, name: 'older' });
    await hub.fixture.conditionIs(
      [ns, 'older'],
      'RemovedClustersCleanedUp',
      'False',
      new RegExp(`GitOpsCluster ${other}/younger must take ${a} over`),
    );
    await hub.idle();
    expect(await isGone(ns, 'older')).toBe(false);
    expect(await uidsOf(a)).toEqual(uids);
    await hub.fixture.gitOpsCluster(other, 'younger', 'second', { principalServerAddress: 'other.example.com' });
    await until('the older one to go', () => isGone(ns, 'older'));
    await hub.fixture.conditionIs([other, 'younger'], 'Ready', 'True');
    await hub.idle();
    expect(await uidsOf(a)).toEqual(uids);
    expect(await hub.secret(`cluster-${a}`, other)).toBeDefined();
    const owners = new Set((await works(a)).map(({ metadata }) => metadata.annotations));
    for (const annotations of owners) {
      expect(annotations?.['apps.open-cluster-management.io/gitopscluster-owner']).toBe(`${other}/younger`);
    }
  },
);

test('a GitOpsCluster whose clusters another one cannot take over can be force-detached', async () => {
  const { ns, a } = hub;
  await hub.fixture.placement(ns, 'placement', [a]);
  await hub.fixture.gitOpsCluster(ns, 'one', 'placement');
  hub.start();
  await hub.fixture.conditionIs([ns, 'one'], 'Ready', 'True');
  const uids = await uidsOf(a);
  await isOld(ns, 'one');
  const other = `${ns}-other`;
  await hub.fixture.namespace(other);
  await hub.fixture.placement(other, 'placement', [a]);
  await hub.fixture.gitOpsCluster(other, 'two', 'placement', { principalServerAddress: '', principalServerPort: '' });
  await hub.fixture.conditionIs([other, 'two'], 'Ready', 'False');
  await wants(other, 'two', a);
  await hub.client.delete(gitOpsClusters, { namespace: ns, name: 'one' });
  await hub.fixture.conditionIs([ns, 'one'], 'RemovedClustersCleanedUp', 'False', /must take .* over/);
  const annotations = { 'apps.open-cluster-management.io/force-detach': 'true' };
  await hub.client.mergePatch(gitOpsClusters, { namespace: ns, name: 'one' }, { metadata: { annotations } });
  await until('it to go', () => isGone(ns, 'one'));
  await hub.idle();
  expect(await uidsOf(a)).toEqual(uids);
});

test('clusters that are to be retained keep their objects, and none of their objects waits for a controller', async () => {
  const { ns, a, b } = hub;
  await hub.enroll();
  const key = { namespace: ns, name: 'fleet' };
  const uids = await Promise.all([a, b].map(uidsOf));
  const annotate = (retain: 'true' | null) =>
    hub.client.mergePatch(gitOpsClusters, key, {
      metadata: { annotations: { 'apps.open-cluster-management.io/retain-clusters': retain } },
    });
  const held = async () => {
    const objects = [await hub.client.get(gitOpsClusters, key), await hub.addOn(a), await hub.addOn(b)];
    return objects.filter((one) => one?.metadata.finalizers?.length).length;
  };
  await annotate('true');
  await until('everything to be let go', async () => (await held()) === 0);
  await annotate(null);
  await until('everything to be held again', async () => (await held()) === 3);
  await annotate('true');
  await until('everything to be let go again', async () => (await held()) === 0);
  await hub.idle();
  await hub.client.delete(gitOpsClusters, key);
  await hub.restart();
  await hub.idle();
  expect(await isGone(ns, 'fleet')).toBe(true);
  expect(await Promise.all([a, b].map(uidsOf))).toEqual(uids);
  for (const cluster of [a, b]) {
    expect((await hub.addOn(cluster))?.metadata.deletionTimestamp).toBeUndefined();
    expect((await hub.addOn(cluster))?.metadata.annotations).not.toHaveProperty([
      'apps.open-cluster-management.io/detaching',
    ]);
    expect(await hub.secret(`cluster-${cluster}`)).toBeDefined();
  }
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement');
  await hub.fixture.conditionIs([ns, 'fleet'], 'Ready', 'True');
  await until('everything to be held', async () => (await held()) === 3);
  expect(await Promise.all([a, b].map(uidsOf))).toEqual(uids);
});
