import { expect, test } from 'vitest';
import { annotations } from '../../lib/argocd/index.ts';
import type { Informer, KubeObject } from '../../lib/kube/index.ts';
import type { ReplicaStream } from '../../lib/wire/index.ts';
import { deletedHereReason, hubApplicationSets, notListedReason, type ReplicatedKind } from './kinds.ts';
import { ReplicationSource, type ReplicationSourceOptions } from './replication-source.ts';

const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

function source(
  kinds: readonly ReplicatedKind[] = [],
  { bothHadBefore, cutOff }: Partial<ReplicationSourceOptions> = {},
): ReplicationSource {
  return new ReplicationSource({
    kinds,
    client: {
      get: async () => undefined,
      mergePatch: async () => Promise.reject(new Error('nothing is written here')),
    },
    principalUid: 'hub-1',
    namespace: 'argocd',
    agents: () => [],
    agentOf: () => undefined,
    bothHadBefore,
    cutOff,
    firstAckMs: 60_000,
    sent: () => undefined,
    logger: quiet,
    signal: new AbortController().signal,
  });
}

const kindOf = (informer: object): ReplicatedKind => ({
  name: 'ApplicationSet',
  target: 'applicationset',
  type: hubApplicationSets,
  informer: informer as Informer<KubeObject>,
  includes: () => true,
  yields: false,
});

const stream: ReplicaStream = {
  address: '127.0.0.1:1',
  send: () => true,
  onDrain: () => undefined,
  end: () => undefined,
  ended: false,
};

test('a hub that nobody follows does not say that a standby has everything', async () => {
  expect(await source().drained(10_000, true)).toEqual({ objects: 0, isFollowed: false, isKnown: true });
});

test('a standby has everything only when it has taken its snapshot', async () => {
  const hub = source();
  const follower = hub.subscribe(stream, {}, 'hub2');
  expect(await hub.drained(60, true)).toEqual({ objects: 0, isFollowed: false, isKnown: true });
  const drained = hub.drained(10_000, true);
  follower.acknowledged(0n);
  expect(await drained).toEqual({ objects: 0, isFollowed: true, isKnown: true });
  follower.closed();
  expect(await hub.drained(10_000, true)).toEqual({ objects: 0, isFollowed: false, isKnown: true });
});

test('a hub that ends takes no standby, and sends one away that has not taken its snapshot', () => {
  const hub = source();
  const ended: string[] = [];
  const named = (name: string) => ({ ...stream, end: () => void ended.push(name) });
  hub.subscribe(named('in step'), {}, 'hub2').acknowledged(0n);
  hub.subscribe(named('beginning'), {}, 'hub3');
  hub.refuse('the principal is shutting down');
  expect(ended).toEqual(['beginning']);
  expect(() => hub.subscribe(named('late'), {}, 'hub4')).toThrow('the principal is shutting down');
});

test('a principal that is cut off from its hub takes no standby: another one knows more', () => {
  let why: string | undefined = 'this principal is cut off from its hub';
  const hub = source([], { cutOff: () => why });
  expect(() => hub.subscribe(stream, {}, 'hub2')).toThrow(why);
  why = undefined;
  hub.subscribe(stream, {}, 'hub2');
  expect(hub.followers).toHaveLength(1);
});

test('what the API server has taken and the cache does not have yet is waited for', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const informer = { subscribe: () => () => undefined, list: () => [], caughtUp: () => promise };
  const hub = source([kindOf(informer)]);
  const follower = hub.subscribe(stream, {}, 'hub2');
  follower.acknowledged(0n);
  const order: string[] = [];
  const drained = hub.drained(10_000, true).then((left) => order.push(`drained ${left.isKnown}`));
  expect(await hub.drained(10_000, false)).toEqual({ objects: 0, isFollowed: true, isKnown: false });
  order.push('caught up');
  resolve();
  await drained;
  expect(order).toEqual(['caught up', 'drained true']);
});

const object = (name: string, notes = {}): KubeObject => ({
  metadata: { namespace: 'argocd', name, uid: name, annotations: notes },
});
const onBoth = { [annotations.onBothHubs]: 'true' };

