import { expect, test } from 'vitest';
import { argoApplications } from '../../lib/bridge/index.ts';
import { configMaps, type Informer, type KubeObject, secrets } from '../../lib/kube/index.ts';
import { targets } from '../../lib/wire/index.ts';
import type { ReplicatedKind } from './kinds.ts';
import { StandbyWriter, type StandbyWriterOptions } from './standby-writer.ts';

const kind: ReplicatedKind = {
  name: 'Application',
  target: targets.application,
  type: argoApplications,
  informer: { get: () => undefined } as unknown as Informer<KubeObject>,
  includes: () => true,
  yields: false,
};
const nothing = () => undefined;
const signal = new AbortController().signal;

/** A writer on a hub that has one Application, and what it writes. */
function writerOn(local: KubeObject) {
  const written: KubeObject[] = [];
  const deleted: unknown[] = [];
  const created: KubeObject[] = [];
  const client = {
    get: async () => local,
    create: async (_type: unknown, object: KubeObject) => {
      created.push(object);
      return { ...object, metadata: { ...object.metadata, resourceVersion: '3' } };
    },
    delete: async (_type: unknown, _ref: unknown, { uid }: { uid: string }) => deleted.push(uid),
    replace: async (_type: unknown, object: KubeObject) => {
      written.push(object);
      return { ...object, metadata: { ...object.metadata, resourceVersion: '2' } };
    },
  } as unknown as StandbyWriterOptions['client'];
  const writer = new StandbyWriter({
    client,
    namespace: 'argocd',
    isManaged: () => true,
    applicationSetUid: nothing,
    logger: { debug: nothing, info: nothing, warn: nothing, error: nothing },
  });
  return { writer, written, deleted, created };
}

const web = (more: object = {}): KubeObject => ({
  metadata: {
    namespace: 'cluster1',
    name: 'web',
    uid: 'web-1',
    resourceVersion: '1',
    annotations: { 'argocd-agent.argoproj-labs.io/on-both-hubs': 'true' },
  },
  ...more,
});

test('a sync that this hub was asked for while it was active is taken away: the other one may have run it', async () => {
  const spec = { project: 'default' };
  const { writer, written } = writerOn(web({ spec, operation: { sync: {} } }));
  await writer.put(kind, web({ spec }), signal);
  expect(written).toHaveLength(1);
  expect(written[0]).toMatchObject({ spec });
  expect(written[0]).not.toHaveProperty('operation');
});

test('what is equal is not written', async () => {
  const spec = { project: 'default' };
  const { writer, written } = writerOn(web({ spec }));
  await writer.put(kind, web({ spec }), signal);
  expect(written).toEqual([]);
});

test('what is equal to the cache and is going on the active hub alone is deleted', async () => {
  const local = web({ spec: { project: 'default' } });
  const going = { ...local, metadata: { ...local.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
  const cached = { ...kind, informer: { get: () => local } as unknown as Informer<KubeObject> };
  const { writer, written, deleted } = writerOn(local);
  await writer.put(cached, local, signal, { fromCache: true });
  expect(deleted).toEqual([]);
  await writer.put(cached, going, signal, { fromCache: true });
  expect(written).toEqual([]);
  expect(deleted).toEqual(['web-1']);
});

const onBoth = { 'argocd-agent.argoproj-labs.io/on-both-hubs': 'true' };
const fastened = (uid: string, more: object): KubeObject =>
  ({
    metadata: { namespace: 'argocd', name: 'git', uid, resourceVersion: '1', annotations: onBoth },
    type: 'Opaque',
    data: { password: 'b2xk' },
    ...more,
  }) as KubeObject;

test.each<[string, object, object]>([
  ['an immutable Secret with other data', { immutable: true }, { immutable: true, data: { password: 'bmV3' } }],
  ['a Secret that was immutable', { immutable: true }, {}],
  ['a Secret of another type', { type: 'kubernetes.io/basic-auth' }, {}],
])('%s is deleted and made anew: it cannot be replaced', async (_, before, now) => {
  for (const name of ['Repository', 'ClusterSecret', 'GPGKey'] as const) {
    if (name === 'GPGKey' && !('immutable' in before)) {
      continue;
    }
    const type = name === 'GPGKey' ? configMaps : secrets;
    const { writer, written, deleted, created } = writerOn(fastened('git-1', before));
    await writer.put({ ...kind, name, type, yields: name === 'ClusterSecret' }, fastened('git-2', now), signal);
    expect(written).toEqual([]);
    expect(deleted).toEqual(['git-1']);
    expect(created).toMatchObject([now]);
  }
});

test('an immutable Secret with other labels alone is replaced', async () => {
  const { writer, written, deleted } = writerOn(fastened('git-1', { immutable: true }));
  const labels = { team: 'shop' };
  const next = fastened('git-2', { immutable: true });
  await writer.put(
    { ...kind, name: 'Repository', type: secrets },
    { ...next, metadata: { ...next.metadata, labels } },
    signal,
  );
  expect(deleted).toEqual([]);
  expect(written).toMatchObject([{ metadata: { labels } }]);
});

test('integers of 64 bits and nulls of the other hub are written as they came', async () => {
  const text = JSON.stringify(web({ spec: { source: { id: 1, n: null } } })).replace(
    '"id":1',
    '"id":1234567890123456789',
  );
  const { writer, written } = writerOn(web({ spec: { source: { id: 1234567890123456800, n: null } } }));
  await writer.put(kind, writer.parse(kind, Buffer.from(text)), signal);
  expect(JSON.stringify(written)).toContain('"source":{"id":1234567890123456789,"n":null}');
});

test("an object that is this hub's own by what the API server has is not removed", async () => {
  const { writer, deleted } = writerOn(web());
  const seen: unknown[] = [];
  const ref = { namespace: 'cluster1', name: 'web' };
  await writer.remove(kind, ref, signal, { isCopy: (local) => seen.push(local.metadata.uid) < 0 });
  expect([seen, deleted]).toEqual([['web-1'], []]);
  await writer.remove(kind, ref, signal);
  expect(deleted).toEqual(['web-1']);
});
