import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { until } from '../../base/testing.ts';
import { ApiError, ConnectionError } from '../errors.ts';
import { type ConfigMap, configMaps } from '../resources.ts';
import { ScriptedKind } from '../testing/scripted-kind.ts';
import { Informer, type InformerOptions } from './informer.ts';
import type { ReflectedClient } from './reflector.ts';

let stop: AbortController;
let kind: ScriptedKind<ConfigMap>;
let log: string[];
let running: Promise<void>[];

beforeEach(() => {
  stop = new AbortController();
  kind = new ScriptedKind();
  log = [];
  running = [];
});
afterEach(async () => {
  stop.abort();
  await Promise.all(running);
});

const map = (name: string, value: string, uid = name): ConfigMap => ({
  metadata: { namespace: 'ns', name, uid },
  data: { value },
});
const text = (o: ConfigMap) => `${o.metadata.name}=${o.data?.value}`;

const learned = { watch: 'updated', list: 'relisted', restore: 'restored' };

function informer(options: Partial<InformerOptions<ConfigMap>> = {}) {
  const made = new Informer({ client: kind, type: configMaps, backoff: { initialMs: 1, maxMs: 4 }, ...options });
  made.subscribe({
    added: (o, initial) => log.push(`${initial ? 'initial' : 'added'} ${text(o)}`),
    updated: (old, now, gap) => log.push(`${learned[gap ?? 'watch']} ${text(old)} -> ${text(now)}`),
    deleted: (o) => log.push(`deleted ${text(o)}`),
  });
  return made;
}

async function started(options: Partial<InformerOptions<ConfigMap>> = {}) {
  const made = informer(options);
  running.push(made.run(stop.signal));
  await made.synced();
  await until(() => expect(kind.openWatches).toBe(1));
  return made;
}

test('reports the existing objects, then changes with the old object', async () => {
  kind.put(map('a', '1'));
  const i = await started();
  kind.put(map('b', '1'));
  kind.put(map('a', '2'));
  kind.remove('ns/b');
  await until(() => expect(log).toEqual(['initial a=1', 'added b=1', 'updated a=1 -> a=2', 'deleted b=1']));
  expect(i.list().map(text)).toEqual(['a=2']);
  expect(i.get({ namespace: 'ns', name: 'b' })).toBeUndefined();
});

test('the cache has changed before a handler is called', async () => {
  const i = await started();
  const seen: unknown[] = [];
  i.subscribe({
    added: (o) => seen.push(i.get(o.metadata)?.data?.value),
    deleted: (o) => seen.push(i.get(o.metadata)),
  });
  kind.put(map('a', '1'));
  kind.remove('ns/a');
  await until(() => expect(seen).toEqual(['1', undefined]));
});

test('lists in pages', async () => {
  for (let n = 0; n < 25; n++) {
    kind.put(map(`m${n}`, '1'));
  }
  const i = await started({ pageSize: 10 });
  expect(i.size).toBe(25);
  expect(kind.lists).toEqual([
    { limit: 10, continue: false },
    { limit: 10, continue: true },
    { limit: 10, continue: true },
  ]);
});

test('a continue token that expires starts the list again, then asks for all in one piece', async () => {
  for (let n = 0; n < 25; n++) {
    kind.put(map(`m${n}`, '1'));
  }
  kind.expireContinue = 2;
  const i = await started({ pageSize: 10 });
  expect(i.size).toBe(25);
  expect(kind.lists).toEqual([
    { limit: 10, continue: false },
    { limit: 10, continue: true },
    { limit: 10, continue: false },
    { limit: 10, continue: true },
    { limit: undefined, continue: false },
  ]);
  expect(i.stats).toMatchObject({ lists: 1, errors: 0 });
});

test('a watch that ends in good order is resumed at once where it ended, without a list', async () => {
  const i = await started({ backoff: { initialMs: 3_600_000, maxMs: 3_600_000 } });
  kind.put(map('a', '1'));
  await until(() => expect(log).toHaveLength(1));
  kind.endWatches();
  kind.put(map('a', '2'));
  await until(() => expect(log).toEqual(['added a=1', 'updated a=1 -> a=2']));
  expect(i.stats).toMatchObject({ lists: 1, watches: 2, errors: 0 });
});