/** What a hub says about objects that a standby has and it has not. */
async function reasonsFor(hub: ReplicationSource, names: readonly string[]): Promise<readonly string[]> {
  const connection = {};
  hub.subscribe(stream, connection, 'hub2');
  const bytes = Buffer.alloc(0);
  const common = { kind: 'ApplicationSet', namespace: 'argocd', uid: '', specChecksum: bytes, data: bytes };
  const request = { agentName: '', snapshotSequenceNum: 0n, resources: names.map((name) => ({ ...common, name })) };
  return (await hub.confirm(request, connection)).results.map(({ reason }) => reason);
}

test('a standby that follows later is told what was deleted that both hubs had had', async () => {
  type Handler = Parameters<Informer<KubeObject>['subscribe']>[0];
  let handler: Handler = {};
  const informer = {
    subscribe: (given: Handler) => {
      handler = given;
      return () => undefined;
    },
    list: () => [],
    get: () => undefined,
    caughtUp: async () => undefined,
  };
  const hub = source([kindOf(informer)]);
  handler.deleted?.(object('both', onBoth));
  handler.deleted?.(object('never'));
  handler.added?.(object('again', onBoth), false);
  expect(await reasonsFor(hub, ['both', 'never'])).toEqual([deletedHereReason, '']);
});

test('it is also told what was deleted while the hub could not see it', async () => {
  const shows = (objects: readonly KubeObject[]) => {
    const informer = { subscribe: () => () => undefined, list: () => objects, get: () => undefined };
    return [kindOf({ ...informer, caughtUp: async () => undefined })];
  };
  const first = source(shows([object('stays', onBoth), object('goes', onBoth), object('never')]));
  const second = source(shows([object('stays', onBoth)]), { bothHadBefore: first.bothHad() });
  const third = source(shows([object('stays', onBoth)]), { bothHadBefore: second.bothHad() });
  for (const hub of [second, third]) {
    expect(await reasonsFor(hub, ['stays', 'goes', 'never'])).toEqual(['', deletedHereReason, '']);
  }
});

test('a kind that can be listed only later takes part from then on: standbys start over, and nothing is told of it before', async () => {
  const set = { metadata: { namespace: 'argocd', name: 'all', uid: 'all-1' } };
  const handlers = new Set<object>();
  const informer = {
    get: () => set,
    list: () => [set],
    subscribe: (handler: object) => handlers.add(handler),
    caughtUp: async () => undefined,
  };
  const hub = source([], { bothHadBefore: new Set(['ApplicationSet/argocd/all', 'ApplicationSet/argocd/gone']) });
  const ends: string[] = [];
  const connection = {};
  const follower = hub.subscribe({ ...stream, end: ({ message }) => void ends.push(message) }, connection, 'hub2');
  follower.acknowledged(0n);
  const resource = {
    kind: 'ApplicationSet',
    namespace: 'argocd',
    name: 'all',
    uid: '',
    specChecksum: Buffer.alloc(0),
    data: Buffer.alloc(0),
  };
  const ask = async () =>
    (await hub.confirm({ agentName: '', snapshotSequenceNum: 0n, resources: [resource] }, connection)).results[0];
  expect(await ask()).toMatchObject({ status: 'unknown', reason: notListedReason });
  expect([...hub.bothHad()], 'what cannot be listed is not known to be deleted').toEqual([]);
  hub.begin(kindOf(informer));
  expect(ends).toHaveLength(1);
  expect(handlers.size).toBe(1);
  expect(await ask()).toMatchObject({ status: 'exists' });
  expect([...hub.bothHad()]).toEqual(['ApplicationSet/argocd/gone']);
  const { principalResources } = await hub.snapshot({});
  expect(principalResources.map(({ name }) => name)).toEqual(['all']);
});

test('more refused objects than a standby may name, and those of no stream, are turned away', () => {
  const hub = source();
  const connection = {};
  const one = {
    kind: 'Application',
    namespace: 'a',
    name: 'web',
    uid: '',
    specChecksum: Buffer.alloc(0),
    data: Buffer.alloc(0),
  };
  expect(() => hub.refused([one], connection)).toThrow('no stream of events');
  hub.subscribe(stream, connection, 'hub2');
  expect(() => hub.refused(Array(1_001).fill(one), connection)).toThrow('more than 1000');
  hub.refused([one, { ...one, kind: 'Pod' }], connection);
  expect(hub.refusedObjects, 'a kind that does not take part').toEqual([]);
});
