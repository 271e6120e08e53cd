import { expect, test } from 'vitest';
import { applyMergePatch, jsonSize } from '../../lib/base/index.ts';
import type { Store, StoreChange } from '../../lib/sync/index.ts';
import { type AgentLimits, AgentQuotas, type QuotaKind, type QuotaLimit } from './agent-quotas.ts';

interface Thing {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
  };
  readonly spec?: unknown;
  readonly status?: unknown;
}

const { signal } = new AbortController();
const none: AgentLimits = { objects: 0, bytes: 0, objectBytes: 0, writesPerSecond: 0, writtenBytesPerSecond: 0 };

/** A hub whose namespaces are named after agents; those of `managed-*` hold the hub's own objects, the others mirrors. */
function hub(limits: Partial<AgentLimits>) {
  const clock = { now: 0 };
  const refused: [string, QuotaLimit][] = [];
  const delayed: string[] = [];
  const objects = new Map<string, Thing>();
  const listeners = new Set<(change: StoreChange<Thing>) => void>();
  const server = { fails: false, lags: false, reads: 0 };
  const key = ({ namespace, name }: { namespace: string; name: string }) => `${namespace}/${name}`;
  let version = 0;
  /** What the cache has not seen yet. */
  const unseen: StoreChange<Thing>[] = [];
  const catchUp = () => {
    for (const change of unseen.splice(0)) {
      for (const listener of listeners) {
        listener(change);
      }
    }
  };
  const changed = (change: StoreChange<Thing>) => {
    unseen.push(change);
    if (!server.lags) {
      catchUp();
    }
  };
  const put = (object: Thing) => {
    if (server.fails) {
      throw new Error('the server fails');
    }
    const old = objects.get(key(object.metadata));
    const resourceVersion = String(++version);
    const now = { ...object, metadata: { uid: `uid-${version}`, ...object.metadata, resourceVersion } };
    objects.set(key(now.metadata), now);
    changed({ old, now });
    return now;
  };
  const store: Store<Thing> = {
    subscribe: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    read: async (ref) => {
      server.reads++;
      return objects.get(key(ref));
    },
    create: async (object) => put(object),
    patch: async (ref, patch) => put(applyMergePatch(objects.get(key(ref)), patch) as Thing),
    delete: async (ref) => {
      const old = objects.get(key(ref));
      objects.delete(key(ref));
      changed({ old, now: undefined });
    },
  };
  const quotas = new AgentQuotas(
    { ...none, ...limits },
    { refused: (agent, limit) => refused.push([agent, limit]), delayed: (agent) => delayed.push(agent) },
    { now: () => clock.now, after: () => () => undefined },
  );
  const kind: QuotaKind<Thing> = {
    kind: 'Thing',
    ownerOf: ({ metadata }) => metadata.namespace,
    isMirror: ({ metadata }) => !metadata.namespace.startsWith('managed-'),
  };
  const guarded = quotas.follow(store, kind)(store);
  const create = (namespace: string, name: string, spec: unknown = {}) =>
    guarded.create({ metadata: { namespace, name }, spec }, signal);
  return { clock, refused, delayed, objects, server, catchUp, quotas, store: guarded, create, put };
}

test('an agent has as many mirrors as it may, and the others are not concerned', async () => {
  const { create, store, refused } = hub({ objects: 2 });
  await create('edge', 'a');
  await create('edge', 'b');
  await expect(create('edge', 'c')).rejects.toMatchObject({ status: 413 });
  await create('other', 'c');
  await store.patch({ namespace: 'edge', name: 'a' }, { spec: { more: true } }, signal);
  await store.delete({ namespace: 'edge', name: 'a' }, { uid: '', propagation: 'Background' }, signal);
  await create('edge', 'c');
  expect(refused).toEqual([['edge', 'objects']]);
});

test('writes at the same time do not exceed the limits together', async () => {
  const { create, objects } = hub({ objects: 5, bytes: 1_000_000 });
  const results = await Promise.allSettled(Array.from({ length: 50 }, (_, index) => create('edge', `a${index}`)));
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(5);
  expect(objects.size).toBe(5);
});

test('all that an agent has stored is limited by its size, in which many small parts count more than text', async () => {
  const { create, quotas, refused } = hub({ bytes: 1_000_000, objectBytes: 500_000 });
  await expect(create('edge', 'braces', Array(10_000).fill({}))).rejects.toThrow('--agent-max-object-bytes');
  await create('edge', 'text', 'x'.repeat(400_000));
  await create('edge', 'text2', 'x'.repeat(400_000));
  await expect(create('edge', 'text3', 'x'.repeat(400_000))).rejects.toThrow('--agent-max-bytes');
  expect(quotas.usageOf('edge').bytes).toBeLessThan(1_000_000);
  expect(refused).toEqual([
    ['edge', 'object_bytes'],
    ['edge', 'bytes'],
  ]);
});

test("of the hub's own Applications the statuses count, and one that gets smaller is always written", async () => {
  const { put, store, quotas } = hub({ bytes: 100_000 });
  put({ metadata: { namespace: 'managed-1', name: 'a' }, spec: 'x'.repeat(1_000_000) });
  const ref = { namespace: 'managed-1', name: 'a' };
  await store.patch(ref, { status: { message: 'x'.repeat(90_000) } }, signal);
  await expect(store.patch(ref, { status: { message: 'x'.repeat(110_000) } }, signal)).rejects.toThrow('bytes');
  await store.patch(ref, { status: { message: 'short' } }, signal);
  expect(quotas.usageOf('managed-1')).toEqual({ objects: 0, bytes: jsonSize({ message: 'short' }) });
});