test('a watch that breaks is resumed where it broke, after a delay that grows', async () => {
  const i = await started();
  kind.refuse = [0, 1, 2].map(() => new ConnectionError('refused', { code: 'ECONNREFUSED', sent: false }));
  kind.breakWatches(new ConnectionError('reset', { code: 'ECONNRESET', sent: true }));
  kind.put(map('a', '1'));
  await until(() => expect(log).toEqual(['added a=1']));
  expect(i.stats).toMatchObject({ lists: 1, watches: 2, errors: 4 });
});

test('a server that could not be reached is asked again as soon as it answers, and then as after a first failure', async () => {
  const { promise: answers, resolve } = Promise.withResolvers<boolean>();
  const client = {
    listPage: kind.listPage.bind(kind),
    watch: kind.watch.bind(kind),
    answersAgain: () => answers,
  } as ReflectedClient;
  const i = await started({ client, backoff: { initialMs: 1, factor: 3_600_000, maxMs: 3_600_000 } });
  kind.refuse = [
    new ConnectionError('refused', { code: 'ECONNREFUSED', sent: false }),
    new ApiError({ status: 500, message: 'not yet' }),
  ];
  kind.breakWatches(new ConnectionError('reset', { code: 'ECONNRESET', sent: true }));
  kind.put(map('a', '1'));
  await until(() => expect(i.stats.errors).toBe(2));
  expect(kind.watchedFrom).toHaveLength(1);
  resolve(true);
  await until(() => expect(log).toEqual(['added a=1']));
});

test('a history that is gone after other failures is listed at once', async () => {
  const i = await started({ backoff: { initialMs: 1, factor: 3_600_000, maxMs: 3_600_000 } });
  kind.refuse = [new ApiError({ status: 410, reason: 'Expired', message: 'too old resource version' })];
  kind.breakWatches(new ConnectionError('reset', { code: 'ECONNRESET', sent: true }));
  await until(() => expect(i.stats.lists).toBe(2));
});

test.each(['as an event', 'as an answer'])(
  'defect 10: 410 %s leads to a list that reports the difference',
  async (how) => {
    for (const name of ['stays', 'changes', 'goes', 'reborn']) {
      kind.put(map(name, '1'));
    }
    const i = await started();
    log.length = 0;
    const gone = new ApiError({ status: 410, reason: 'Expired', message: 'too old resource version' });
    if (how === 'as an answer') {
      kind.refuse = [gone];
    }
    kind.breakWatches(how === 'as an answer' ? new ConnectionError('reset', { code: 'X', sent: true }) : gone, () => {
      kind.put(map('changes', '2'));
      kind.remove('ns/goes');
      kind.remove('ns/reborn');
      kind.put(map('reborn', '2', 'other-uid'));
      kind.put(map('new', '1'));
      kind.put(map('came-and-went', '1'));
      kind.remove('ns/came-and-went');
      kind.compact();
    });
    await until(() => expect(i.stats.lists).toBe(2));
    expect(log).toEqual([
      'deleted goes=1',
      'deleted reborn=1',
      'added reborn=2',
      'added new=1',
      'relisted changes=1 -> changes=2',
    ]);
    expect(i.list().map(text).sort()).toEqual(['changes=2', 'new=1', 'reborn=2', 'stays=1']);
    kind.put(map('stays', '2'));
    await until(() => expect(log.at(-1)).toBe('updated stays=1 -> stays=2'));
  },
);

test('deleted and created again within one watch event is reported as both', async () => {
  await started();
  kind.put(map('a', '1'));
  kind.emit({
    type: 'MODIFIED',
    object: { ...map('a', '2', 'other'), metadata: { ...map('a', '2', 'other').metadata, resourceVersion: '900' } },
  });
  await until(() => expect(log).toEqual(['added a=1', 'deleted a=1', 'added a=2']));
});

test('an event for the cached version is not reported as a change', async () => {
  const i = await started();
  const stored = kind.put(map('a', '1'));
  kind.emit({ type: 'MODIFIED', object: structuredClone(stored) });
  kind.put(map('b', '1'));
  await until(() => expect(log).toEqual(['added a=1', 'added b=1']));
  expect(i.stats.events).toBe(3);
});

