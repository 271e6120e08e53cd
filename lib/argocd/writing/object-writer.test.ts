import { expect, test } from 'vitest';
import { applyMergePatch, type MergePatch } from '../../base/index.ts';
import {
  type ObjectRef,
  type Store,
  type StoreChange,
  type StoredObject,
  systemClock,
  View,
} from '../../sync/index.ts';
import { ObjectWriter } from './object-writer.ts';

interface Thing extends StoredObject {
  readonly status: string;
}

const log = { debug: () => undefined };
const ref = { namespace: 'a', name: 'web' };
const thing = (status: string, resourceVersion: string, uid = 'u'): Thing => ({
  metadata: { ...ref, uid, resourceVersion },
  status,
});

/** An API server with one object, whose cache is behind and whose answers to patches get lost. */
function setting() {
  const server = { object: thing('old', '1'), reads: 0, isAnswering: false };
  const under: { end: Promise<void> | undefined } = { end: undefined };
  const store: Store<Thing> = {
    subscribe: (listener) => {
      listener({ old: undefined, now: thing('old', '1') });
      return () => undefined;
    },
    read: async () => {
      server.reads++;
      return server.object;
    },
    create: async (object) => object,
    patch: async (_: ObjectRef, patch: MergePatch) => {
      const { status } = applyMergePatch(server.object, patch) as Thing;
      server.object = thing(status, String(Number(server.object.metadata.resourceVersion) + 1));
      if (!server.isAnswering) {
        throw new Error('connection reset');
      }
      return server.object;
    },
    delete: async () => undefined,
    settled: () => under.end,
  };
  const view = new View<Thing>({ clock: systemClock, changed: () => undefined, doubted: () => undefined });
  view.follow(store);
  const writer = new ObjectWriter({ store, view, log });
  const write = (status: string) =>
    writer.run(
      ref,
      (now) =>
        now?.status === status
          ? { result: 'done' as const }
          : { write: { action: 'update', patch: { status } }, after: () => 'written' as const },
      new AbortController().signal,
    );
  return { server, under, write };
}

test('nothing is taken for done by a cache that may be older than a write without an answer', async () => {
  const { server, write } = setting();
  await expect(write('new')).rejects.toThrow('connection reset');
  server.isAnswering = true;
  expect(await write('old'), 'as the cache has it, which lags behind').toBe('written');
  expect(server.object.status).toBe('old');
  expect(server.reads).toBe(1);
  expect(await write('old')).toBe('done');
  expect(server.reads, 'the answer says how it is').toBe(1);
});

test('nor while a write that was given up is under way', async () => {
  const { server, under, write } = setting();
  await expect(write('new')).rejects.toThrow('connection reset');
  server.isAnswering = true;
  server.object = thing('old', '1');
  const { promise, resolve } = Promise.withResolvers<void>();
  under.end = promise;
  const written = write('old');
  await new Promise((go) => setImmediate(go));
  expect(server.reads).toBe(0);
  server.object = thing('new', '3');
  resolve();
  expect(await written).toBe('written');
  expect(server.object.status).toBe('old');
});

test('what the API server has in a state that takes no part leaves the view, and comes back in a newer one', async () => {
  const known: (string | undefined)[] = [];
  let listener: ((change: StoreChange<Thing>) => void) | undefined;
  let found: Thing | 'no answer' = thing('shown', '1');
  const store = {
    subscribe: (listen: typeof listener) => {
      listener = listen;
      return () => undefined;
    },
    read: async () => {
      if (found === 'no answer') {
        throw new Error('connection reset');
      }
      return found;
    },
  } as unknown as Store<Thing>;
  const changed = (_: ObjectRef, { now }: StoreChange<Thing>) => void known.push(now?.status);
  const view = new View<Thing>({ clock: systemClock, changed, doubted: () => undefined });
  view.follow(store);
  const writer = new ObjectWriter({ store, view, isHidden: ({ status }) => status === 'hidden', log });
  const { signal } = new AbortController();
  await writer.check(ref, signal);
  found = thing('hidden', '2');
  await writer.check(ref, signal);
  found = 'no answer';
  await writer.check(ref, signal);
  listener?.({ old: undefined, now: thing('shown again', '3') });
  expect(known).toEqual(['shown', undefined, 'shown again']);
  found = thing('hidden', '4', 'another of this name');
  await writer.check(ref, signal);
  expect(known.at(-1)).toBeUndefined();
});
