import { expect, test } from 'vitest';
import { annotations } from '../../lib/argocd/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import { until } from '../../lib/base/testing.ts';
import { argoApplications, argoAppProjects } from '../../lib/bridge/index.ts';
import {
  ApiError,
  configMaps,
  type Informer,
  type InformerHandler,
  type KubeObject,
  type ObjectKey,
  type ResourceType,
  secrets,
} from '../../lib/kube/index.ts';
import { KeptObjects } from './kept-objects.ts';
import { hubApplicationSets, isKeptOut, type ReplicatedKind } from './kinds.ts';
import { replicatedKey } from './news.ts';
import { StandbyWriter, type StandbyWriterOptions } from './standby-writer.ts';

const nothing = () => undefined;
const logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const namespace = 'argocd';
const marks = { [annotations.onBothHubs]: 'true' };

/** A hub with one kind: an API server, and a cache that has what it has at once. */
function hubWith(name: ReplicatedKind['name'], type: ResourceType) {
  const objects = new Map<string, KubeObject>();
  const handlers = new Set<InformerHandler<KubeObject>>();
  const state = { version: 0, refuses: false };
  const place = (ref: ObjectKey) => `${ref.namespace ?? ''}/${ref.name}`;
  const store = (object: KubeObject): KubeObject => {
    const old = objects.get(place(object.metadata));
    const resourceVersion = String(++state.version);
    const uid = old?.metadata.uid ?? `uid-${state.version}`;
    const now = structuredClone({ ...object, metadata: { ...object.metadata, uid, resourceVersion } });
    objects.set(place(now.metadata), now);
    for (const handler of handlers) {
      old === undefined ? handler.added?.(now, false) : handler.updated?.(old, now);
    }
    return now;
  };
  const remove = (ref: ObjectKey) => {
    const last = objects.get(place(ref));
    if (last === undefined) {
      return;
    }
    objects.delete(place(ref));
    for (const handler of handlers) {
      handler.deleted?.(last);
    }
  };
  const refused = () => {
    if (state.refuses) {
      throw new ApiError({ status: 422, reason: 'Invalid', message: 'a policy says no' });
    }
  };
  const client = {
    get: async (_type: unknown, ref: ObjectKey) => structuredClone(objects.get(place(ref))),
    create: async (_type: unknown, object: KubeObject) => {
      refused();
      return store(object);
    },
    replace: async (_type: unknown, object: KubeObject) => {
      refused();
      return store(object);
    },
    mergePatch: async (_type: unknown, ref: ObjectKey) => {
      const local = objects.get(place(ref)) as KubeObject;
      const { deletionTimestamp, finalizers: _, ...metadata } = local.metadata;
      return deletionTimestamp === undefined ? store({ ...local, metadata }) : remove(ref);
    },
    delete: async (_type: unknown, ref: ObjectKey) => remove(ref),
  } as unknown as StandbyWriterOptions['client'];
  const informer = {
    hasSynced: true,
    get: (ref: ObjectKey) => objects.get(place(ref)),
    list: () => [...objects.values()],
    subscribe: (handler: InformerHandler<KubeObject>) => {
      handlers.add(handler);
      return () => handlers.delete(handler);
    },
    caughtUp: async () => undefined,
  } as unknown as Informer<KubeObject>;
  const kind: ReplicatedKind = {
    name,
    target: name,
    type,
    informer,
    includes: (object) => !isKeptOut(object),
    yields: name === 'ClusterSecret',
  };
  return { kind, client, store, remove, state, get: (ref: ObjectKey) => objects.get(place(ref)) };
}

/** A standby with one object of the active hub, which it has written; and one who meddles. */
async function standbyOf(name: ReplicatedKind['name'], type: ResourceType, wanted: KubeObject) {
  const hub = hubWith(name, type);
  const writer = new StandbyWriter({
    client: hub.client,
    namespace,
    isManaged: () => true,
    applicationSetUid: nothing,
    logger,
  });
  let told = 0;
  const kept = new KeptObjects({ writer, refused: () => told++, logger });
  kept.follow(hub.kind);
  const stop = new AbortController();
  const running = kept.run(stop.signal);
  const ref = { namespace: wanted.metadata.namespace ?? '', name: wanted.metadata.name };
  const say = (object: KubeObject) => kept.want(hub.kind, ref, Buffer.from(JSON.stringify(object)));
  say(wanted);
  await writer.put(hub.kind, wanted, stop.signal);
  const now = () => hub.get(ref) as (KubeObject & Record<string, unknown>) | undefined;
  const meddle = (change: (object: KubeObject & Record<string, unknown>) => void) => {
    const object = structuredClone(now()) as KubeObject & Record<string, unknown>;
    change(object);
    hub.store(object);
  };
  const end = () => {
    stop.abort();
    return running;
  };
  const settled = (ms = 1_000) => kept.settled(ms, stop.signal);
  return {
    ...hub,
    kept,
    writer,
    ref,
    key: replicatedKey(hub.kind, ref),
    say,
    now,
    meddle,
    told: () => told,
    settled,
    end,
  };
}