test('bookmarks move the point of resumption', async () => {
  const i = await started();
  kind.emit({ type: 'BOOKMARK', resourceVersion: '5000' });
  await until(() => expect(i.stats.bookmarks).toBe(1));
  kind.endWatches();
  await until(() => expect(kind.watchedFrom).toEqual(['100', '5000']));
});

test('a server whose history went back is listed again', async () => {
  kind.put(map('a', '1'));
  const i = await started();
  kind.emit({ type: 'BOOKMARK', resourceVersion: '3' });
  await until(() => expect(i.stats.lists).toBe(2));
  kind.refuse = [
    new ApiError({
      status: 504,
      message: 'Too large resource version',
      details: { causes: [{ reason: 'ResourceVersionTooLarge' }] },
    }),
  ];
  kind.endWatches();
  await until(() => expect(i.stats.lists).toBe(3));
});

const reset = () => new ConnectionError('reset', { code: 'ECONNRESET', sent: true });

test('after a connection broke, a restored server is listed again, and each object is reported as it is now', async () => {
  kind.put(map('a', '1'));
  kind.put(map('same', '1'));
  kind.put(map('deleted-since', '1'));
  const snapshot = kind.snapshot();
  const i = await started();
  kind.put(map('a', '2'));
  kind.put(map('made-since', '1'));
  kind.remove('ns/deleted-since');
  await until(() => expect(log).toHaveLength(6));
  log.length = 0;
  kind.breakWatches(reset(), () => kind.restore(snapshot));
  await until(() => expect(i.stats.lists).toBe(2));
  expect(log).toEqual([
    'deleted made-since=1',
    'added deleted-since=1',
    'restored a=2 -> a=1',
    'restored same=1 -> same=1',
  ]);
  await until(() => expect(kind.openWatches).toBe(1));
  kind.put(map('a', '3'));
  await until(() => expect(log.at(-1)).toBe('updated a=1 -> a=3'));
});

test('an equal version of a restored server may have another content', async () => {
  kind.put(map('a', '1'));
  const snapshot = kind.snapshot();
  const i = await started();
  kind.put(map('a', '2'));
  kind.put(map('b', '1'));
  await until(() => expect(log).toHaveLength(3));
  kind.breakWatches(reset(), () => {
    kind.restore(snapshot);
    kind.put(map('a', '3'));
  });
  await until(() => expect(i.stats.lists).toBe(2));
  expect(log.at(-1)).toBe('restored a=2 -> a=3');
});

test('a restored server is known by its old objects, too, when its version was raised', async () => {
  kind.put(map('a', '1'));
  kind.put(map('same', '1'));
  const snapshot = kind.snapshot();
  const i = await started();
  kind.put(map('a', '2'));
  await until(() => expect(log).toHaveLength(3));
  log.length = 0;
  kind.breakWatches(reset(), () => kind.restore(snapshot, 1_000_000));
  await until(() => expect(i.stats.lists).toBe(2));
  expect(log).toEqual(['restored a=2 -> a=1', 'restored same=1 -> same=1']);
});

// The cache need not have seen what is lost: the server has answered with it.
test.each([undefined, 1_000_000])(
  'an answer that no watch has shown tells of a restore, raised to %s',
  async (raised) => {
    kind.put(map('a', '1'));
    const i = await started();
    const snapshot = kind.snapshot();
    kind.breakWatches(reset(), () => {
      kind.put(map('a', '2'));
      kind.answer(configMaps, 'ns/a');
      kind.restore(snapshot, raised);
    });
    await until(() => expect(i.stats.lists).toBe(2));
    expect(log).toEqual(['initial a=1', 'restored a=1 -> a=1']);
    await until(() => expect(kind.openWatches).toBe(1));
    kind.breakWatches(reset());
    await until(() => expect(kind.openWatches).toBe(1));
    expect(i.stats.lists, 'one restore is told once').toBe(2);
  },
);

