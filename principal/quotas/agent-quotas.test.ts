import { expect, test } from 'vitest';
import { applyMergePatch, jsonSize } from '../../lib/base/index.ts';
import type { Store, StoreChange } from '../../lib/sync/index.ts';
import { type AgentLimits, AgentQuotas, type QuotaKind, type QuotaLimit } from './agent-quotas.ts';

interface Thing {
  readonly metadata: { readonly name: string; readonly namespace: string };
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
  const server = { fails: false };
  const key = ({ namespace, name }: { namespace: string; name: string }) => `${namespace}/${name}`;
  const put = (now: Thing) => {
    if (server.fails) {
      throw new Error('the server fails');
    }
    const old = objects.get(key(now.metadata));
    objects.set(key(now.metadata), now);
    for (const listener of listeners) {
      listener({ old, now });
    }
    return now;
  };
  const store: Store<Thing> = {
    subscribe: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    read: async (ref) => objects.get(key(ref)),
    create: async (object) => put(object),
    patch: async (ref, patch) => put(applyMergePatch(objects.get(key(ref)), patch) as Thing),
    delete: async (ref) => {
      const old = objects.get(key(ref));
      objects.delete(key(ref));
      for (const listener of listeners) {
        listener({ old, now: undefined });
      }
    },
  };
  const quotas = new AgentQuotas(
    { ...none, ...limits },
    { refused: (agent, limit) => refused.push([agent, limit]), delayed: (agent) => delayed.push(agent) },
    () => clock.now,
  );
  const kind: QuotaKind<Thing> = {
    kind: 'Thing',
    ownerOf: ({ metadata }) => metadata.namespace,
    isMirror: ({ metadata }) => !metadata.namespace.startsWith('managed-'),
    get: (ref) => objects.get(key(ref)),
  };
  quotas.follow(store, kind);
  const guarded = quotas.guard(store, kind);
  const create = (namespace: string, name: string, spec: unknown = {}) =>
    guarded.create({ metadata: { namespace, name }, spec }, signal);
  return { clock, refused, delayed, objects, server, quotas, store: guarded, create, put };
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
