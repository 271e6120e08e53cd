import { expect, test } from 'vitest';
import { ApiError, type KubeObject } from '../../../lib/kube/index.ts';
import { defaultTracking, type Tracking } from '../../../lib/live/index.ts';
import { ManagedObjects, type ManagedObjectsOptions, type OwningApplication } from './managed-objects.ts';

type Handler = Parameters<ManagedObjectsOptions['applications']['subscribe']>[0];

const application = (name: string, rest: Omit<OwningApplication, 'metadata'> = {}, namespace = 'argocd') => ({
  metadata: { name, namespace },
  ...rest,
});
const object = (
  kind: string,
  name: string,
  metadata: Partial<KubeObject['metadata']> = {},
  more: object = {},
): KubeObject => ({
  apiVersion: kind === 'Deployment' || kind === 'ReplicaSet' || kind === 'StatefulSet' ? 'apps/v1' : 'v1',
  kind,
  metadata: { name, namespace: 'a', uid: `uid-${name}`, ...metadata },
  ...more,
});
const tracked = { annotations: { 'argocd.argoproj.io/tracking-id': 'web:apps/Deployment:a/web' } };
const ownedBy = (...owners: KubeObject[]) => ({
  ownerReferences: owners.map(({ apiVersion = '', kind = '', metadata: { name, uid = '' } }) => ({
    apiVersion,
    kind,
    name,
    uid,
  })),
});

function start(cluster: KubeObject[], applications: OwningApplication[], tracking: Tracking = defaultTracking) {
  let handler: Handler | undefined;
  const reads: string[] = [];
  const setReads: number[] = [];
  const reading = { now: 0, most: 0 };
  const forbidden = new Set<string>();
  const managed = new ManagedObjects({
    applications: {
      subscribe: (subscriber) => {
        handler = subscriber;
        for (const one of applications) {
          subscriber.added(one);
        }
      },
    },
    namespace: 'argocd',
    tracking: () => tracking,
    read: async ({ kind, name }, signal) => {
      reads.push(name);
      reading.most = Math.max(reading.most, ++reading.now);
      await new Promise((resolve) => setImmediate(resolve));
      reading.now--;
      signal.throwIfAborted();
      if (forbidden.has(name)) {
        throw new ApiError({ status: 403, message: 'no' });
      }
      return cluster.find((one) => one.kind === kind && one.metadata.name === name);
    },
    statefulSets: async () => {
      setReads.push(1);
      return cluster
        .filter(({ kind }) => kind === 'StatefulSet')
        .map(({ metadata }) => ({ name: metadata.name, templates: ['data', 'data-my'] }));
    },
  });
  const signal = new AbortController().signal;
  const isManaged = async (one: KubeObject) => (await managed.verdictOn(one, signal)).isManaged;
  const isVisible = async (one: KubeObject) => (await managed.visibilityOf(one, signal)).isManaged;
  return {
    managed,
    isManaged,
    isVisible,
    reads,
    setReads,
    reading,
    forbidden,
    signal,
    handler: () => handler as Handler,
  };
}

const deployment = object('Deployment', 'web', tracked);
const replicaSet = object('ReplicaSet', 'web-1', ownedBy(deployment));
const pod = object('Pod', 'web-1-x', ownedBy(replicaSet));

test('marked objects, and the objects that they own over any number of levels', async () => {
  const { isManaged } = start([deployment, replicaSet], [application('web')]);
  expect(await Promise.all([deployment, replicaSet, pod, object('Pod', 'other')].map(isManaged))).toEqual([
    true,
    true,
    true,
    false,
  ]);
  const chain = [object('Custom', 'c0', tracked)];
  for (let level = 1; level < 20; level++) {
    chain.push(object('Custom', `c${level}`, ownedBy(...chain.slice(-1))));
  }
  expect(await start(chain, [application('web')]).isManaged(chain.at(-1) as KubeObject)).toBe(true);
});

test('a mark of an Application that is not on this cluster counts for nothing', async () => {
  const { isManaged, handler } = start([], [application('web')]);
  expect(await isManaged(deployment)).toBe(true);
  handler().deleted(application('web'));
  expect(await isManaged(deployment)).toBe(false);
  handler().added(application('web', {}, 'team'));
  expect(await isManaged(deployment)).toBe(false);
});

test('objects in the list of an Application are managed while it lists them, marked or not', async () => {
  const resources = [
    { group: 'apps', kind: 'Deployment', namespace: 'a', name: 'plain' },
    { kind: 'ClusterThing', name: 'x' },
  ];
  const listing = application('web', { status: { resources } });
  const { isManaged, handler } = start([], [listing]);
  const plain = object('Deployment', 'plain');
  const clusterScoped: KubeObject = { apiVersion: 'v1', kind: 'ClusterThing', metadata: { name: 'x' } };
  expect([await isManaged(plain), await isManaged(clusterScoped)]).toEqual([true, true]);
  expect(await isManaged(object('Deployment', 'plain', { namespace: 'b' }))).toBe(false);
  handler().updated(listing, application('web'));
  expect(await isManaged(plain)).toBe(false);
});