const object = (name: string, more: object = {}): KubeObject => ({
  metadata: { namespace, name, labels: {}, annotations: {} },
  ...more,
});
const secretOf = (type: 'cluster' | 'repository') =>
  ({
    metadata: { namespace, name: type, labels: { [wellKnown.secretTypeLabel]: type }, annotations: {} },
    type: 'Opaque',
    data: { url: 'aHR0cHM6Ly9naXQ=' },
  }) as KubeObject;

test.each<[ReplicatedKind['name'], ResourceType, KubeObject, string]>([
  ['ClusterSecret', secrets, secretOf('cluster'), 'data'],
  ['GPGKey', configMaps, object(wellKnown.gpgKeysConfigMap, { data: { key: 'one' } }), 'data'],
  ['AppProject', argoAppProjects, object('shop', { spec: { sourceRepos: ['*'] } }), 'spec'],
  ['Repository', secrets, secretOf('repository'), 'data'],
  ['ApplicationSet', hubApplicationSets, object('all', { spec: { generators: [] } }), 'spec'],
  ['Application', argoApplications, object('web', { spec: { project: 'default' } }), 'spec'],
])('what somebody changes or deletes of kind %s on the standby is put back', async (name, type, wanted, field) => {
  const { meddle, now, remove, ref, kept, settled, end } = await standbyOf(name, type, wanted);
  const right = (wanted as KubeObject & Record<string, unknown>)[field];
  meddle((one) => {
    one[field] = { meddled: 'yes' };
  });
  expect(kept.lag).toBe(1);
  await until(() => expect(now()?.[field]).toEqual(right));
  remove(ref);
  await until(() => expect(now()?.[field]).toEqual(right));
  meddle((one) => {
    one.metadata.annotations = {};
    one.metadata.labels = { mine: 'yes' };
  });
  await until(() => expect(now()?.metadata.labels).toEqual(wanted.metadata.labels));
  expect(now()?.metadata.annotations).toEqual(name === 'GPGKey' ? {} : marks);
  await until(() => expect(kept.lag).toBe(0));
  expect(await settled()).toEqual([]);
  await end();
});

test('an Application whose deletion somebody has begun on the standby is made anew, so that no promotion goes on with it', async () => {
  const { meddle, now, kept, end } = await standbyOf(
    'Application',
    argoApplications,
    object('shop', {
      metadata: { namespace, name: 'shop', finalizers: ['resources-finalizer.argocd.argoproj.io'] },
      spec: { project: 'default' },
    }),
  );
  const uid = now()?.metadata.uid;
  meddle(({ metadata }) => {
    metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  });
  await until(() => expect(now()?.metadata.uid).not.toBe(uid));
  expect(now()?.metadata.deletionTimestamp).toBeUndefined();
  expect(now()?.metadata.finalizers).toEqual(['resources-finalizer.argocd.argoproj.io']);
  await until(() => expect(kept.lag).toBe(0));
  await end();
});

