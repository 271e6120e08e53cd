import { expect, test } from 'vitest';
import { ApiError, type KubeObject } from '../../lib/kube/index.ts';
import { defaultTracking, type Tracking } from '../../lib/live/index.ts';
import { ManagedObjects, type ManagedObjectsOptions, type OwningApplication } from './managed.ts';

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
  const forbidden = new Set<string>();
  const managed = new ManagedObjects({
    applications: {
      subscribe: (subscriber) => {
        handler = subscriber;
        for (const one of applications) subscriber.added(one);
      },
    },
    namespace: 'argocd',
    tracking: () => tracking,
    read: async ({ kind, name }) => {
      reads.push(name);
      if (forbidden.has(name)) throw new ApiError({ status: 403, message: 'no' });
      return cluster.find((one) => one.kind === kind && one.metadata.name === name);
    },
    statefulSets: async () => cluster.filter(({ kind }) => kind === 'StatefulSet').map(({ metadata }) => metadata.name),
  });
  const signal = new AbortController().signal;
  const isManaged = async (one: KubeObject) => (await managed.verdictOn(one, signal)).isManaged;
  return { managed, isManaged, reads, forbidden, signal, handler: () => handler as Handler };
}

const deployment = object('Deployment', 'web', tracked);
const replicaSet = object('ReplicaSet', 'web-1', ownedBy(deployment));
const pod = object('Pod', 'web-1-x', ownedBy(replicaSet));

test('what is marked, and what it owns over any number of levels', async () => {
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

test('what an Application lists, marked or not, as long as it does', async () => {
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

test('the destination namespace', async () => {
  const { isManaged, managed } = start([], [application('web', { spec: { destination: { namespace: 'shop' } } })]);
  const namespace = (name: string): KubeObject => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  expect([await isManaged(namespace('shop')), await isManaged(namespace('kube-system'))]).toEqual([true, false]);
  expect([managed.isDestination('shop'), managed.isDestination('kube-system')]).toEqual([true, false]);
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
  const set = object('StatefulSet', 'db', tracked);
  const group: KubeObject = {
    ...object('OperatorGroup', 'operators', tracked),
    apiVersion: 'operators.coreos.com/v1',
  };
  const { isManaged } = start([set, group], [application('web')]);
  expect(await isManaged(object('PersistentVolumeClaim', 'data-db-0'))).toBe(true);
  expect(await isManaged(object('PersistentVolumeClaim', 'data-other-0'))).toBe(false);
  expect(await isManaged(object('PersistentVolumeClaim', 'db-0'))).toBe(false);
  const version: KubeObject = {
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'ClusterServiceVersion',
    metadata: { name: 'v', namespace: 'a', annotations: { 'olm.operatorGroup': 'operators' } },
  };
  expect(await isManaged(version)).toBe(true);
});

test('an Event belongs to its object; one of a deleted object to its namespace', async () => {
  const event = (about: KubeObject) => {
    const { apiVersion, kind, metadata } = about;
    return object('Event', `${metadata.name}.1`, {}, { involvedObject: { apiVersion, kind, ...metadata } });
  };
  const { isManaged } = start(
    [deployment, replicaSet, pod, object('Pod', 'stranger')],
    [application('web', { spec: { destination: { namespace: 'a' } } })],
  );
  expect(await isManaged(event(pod))).toBe(true);
  expect(await isManaged(event(object('Pod', 'stranger')))).toBe(false);
  expect(await isManaged(event(object('Pod', 'gone')))).toBe(true);
  expect(await isManaged(event(object('Pod', 'gone', { namespace: 'b' })))).toBe(false);
});

test('the owners of a long list are read once', async () => {
  const { isManaged, reads } = start([deployment, replicaSet], [application('web')]);
  const pods = Array.from({ length: 100 }, (_, index) => object('Pod', `p${index}`, ownedBy(replicaSet)));
  expect((await Promise.all(pods.map(isManaged))).every(Boolean)).toBe(true);
  expect(reads).toEqual(['web-1', 'web']);
});