test('what the API server refused does not count', async () => {
  const { create, server, quotas } = hub({ objects: 1 });
  server.fails = true;
  await expect(create('edge', 'a')).rejects.toThrow('the server fails');
  expect(quotas.usageOf('edge')).toEqual({ objects: 0, bytes: 0 });
  server.fails = false;
  await create('edge', 'a');
});

test('an agent above its rate of writes waits, the others do not', async () => {
  const { create, quotas, clock } = hub({ writesPerSecond: 10 });
  for (let write = 0; write < 1_100; write++) {
    await create('edge', `a${write}`);
  }
  const stop = new AbortController();
  const state = { isPassed: false };
  const pacing = quotas.pace('edge', stop.signal).then(() => {
    state.isPassed = !stop.signal.aborted;
  });
  await quotas.pace('other', signal);
  expect(state.isPassed).toBe(false);
  stop.abort();
  await pacing;
  expect(state.isPassed).toBe(false);
  clock.now += 11_000;
  await quotas.pace('edge', signal);
});

test('written bytes count with the whole object, however small the patch is', async () => {
  const { create, store, quotas, clock } = hub({ writtenBytesPerSecond: 1_000_000 });
  await create('edge', 'a', 'x'.repeat(1_000_000));
  for (let write = 0; write < 100; write++) {
    await store.patch({ namespace: 'edge', name: 'a' }, { status: { at: write } }, signal);
  }
  const stop = AbortSignal.timeout(1);
  await quotas.pace('edge', stop);
  expect(stop.aborted).toBe(true);
  clock.now += 38_000;
  await quotas.pace('edge', signal);
});

test('the first synchronisation of 2,000 Applications is not slowed by the defaults', async () => {
  const { create, quotas, delayed } = hub({
    objects: 5_000,
    bytes: 128 * 1024 * 1024,
    objectBytes: 4 * 1024 * 1024,
    writesPerSecond: 50,
    writtenBytesPerSecond: 2 * 1024 * 1024,
  });
  const resources = Array.from({ length: 40 }, (_, index) => ({
    group: 'apps',
    version: 'v1',
    kind: 'Deployment',
    namespace: 'guestbook',
    name: `guestbook-${index}`,
    status: 'Synced',
    health: { status: 'Healthy' },
  }));
  for (let index = 0; index < 2_000; index++) {
    await quotas.pace('edge', signal);
    await create('edge', `a${index}`, { project: 'default', resources, history: 'x'.repeat(10_000) });
  }
  expect(delayed).toEqual([]);
});

test('what was written counts before the cache has it, and its echoes of earlier states change nothing', async () => {
  const { create, store, quotas, server, catchUp, refused, objects } = hub({ objectBytes: 100_000, bytes: 250_000 });
  server.lags = true;
  const large = { spec: 'x'.repeat(90_000) };
  for (const name of ['a', 'b']) {
    const ref = { namespace: 'edge', name };
    await create('edge', name);
    await expect(store.patch(ref, { spec: 'x'.repeat(150_000) }, signal)).rejects.toThrow('--agent-max-object-bytes');
    await store.patch(ref, large, signal);
  }
  const { bytes } = quotas.usageOf('edge');
  expect(bytes).toBeGreaterThan(180_000);
  await create('edge', 'c');
  await expect(store.patch({ namespace: 'edge', name: 'c' }, large, signal)).rejects.toThrow('--agent-max-bytes');
  const counted = quotas.usageOf('edge');
  catchUp();
  expect(quotas.usageOf('edge')).toEqual(counted);
  expect(refused.map(([, limit]) => limit)).toEqual(['object_bytes', 'object_bytes', 'bytes']);
  expect([objects.size, server.reads]).toEqual([3, 0]);
});

test('one that was made again counts, although the cache only now reports that the former one is gone', async () => {
  const { create, store, quotas, server, catchUp } = hub({ objects: 1 });
  await create('edge', 'a');
  server.lags = true;
  await store.delete({ namespace: 'edge', name: 'a' }, { uid: '', propagation: 'Background' }, signal);
  await create('edge', 'a');
  await expect(create('edge', 'b')).rejects.toThrow('--agent-max-objects');
  catchUp();
  expect(quotas.usageOf('edge').objects).toBe(1);
  await expect(create('edge', 'b')).rejects.toThrow('--agent-max-objects');
});

test('what neither cache nor caller knows is read before it is patched or deleted', async () => {
  const { put, store, quotas, server, clock } = hub({ objectBytes: 100_000, writesPerSecond: 1 });
  server.lags = true;
  const ref = { namespace: 'edge', name: 'a' };
  put({ metadata: ref });
  await expect(store.patch(ref, { spec: 'x'.repeat(150_000) }, signal)).rejects.toThrow('--agent-max-object-bytes');
  expect(server.reads).toBe(1);
  for (let write = 0; write < 150; write++) {
    const { uid = '' } = put({ metadata: { namespace: 'edge', name: `b${write}` } }).metadata;
    await store.delete({ namespace: 'edge', name: `b${write}` }, { uid, propagation: 'Background' }, signal);
  }
  const stop = AbortSignal.timeout(1);
  await quotas.pace('edge', stop);
  expect(stop.aborted).toBe(true);
  clock.now += 60_000;
  await quotas.pace('edge', signal);
});