test('a destination namespace is seen, not changed, and nothing belongs to it', async () => {
  const namespace = (name: string): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, uid: name },
  });
  const shop = namespace('shop');
  const applications = [application('web', { spec: { destination: { namespace: 'shop' } } })];
  const { isManaged, isVisible, managed, handler } = start([shop], applications);
  expect([await isVisible(shop), await isVisible(namespace('kube-system'))]).toEqual([true, false]);
  expect([await isManaged(shop), await isManaged(object('ConfigMap', 'x', ownedBy(shop)))]).toEqual([false, false]);
  expect([managed.isDestination('shop'), managed.isDestination('kube-system')]).toEqual([true, false]);
  const custom: KubeObject = { apiVersion: 'example.com/v1', kind: 'Namespace', metadata: { name: 'shop' } };
  expect(await isVisible(custom)).toBe(false);
  // One that Argo CD has made is an object like others.
  const resources = [{ kind: 'Namespace', name: 'shop' }];
  handler().added(application('base', { status: { resources } }));
  expect(await isManaged(shop)).toBe(true);
});

test('an owner that was replaced by another object of its name owns nothing', async () => {
  const another = object('ReplicaSet', 'web-1', { ...tracked, uid: 'another' });
  expect(await start([another], [application('web')]).isManaged(pod)).toBe(false);
});

test('owners in a circle, and none that can be found', async () => {
  const [one, two] = [object('Custom', 'one'), object('Custom', 'two')];
  Object.assign(one.metadata, ownedBy(two));
  Object.assign(two.metadata, ownedBy(one));
  const { isManaged } = start([one, two], [application('web')]);
  expect(await isManaged(one)).toBe(false);
  expect(await isManaged(object('Pod', 'orphan', ownedBy(object('Job', 'gone'))))).toBe(false);
});

test('one of several owners is enough, and an owner that may not be read is named', async () => {
  const { managed, isManaged, forbidden, signal } = start([deployment], [application('web')]);
  expect(await isManaged(object('Pod', 'p', ownedBy(object('Job', 'gone'), deployment)))).toBe(true);
  forbidden.add('secret-owner');
  expect(await managed.verdictOn(object('Pod', 'q', ownedBy(object('Custom', 'secret-owner'))), signal)).toEqual({
    isManaged: false,
    hindrance: 'the agent may not read Custom a/secret-owner',
  });
});

test('owners that only Argo CD knows', async () => {
  const group: KubeObject = {
    ...object('OperatorGroup', 'operators', tracked),
    apiVersion: 'operators.coreos.com/v1',
  };
  const cluster = [
    object('StatefulSet', 'db', tracked),
    object('StatefulSet', 'my-db'),
    group,
    deployment,
    replicaSet,
    pod,
  ];
  const { isManaged, setReads } = start([...cluster, object('Service', 'front', tracked)], [application('web')]);
  const claims = ['data-db-0', 'data-other-0', 'db-0', 'other-db-0', 'x-data-db-0', 'data-db'];
  const claimed = await Promise.all(claims.map((name) => isManaged(object('PersistentVolumeClaim', name))));
  expect(claimed).toEqual([true, false, false, false, false, false]);
  // data of my-db, or data-my of db: one of them is enough.
  expect(await isManaged(object('PersistentVolumeClaim', 'data-my-db-0'))).toBe(true);
  expect(setReads).toHaveLength(1);
  const version: KubeObject = {
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'ClusterServiceVersion',
    metadata: { name: 'v', namespace: 'a', annotations: { 'olm.operatorGroup': 'operators' } },
  };
  expect(await isManaged(version)).toBe(true);
  expect(await isManaged(object('Endpoints', 'front'))).toBe(true);
  expect(await isManaged(object('Endpoints', 'back'))).toBe(false);
  expect(await isManaged(object('Endpoints', 'front', ownedBy(object('Custom', 'gone'))))).toBe(false);
  const metrics = (name: string) => ({ ...object('PodMetrics', name), apiVersion: 'metrics.k8s.io/v1beta1' });
  expect([await isManaged(metrics('web-1-x')), await isManaged(metrics('other'))]).toEqual([true, false]);
  expect(await isManaged({ kind: 'Status' } as KubeObject)).toBe(false);
});