test('so does an answer that an object is gone, when a list has it again', async () => {
  kind.put(map('a', '1'));
  const i = await started();
  kind.breakWatches(reset(), () => {
    const snapshot = kind.snapshot();
    kind.remove('ns/a');
    kind.answer(configMaps, 'ns/a');
    kind.restore(snapshot, 1_000_000);
  });
  await until(() => expect(i.stats.lists).toBe(2));
  expect(log).toEqual(['initial a=1', 'restored a=1 -> a=1']);
});

test('answers before a watch that breaks cost no list of a healthy server', async () => {
  kind.put(map('a', '1'));
  kind.put(map('b', '1'));
  const i = await started();
  kind.breakWatches(reset(), () => {
    kind.put(map('a', '2'));
    kind.answer(configMaps, 'ns/a');
    kind.remove('ns/b');
    kind.answer(configMaps, 'ns/b');
  });
  await until(() => expect(log.slice(2)).toEqual(['updated a=1 -> a=2', 'deleted b=1']));
  expect(i.stats.lists).toBe(1);
});

test('a list that fails does not forget what was answered before it', async () => {
  kind.put(map('a', '1'));
  const i = await started();
  const snapshot = kind.snapshot();
  kind.breakWatches(reset(), () => {
    kind.put(map('a', '2'));
    kind.answer(configMaps, 'ns/a');
    kind.restore(snapshot, 1_000_000);
    kind.refuse = [new ApiError({ status: 410, message: 'gone' }), reset(), reset()];
  });
  await until(() => expect(i.stats.lists).toBe(2));
  expect(log.at(-1)).toBe('restored a=1 -> a=1');
});

test('a reconnection to a healthy server costs one small list, and a watch that ended in its time none', async () => {
  kind.put(map('a', '1'));
  const i = await started();
  kind.breakWatches(reset());
  await until(() => expect(i.stats.watches).toBe(2));
  expect(kind.checks).toBe(1);
  await until(() => expect(kind.openWatches).toBe(1));
  const later = performance.now() + 600_000;
  onTestFinished(() => {
    vi.restoreAllMocks();
  });
  vi.spyOn(performance, 'now').mockImplementation(() => later);
  kind.endWatches();
  await until(() => expect(i.stats.watches).toBe(3));
  expect(kind.checks).toBe(1);
  expect(kind.lists).toHaveLength(1);
});

test('a watch that ends as soon as it begins is not repeated in a hot loop', async () => {
  const i = await started({ backoff: { initialMs: 10_000, random: () => 0 } });
  kind.endWatches();
  await until(() => expect(i.stats.errors).toBe(1));
  expect(i.stats.watches).toBe(1);
});

test('a handler that throws or rejects is logged and does not affect the others', async () => {
  const error = vi.fn();
  const quiet = () => undefined;
  const i = await started({ logger: { debug: quiet, info: quiet, warn: quiet, error } });
  const seen: string[] = [];
  i.subscribe({
    added: () => {
      throw new Error('broken handler');
    },
    updated: async () => {
      throw new Error('broken promise');
    },
  });
  i.subscribe({ added: (o) => seen.push(text(o)) });
  kind.put(map('a', '1'));
  kind.put(map('a', '2'));
  kind.put(map('b', '1'));
  await until(() => expect(seen).toEqual(['a=1', 'b=1']));
  expect(
    error.mock.calls.map(
      ([fields]) =>
        `${(fields as { error: Error; object: string }).error.message} ${(fields as { object: string }).object}`,
    ),
  ).toEqual(['broken handler ns/a', 'broken promise ns/a', 'broken handler ns/b']);
});

test('a cache without a watch is caught up when it has got the changes and deletions that it did not see', async () => {
  kind.put(map('a', '1'));
  kind.put(map('b', '1'));
  const i = await started({ pageSize: 1 });
  await i.caughtUp(stop.signal);
  const order: string[] = [];
  kind.breakWatches(new ConnectionError('broken', { code: 'ECONNRESET', sent: true }), () => {
    kind.put(map('a', '2'));
    kind.remove('ns/b');
    kind.put(map('c', '1'));
  });
  i.subscribe({ deleted: (o) => order.push(`deleted ${text(o)}`) });
  i.subscribe({ updated: (_, now) => order.push(`updated ${text(now)}`) });
  i.subscribe({ added: (o, initial) => initial || order.push(`added ${text(o)}`) });
  await i.caughtUp(stop.signal);
  expect(order.toSorted()).toEqual(['added c=1', 'deleted b=1', 'updated a=2']);
});

