import { expect, test } from 'vitest';
import { applyMergePatch } from '../../base/index.ts';
import { type Store, type StoredObject, systemClock, View } from '../../sync/index.ts';
import { applicationNames } from './kind-names.ts';
import type { Plan } from './plan.ts';
import { PlanWriter } from './plan-writer.ts';

interface Thing extends StoredObject {
  readonly metadata: StoredObject['metadata'] & { readonly finalizers?: readonly string[] };
}

const ref = { namespace: 'a', name: 'web' };
const silent = () => undefined;
const log = { debug: silent, info: silent, warn: silent, error: silent };

/** Takes the finalizers of an object away, and then the object. */
const removal = (now: Thing | undefined): Plan<Thing> => {
  if (now === undefined) {
    return { action: 'none' };
  }
  return (now.metadata.finalizers ?? []).length > 0
    ? { action: 'update', reason: 'changed', patch: { metadata: { finalizers: null } } }
    : { action: 'delete', uid: 'u', propagation: 'Background' };
};

/** An API server with one object. Between two requests somebody may change it. */
function setting(between: (object: Thing) => Thing | undefined, makesOf = (object: Thing) => object) {
  const held: Thing = { metadata: { ...ref, uid: 'u', resourceVersion: '1', finalizers: ['hold'] } };
  const server: { object: Thing | undefined; writes: string[] } = { object: held, writes: [] };
  const changed = (object: Thing): Thing => ({
    metadata: { ...object.metadata, resourceVersion: String(Number(object.metadata.resourceVersion) + 1) },
  });
  const meddle = () => {
    const other = server.object && between(server.object);
    server.object = other === undefined ? server.object : changed(other);
  };
  const store: Store<Thing> = {
    subscribe: (listener) => {
      listener({ old: undefined, now: held });
      return silent;
    },
    read: async () => server.object,
    create: async (object) => object,
    patch: async (_ref, patch) => {
      server.writes.push('patch');
      server.object = changed(makesOf(applyMergePatch(server.object, patch) as Thing));
      return server.object;
    },
    delete: async (_ref, _options, _signal, planned) => {
      meddle();
      if (planned?.metadata.resourceVersion !== server.object?.metadata.resourceVersion) {
        throw Object.assign(new Error('it has changed'), { status: 409 });
      }
      server.writes.push('delete');
      server.object = undefined;
    },
  };
  const view = new View<Thing>({ clock: systemClock, changed: silent, doubted: silent });
  view.follow(store);
  const writer = new PlanWriter<Thing>({ names: applicationNames, store, view, runtime: { log } });
  return { server, run: () => writer.run(ref, removal, new AbortController().signal) };
}

test('the same patch is written again when somebody has undone it', async () => {
  let times = 1;
  const { server, run } = setting(({ metadata }) =>
    times-- > 0 ? { metadata: { ...metadata, finalizers: ['hold'] } } : undefined,
  );
  expect(await run()).toMatchObject({ is: 'done' });
  expect(server).toEqual({ object: undefined, writes: ['patch', 'patch', 'delete'] });
});

test('a patch of which the API server makes something else is written once', async () => {
  const { server, run } = setting(
    () => undefined,
    ({ metadata }) => ({ metadata: { ...metadata, finalizers: ['hold'] } }),
  );
  expect(await run()).toMatchObject({ is: 'done', isWritten: true });
  expect(server.writes).toEqual(['patch']);
});