test('an Event belongs to its object; an Event about a missing or unreadable object to its namespace', async () => {
  const event = (about: KubeObject, rest: Partial<KubeObject> = {}) => {
    const { apiVersion, kind, metadata } = about;
    return object('Event', `${metadata.name}.1`, {}, { involvedObject: { apiVersion, kind, ...metadata }, ...rest });
  };
  const { isManaged, isVisible, forbidden } = start(
    [deployment, replicaSet, pod, object('Pod', 'stranger')],
    [application('web', { spec: { destination: { namespace: 'a' } } })],
  );
  expect(await isVisible(event(pod))).toBe(true);
  expect(await isVisible(event(object('Pod', 'stranger')))).toBe(false);
  expect(await isVisible(event(object('Pod', 'gone')))).toBe(true);
  expect(await isVisible(event(object('Pod', 'gone', { namespace: 'b' })))).toBe(false);
  forbidden.add('hidden');
  expect(await isVisible(event(object('Pod', 'hidden')))).toBe(true);
  expect(await isVisible(event(object('Pod', 'hidden', { namespace: 'b' })))).toBe(false);
  const { involvedObject: regarding } = event(pod) as unknown as { involvedObject: object };
  const newer = object('Event', 'x', {}, { regarding });
  expect(await isVisible({ ...newer, apiVersion: 'events.k8s.io/v1' })).toBe(true);
  expect(await isVisible({ ...newer, apiVersion: 'example.com/v1' })).toBe(false);
  // Seen, not changed.
  expect(await isManaged(event(pod))).toBe(false);
});

test('the owners of a long list are read once, and not all at the same time', async () => {
  const { isManaged, reads } = start([deployment, replicaSet], [application('web')]);
  const pods = Array.from({ length: 100 }, (_, index) => object('Pod', `p${index}`, ownedBy(replicaSet)));
  expect((await Promise.all(pods.map(isManaged))).every(Boolean)).toBe(true);
  expect(reads).toEqual(['web-1', 'web']);
  const many = start([], [application('web')]);
  await Promise.all(
    Array.from({ length: 500 }, (_, n) => many.isManaged(object('Pod', 'p', ownedBy(object('Job', `j${n}`))))),
  );
  expect([many.reads.length, many.reading.most]).toEqual([500, 50]);
});

test('a check that one caller has given up is repeated for another caller', async () => {
  const { managed, signal } = start([deployment, replicaSet], [application('web')]);
  const hasty = new AbortController();
  const first = managed.verdictOn(pod, hasty.signal);
  const second = managed.verdictOn(object('Pod', 'web-1-y', ownedBy(replicaSet)), signal);
  hasty.abort(new Error('gone'));
  await expect(first).rejects.toThrow('gone');
  expect((await second).isManaged).toBe(true);
});

test('objects that an Application begins or ceases to own are known at once', async () => {
  const { isManaged, handler } = start([deployment, replicaSet], []);
  expect(await isManaged(pod)).toBe(false);
  handler().added(application('web'));
  expect(await isManaged(pod)).toBe(true);
  handler().deleted(application('web'));
  expect(await isManaged(pod)).toBe(false);
});

test('orphaned resources that Argo CD looks for are seen, but not changed; Secrets are neither', async () => {
  const stray = object('Pod', 'stray');
  const { managed, sees, owns } = orphans(stray);
  expect(await sees(stray)).toBe(true);
  expect(await owns(stray)).toBe(false);
  expect(await sees({ ...stray, metadata: { ...stray.metadata, namespace: 'b' } })).toBe(false);
  for (const kind of ['Secret', 'PartialObjectMetadata', undefined]) {
    expect(await sees({ ...stray, kind } as KubeObject)).toBe(false);
  }
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } };
  expect(await sees(node)).toBe(false);
  const about = (kind: string, name: string) =>
    object('Event', `${name}.1`, {}, { involvedObject: { apiVersion: 'v1', kind, namespace: 'a', name } });
  expect(await sees(about('Pod', 'stray'))).toBe(true);
  expect(await sees(about('Secret', 'stray'))).toBe(false);
  expect(managed.wasVisible(stray)).toBe(true);
});

function orphans(...cluster: KubeObject[]) {
  const signal = new AbortController().signal;
  const managed = new ManagedObjects({
    applications: { subscribe: () => undefined },
    namespace: 'argocd',
    hasOrphans: (namespace) => namespace === 'a',
    tracking: () => defaultTracking,
    read: async ({ kind, name }) =>
      kind === 'Secret'
        ? object('Secret', name)
        : cluster.find((one) => one.kind === kind && one.metadata.name === name),
    statefulSets: async () => [],
  });
  return {
    managed,
    sees: async (one: KubeObject) => (await managed.visibilityOf(one, signal)).isManaged,
    owns: async (one: KubeObject) => (await managed.verdictOn(one, signal)).isManaged,
  };
}