test('waiting for a cache to be caught up ends with its signal, or when the server cannot be asked', async () => {
  const i = informer();
  kind.put(map('a', '1'));
  const end = new AbortController();
  const waiting = expect(i.caughtUp(end.signal)).rejects.toThrow('enough');
  end.abort(new Error('enough'));
  await waiting;
  kind.refuse = [new ApiError({ status: 403, reason: 'Forbidden', message: 'no' })];
  await expect(i.caughtUp(stop.signal)).rejects.toThrow('no');
});

test('a late subscriber gets every object once; a removed one gets nothing', async () => {
  kind.put(map('a', '1'));
  const i = await started();
  const late: string[] = [];
  const leave = i.subscribe({ added: (o, initial) => late.push(`${text(o)} ${initial}`) });
  kind.put(map('b', '1'));
  await until(() => expect(late).toEqual(['a=1 true', 'b=1 false']));
  leave();
  kind.put(map('c', '1'));
  await until(() => expect(log).toContain('added c=1'));
  expect(late).toHaveLength(2);
});

test('objects are found by namespace and by index, also after they changed', async () => {
  const i = await started({ indexers: { value: (o) => [o.data?.value ?? ''] } });
  kind.put(map('a', 'x'));
  kind.put(map('b', 'x'));
  kind.put({ ...map('c', 'x'), metadata: { namespace: 'other', name: 'c', uid: 'c' } });
  kind.put(map('b', 'y'));
  await until(() => expect(log).toHaveLength(4));
  expect(i.byIndex('value', 'x').map(text)).toEqual(['a=x', 'c=x']);
  expect(i.byIndex('value', 'y').map(text)).toEqual(['b=y']);
  expect(i.list('other').map(text)).toEqual(['c=x']);
  kind.remove('ns/a');
  await until(() => expect(i.byIndex('value', 'x').map(text)).toEqual(['c=x']));
  expect(() => i.byIndex('nope', 'x')).toThrow('there is no index "nope"');
});

test('managedFields are dropped, a transform shrinks further', async () => {
  kind.put({ ...map('a', 'secret'), metadata: { ...map('a', '').metadata, managedFields: [{}] } });
  const i = await started({ transform: ({ data: _, ...rest }) => rest });
  const cached = i.get({ namespace: 'ns', name: 'a' });
  expect(cached?.data).toBeUndefined();
  expect(cached?.metadata.managedFields).toBeUndefined();
});

test('a page is shrunk before the next one arrives, and known objects are not kept twice', async () => {
  for (let n = 0; n < 25; n++) {
    kind.put(map(`m${n}`, '1'));
  }
  const shrunk: number[] = [];
  const i = await started({
    pageSize: 10,
    transform: (object) => {
      shrunk.push(kind.lists.length);
      return object;
    },
  });
  expect(shrunk).toEqual([...Array(10).fill(1), ...Array(10).fill(2), ...Array(5).fill(3)]);
  const known = i.get({ namespace: 'ns', name: 'm1' });
  shrunk.length = 0;
  kind.breakWatches(new ConnectionError('down', { code: 'X', sent: true }), () => {
    kind.put(map('m0', '2'));
    kind.compact();
  });
  await until(() => expect(log.at(-1)).toBe('relisted m0=1 -> m0=2'));
  expect(shrunk).toHaveLength(1);
  expect(i.get({ namespace: 'ns', name: 'm1' })).toBe(known);
});

test('synced rejects when aborted or stopped before', async () => {
  kind.refuse = Array.from({ length: 10_000 }, () => new ConnectionError('down', { code: 'X', sent: false }));
  const i = informer();
  running.push(i.run(stop.signal));
  const one = new AbortController();
  const waiting = i.synced(one.signal);
  one.abort(new Error('enough'));
  await expect(waiting).rejects.toThrow('enough');
  const other = i.synced();
  stop.abort(new Error('shutdown'));
  await expect(other).rejects.toThrow('shutdown');
});