test('what an ApplicationSet makes names one that was put back by its new UID', async () => {
  const sets = hubWith('ApplicationSet', hubApplicationSets);
  const apps = hubWith('Application', argoApplications);
  const hubOf = (type: unknown) => (type === hubApplicationSets ? sets : apps);
  const client = {
    get: (type: ResourceType, ref: ObjectKey) => hubOf(type).client.get(type, ref),
    create: (type: ResourceType, one: KubeObject) => hubOf(type).client.create(type, one),
    replace: (type: ResourceType, one: KubeObject) => hubOf(type).client.replace(type, one),
  } as unknown as StandbyWriterOptions['client'];
  const uidOfSet = () => sets.get({ namespace, name: 'all' })?.metadata.uid;
  const writer = new StandbyWriter({ client, namespace, isManaged: () => true, applicationSetUid: uidOfSet, logger });
  const kept = new KeptObjects({ writer, refused: nothing, logger });
  const stop = new AbortController();
  const running = kept.run(stop.signal);
  const owner = { apiVersion: 'argoproj.io/v1alpha1', kind: 'ApplicationSet', name: 'all', uid: 'of-the-active-hub' };
  const set = object('all', { spec: { generators: [] } });
  const web = object('web', {
    metadata: { ...object('web').metadata, ownerReferences: [owner] },
    spec: { project: 'default' },
  });
  for (const [{ kind }, wanted] of [
    [sets, set],
    [apps, web],
  ] as const) {
    kept.follow(kind);
    kept.want(kind, { namespace, name: wanted.metadata.name }, Buffer.from(JSON.stringify(wanted)));
    await writer.put(kind, wanted, stop.signal);
  }
  const namedUid = () => apps.get({ namespace, name: 'web' })?.metadata.ownerReferences?.[0]?.uid;
  const before = uidOfSet();
  expect(namedUid()).toBe(before);
  sets.remove({ namespace, name: 'all' });
  await until(() => expect(uidOfSet()).toBeDefined());
  expect(uidOfSet()).not.toBe(before);
  await until(() => expect(namedUid()).toBe(uidOfSet()));
  stop.abort();
  await running;
});

test('what cannot be put back counts as lag, is told, and is named to whoever wants to promote', async () => {
  const web = object('web', { spec: { project: 'default' } });
  const { meddle, state, kept, told, key, settled, end } = await standbyOf('Application', argoApplications, web);
  state.refuses = true;
  meddle((one) => {
    one.spec = { project: 'other' };
  });
  expect(await settled(100)).toEqual([key]);
  await until(() => expect(kept.refused).toEqual([key]));
  expect([kept.lag, told()]).toEqual([1, 1]);
  expect(kept.lagMs).toBeGreaterThan(0);
  state.refuses = false;
  await until(() => expect(kept.lag).toBe(0));
  expect([kept.refused, told()]).toEqual([[], 2]);
  expect(await settled()).toEqual([]);
  await end();
});

test('what the API server itself makes of an object is not put back', async () => {
  const { kind, now, meddle, say, writer, kept, settled, end } = await standbyOf(
    'Application',
    argoApplications,
    object('web', { spec: { project: 'default' } }),
  );
  const pruned = object('web', { spec: { project: 'default', unknownHere: true } });
  say(pruned);
  await writer.put(kind, pruned, new AbortController().signal);
  expect(await settled()).toEqual([]);
  const before = now()?.metadata.resourceVersion;
  expect(kept.lag).toBe(0);
  meddle((one) => {
    one.spec = { project: 'other' };
  });
  await until(() => expect(now()?.spec).toMatchObject({ project: 'default' }));
  expect(now()?.metadata.resourceVersion).not.toBe(before);
  await end();
});

test.each(['deleted on the active hub', 'not the newest state any more'])(
  'what is %s is not put back',
  async (what) => {
    const web = object('web', { spec: { project: 'default' } });
    const { kind, ref, remove, say, now, kept, writer, end } = await standbyOf('Application', argoApplications, web);
    if (what === 'deleted on the active hub') {
      kept.drop(kind, ref);
      remove(ref);
      expect(kept.lag).toBe(0);
      await new Promise((resolve) => setImmediate(resolve));
      expect(now()).toBeUndefined();
    } else {
      const news = object('web', { spec: { project: 'new' } });
      say(news);
      remove(ref);
      await writer.put(kind, news, new AbortController().signal);
      await until(() => expect(kept.lag).toBe(0));
      expect(now()?.spec).toEqual({ project: 'new' });
    }
    await end();
  },
);

test("a standby's own cluster Secret and an object that is kept out stay as they are", async () => {
  const { meddle, now, kept, settled, end } = await standbyOf('ClusterSecret', secrets, secretOf('cluster'));
  meddle((one) => {
    one.metadata.labels = { ...one.metadata.labels, [wellKnown.ignoreSyncLabel]: 'true' };
    one.data = { url: 'b3du' };
  });
  expect(await settled()).toEqual([]);
  expect([kept.lag, now()?.data]).toEqual([0, { url: 'b3du' }]);
  await end();
});

test('a change of the active hub that is being written is waited for', async () => {
  const web = object('web', { spec: { project: 'default' } });
  const { meddle, now, kept, end } = await standbyOf('Application', argoApplications, web);
  let isPending = true;
  kept.pending(() => isPending);
  meddle((one) => {
    one.spec = { project: 'other' };
  });
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(now()?.spec).toEqual({ project: 'other' });
  isPending = false;
  await until(() => expect(now()?.spec).toEqual({ project: 'default' }));
  await end();
});
