import { expect, test } from 'vitest';
import { annotations } from '../../lib/argocd/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import { until } from '../../lib/base/testing.ts';
import type { Informer, KubeObject } from '../../lib/kube/index.ts';
import { decodeEvent, type ReplicaStream } from '../../lib/wire/index.ts';
import {
  deletedHereReason,
  hubApplicationSets,
  isKeptOut,
  keptOutReason,
  notListedReason,
  type ReplicatedKind,
} from './kinds.ts';
import { ReplicationSource, type ReplicationSourceOptions } from './replication-source.ts';

const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

function source(
  kinds: readonly ReplicatedKind[] = [],
  { bothHadBefore, cutOff, client }: Partial<ReplicationSourceOptions> = {},
): ReplicationSource {
  return new ReplicationSource({
    kinds,
    client: client ?? {
      get: async () => undefined,
      listPage: async () => ({ items: [], resourceVersion: '1', continue: undefined }),
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
  judge: () => undefined,
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

test('all standbys are judged again, also those that begin', () => {
  const hub = source();
  const judged: string[] = [];
  const named = (name: string) => ({ ...stream, judge: () => void judged.push(name) });
  hub.subscribe(named('in step'), {}, 'hub2').acknowledged(0n);
  hub.subscribe(named('beginning'), {}, 'hub3');
  hub.judge();
  expect(judged).toEqual(['in step', 'beginning']);
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
  return (await answersFor(hub, ...names.map((name) => ({ name })))).map(({ reason }) => reason);
}

/** The same, by the UIDs that the standby knows. */
async function answersFor(hub: ReplicationSource, ...objects: readonly { readonly name: string; uid?: string }[]) {
  const connection = {};
  hub.subscribe(stream, connection, 'hub2');
  const bytes = Buffer.alloc(0);
  const common = { kind: 'ApplicationSet', namespace: 'argocd', uid: '', specChecksum: bytes, data: bytes };
  const resources = objects.map((one) => ({ ...common, ...one }));
  return (await hub.confirm({ agentName: '', snapshotSequenceNum: 0n, resources }, connection)).results;
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

type Handler = Parameters<Informer<KubeObject>['subscribe']>[0];

/** An informer that a test fills, and who listens to it. */
function cacheOf(holds: (object: KubeObject) => boolean, caughtUp: () => Promise<void> = async () => undefined) {
  const objects = new Map<string, KubeObject>();
  const handlers: Handler[] = [];
  return {
    informer: {
      subscribe: (handler: Handler) => handlers.push(handler),
      list: () => [...objects.values()],
      get: ({ name }: { name: string }) => objects.get(name),
      caughtUp,
    } as unknown as Informer<KubeObject>,
    /** The API server has the object so; undefined: no more. */
    see(name: string, now: KubeObject | undefined) {
      const old = objects.get(name);
      const isHeld = now !== undefined && holds(now);
      objects.delete(name);
      if (isHeld) {
        objects.set(name, now);
      }
      const isSame = isHeld && old?.metadata.uid === now.metadata.uid;
      for (const handler of handlers) {
        if (old !== undefined && isSame) {
          handler.updated?.(old, now);
          continue;
        }
        if (old !== undefined) {
          handler.deleted?.(old);
        }
        if (isHeld) {
          handler.added?.(now, false);
        }
      }
    },
  };
}

const keptOutLabels = { [wellKnown.ignoreSyncLabel]: 'true' };

/**
 * An active hub with objects that a standby follows, and what that was told. `leavesOut`: the cache leaves out what the label keeps out,
 * as that of Applications does; that of ApplicationSets does not.
 */
function activeHub(leavesOut: boolean) {
  const present = new Map<string, KubeObject>();
  const state = { takes: true, isBlind: false, isOut: false, caughtUp: Promise.resolve() };
  const main = cacheOf((one) => !(leavesOut && isKeptOut(one)) && !state.isOut);
  const keptOut = cacheOf(isKeptOut, () => state.caughtUp);
  let versions = 0;
  let asked = 0;
  const kind: ReplicatedKind = {
    ...kindOf(main.informer),
    ...(leavesOut ? { keptOut: keptOut.informer } : {}),
    includes: (one) => !isKeptOut(one),
    labelSelector: 'team=a',
  };
  const client = {
    get: async (_: unknown, { name }: { name: string }) => {
      asked++;
      return present.get(name);
    },
    listPage: async (_: unknown, { fieldSelector }: { fieldSelector: string }) => {
      const named = [...present.values()].filter(({ metadata }) => fieldSelector === `metadata.name=${metadata.name}`);
      return { items: state.isOut ? [] : named };
    },
    mergePatch: async () => Promise.reject(new Error('nothing is written here')),
  } as unknown as ReplicationSourceOptions['client'];
  const hub = source([kind], { client });
  const told: string[] = [];
  let drain: () => void = () => undefined;
  const follower = hub.subscribe(
    {
      ...stream,
      send: ({ event }) => {
        const { type, data } = decodeEvent(event);
        const { metadata, spec = '' } = JSON.parse(Buffer.from(data).toString());
        const label = metadata.labels?.[wellKnown.ignoreSyncLabel] === 'true' ? ' (kept out)' : '';
        told.push(`${type.split('.').at(-1)} ${metadata.name} ${spec}`.trim() + label);
        return state.takes;
      },
      onDrain: (run) => {
        drain = run;
      },
    },
    {},
    'hub2',
  );
  const set = (name: string, now: KubeObject | undefined) => {
    if (now === undefined) {
      present.delete(name);
    } else {
      present.set(name, now);
    }
    if (!(state.isBlind && now !== undefined && !isKeptOut(now))) {
      main.see(name, now);
    }
    if (!state.isBlind) {
      keptOut.see(name, now);
    }
  };
  return {
    hub,
    follower,
    told,
    state,
    drain: () => drain(),
    put(
      name: string,
      more: { notes?: object; labels?: object; spec?: string; uid?: string; deletionTimestamp?: string } = {},
    ) {
      const { notes = {}, labels = {}, spec, uid = name, deletionTimestamp } = more;
      const metadata = { namespace: 'argocd', name, uid, annotations: notes, labels, resourceVersion: `${++versions}` };
      const going = deletionTimestamp === undefined ? {} : { deletionTimestamp };
      set(name, { metadata: { ...metadata, ...going }, ...(spec === undefined ? {} : { spec }) } as KubeObject);
    },
    remove: (name: string) => set(name, undefined),
    /** What was to be looked up has been. */
    async looked(times: number) {
      await until(() => expect(asked).toBeGreaterThanOrEqual(times));
      await hub.drained(20, false);
    },
  };
}

for (const leavesOut of [true, false]) {
  const what = leavesOut ? 'the cache leaves out' : 'the cache has';

  test(`a deletion is told of what both hubs had and the label keeps out: what ${what}`, async () => {
    const { hub, follower, told, put, remove, looked } = activeHub(leavesOut);
    follower.acknowledged(0n);
    put('web', { notes: onBoth });
    follower.acknowledged(1n);
    put('web', { notes: onBoth, labels: keptOutLabels });
    await looked(1);
    expect(told, 'the label is of one hub alone').toEqual(['spec-update web']);
    expect(hub.lag.objects).toBe(0);
    remove('web');
    expect(hub.lag.objects, 'a standby has it still').toBe(1);
    await looked(2);
    expect(told.slice(1)).toEqual(['delete web (kept out)']);
    expect(await reasonsFor(hub, ['web']), 'one that was away meanwhile').toEqual([deletedHereReason]);
  });

  test(`none is told of what never was on both hubs, nor of what only loses its label: what ${what}`, async () => {
    const { follower, told, put, remove, looked } = activeHub(leavesOut);
    follower.acknowledged(0n);
    put('own', { labels: keptOutLabels });
    remove('own');
    put('web', { notes: onBoth, labels: keptOutLabels });
    put('web', { notes: onBoth, spec: 'back' });
    await looked(leavesOut ? 1 : 0);
    expect(told).toEqual(['spec-update web back']);
  });

  test(`a standby that has an object knows of its deletion before it is marked: what ${what}`, async () => {
    const { follower, told, put, remove, looked } = activeHub(leavesOut);
    follower.acknowledged(0n);
    put('sent');
    put('acknowledged');
    put('sent', { labels: keptOutLabels });
    await looked(1);
    remove('sent');
    await looked(2);
    expect(told).toEqual(['spec-update sent', 'spec-update acknowledged', 'delete sent (kept out)']);
    follower.acknowledged(3n);
    put('acknowledged', { labels: keptOutLabels });
    await looked(3);
    remove('acknowledged');
    await looked(4);
    expect(told.slice(3)).toEqual(['delete acknowledged (kept out)']);
  });

  test(`what takes the place of a deleted object and is kept out does not hide the deletion: what ${what}`, async () => {
    const { follower, told, put, looked } = activeHub(leavesOut);
    follower.acknowledged(0n);
    put('web', { notes: onBoth });
    put('web', { uid: 'another', labels: keptOutLabels });
    await looked(1);
    expect(told).toEqual(['spec-update web', 'delete web']);
  });

  test(`a deletion under the label is told when it begins, whatever holds it: what ${what}`, async () => {
    const { hub, follower, told, put, remove, looked } = activeHub(leavesOut);
    const deletionTimestamp = '2026-01-01T00:00:00Z';
    follower.acknowledged(0n);
    put('web', { notes: onBoth });
    put('web', { notes: onBoth, labels: keptOutLabels });
    await looked(1);
    put('web', { notes: onBoth, labels: keptOutLabels, deletionTimestamp });
    expect(hub.lag.objects, 'the web before, and its deletion').toBe(2);
    await looked(2);
    expect(told).toEqual(['spec-update web', 'delete web (kept out)']);
    put('web', { notes: onBoth, labels: keptOutLabels, deletionTimestamp, spec: 'half gone' });
    put('own', { labels: keptOutLabels });
    put('own', { labels: keptOutLabels, deletionTimestamp });
    await looked(2);
    expect(told, 'once, and not of what never was on both hubs').toHaveLength(2);
    expect(await answersFor(hub, { name: 'web' }, { name: 'own' }), 'one that was away meanwhile').toMatchObject([
      { status: 'deleted', reason: deletedHereReason },
      { status: 'deleted', reason: '' },
    ]);
    remove('web');
    await looked(3);
    expect(told.slice(2)).toEqual(['delete web (kept out)']);
  });

  test(`a standby that was away keeps what only got the label, not what was deleted before one of its name got it: what ${what}`, async () => {
    const { hub, put } = activeHub(leavesOut);
    put('web', { notes: onBoth });
    put('web', { notes: onBoth, labels: keptOutLabels });
    put('shop', { notes: onBoth, uid: 'shop-1' });
    put('shop', { uid: 'shop-2', labels: keptOutLabels });
    put('blog', { notes: onBoth, uid: 'blog-1' });
    put('blog', { uid: 'blog-2' });
    put('blog', { uid: 'blog-2', labels: keptOutLabels });
    const [keptOut, deleted] = [{ status: 'unknown', reason: keptOutReason }, { status: 'deleted' }];
    const uids = await answersFor(
      hub,
      { name: 'web', uid: 'web' },
      { name: 'shop', uid: 'shop-1' },
      { name: 'blog', uid: 'blog-1' },
      { name: 'blog', uid: 'blog-2' },
    );
    expect(uids).toMatchObject([keptOut, deleted, deleted, keptOut]);
    const names = await answersFor(hub, { name: 'web' }, { name: 'shop' }, { name: 'blog' });
    expect(names, 'it does not tell UIDs: the second blog may have been there').toMatchObject([
      keptOut,
      deleted,
      keptOut,
    ]);
  });

  test(`an edit that waits when the label comes is told, and counts as lag: what ${what}`, async () => {
    const { hub, follower, told, state, drain, put, looked } = activeHub(leavesOut);
    follower.acknowledged(0n);
    state.takes = false;
    put('web', { notes: onBoth, spec: 'one' });
    put('web', { notes: onBoth, spec: 'two' });
    put('web', { notes: onBoth, spec: 'three', labels: keptOutLabels });
    await looked(1);
    expect(hub.lag.objects).toBe(1);
    state.takes = true;
    drain();
    expect(told).toEqual(['spec-update web one', 'spec-update web two']);
    follower.acknowledged(2n);
    expect(hub.lag.objects).toBe(0);
  });
}

test('an object that is deleted before the cache of what is kept out has seen its label is told, too', async () => {
  const { hub, follower, told, state, put, remove, looked } = activeHub(true);
  follower.acknowledged(0n);
  put('web', { notes: onBoth });
  follower.acknowledged(1n);
  state.isBlind = true;
  put('web', { notes: onBoth, labels: keptOutLabels });
  await looked(1);
  expect(hub.lag.objects).toBe(1);
  remove('web');
  await until(() => expect(told).toEqual(['spec-update web', 'delete web']));
});

test('a hub that ends waits for the cache of what is kept out: it may have been deleted last', async () => {
  const { hub, follower, state, told, put, remove } = activeHub(true);
  follower.acknowledged(0n);
  put('web', { notes: onBoth, labels: keptOutLabels });
  const { promise, resolve } = Promise.withResolvers<void>();
  state.caughtUp = promise;
  const order: string[] = [];
  const drained = hub.drained(10_000, true).then(({ isKnown }) => order.push(`drained ${isKnown}`));
  await new Promise((done) => setTimeout(done, 20));
  order.push('deleted');
  remove('web');
  resolve();
  await until(() => expect(told).toEqual(['delete web (kept out)']));
  follower.acknowledged(1n);
  await drained;
  expect(order).toEqual(['deleted', 'drained true']);
});

test('what has lost the label already is not told, whatever the cache has; what users select no more is', async () => {
  const { hub, follower, told, state, put, looked } = activeHub(true);
  follower.acknowledged(0n);
  put('web', { notes: onBoth });
  follower.acknowledged(1n);
  state.isBlind = true;
  put('web', { notes: onBoth, labels: keptOutLabels });
  put('web', { notes: onBoth });
  await looked(1);
  expect(hub.lag.objects, 'it is looked for again').toBe(1);
  state.isBlind = false;
  put('web', { notes: onBoth });
  await until(() => expect(hub.lag.objects).toBe(1));
  follower.acknowledged(2n);
  await until(() => expect(hub.lag.objects).toBe(0));
  expect(told).toEqual(['spec-update web', 'spec-update web']);
  state.isOut = true;
  put('web', { notes: onBoth });
  await until(() => expect(told.slice(2)).toEqual(['delete web']));
});
