import { afterEach, beforeEach, expect, test } from 'vitest';
import { until } from '../../base/testing.ts';
import { ApiError } from '../errors.ts';
import { type ConfigMap, configMaps } from '../resources.ts';
import { ScriptedKind } from '../testing/scripted-kind.ts';
import { MultiNamespaceInformer } from './multi-namespace-informer.ts';

let stop: AbortController;
let running: Promise<void>[];
let kinds: Map<string | undefined, ScriptedKind<ConfigMap>>;
let log: string[];

beforeEach(() => {
  stop = new AbortController();
  running = [];
  kinds = new Map();
  log = [];
});
afterEach(async () => {
  stop.abort();
  await Promise.all(running);
});

const map = (namespace: string, name: string): ConfigMap => ({
  metadata: { namespace, name, uid: `${namespace}-${name}` },
});
const forbidden = () => new ApiError({ status: 403, message: 'configmaps is forbidden' });

/** The API server's objects of one namespace, or of all when a client asks for all. */
function kind(namespace: string | undefined): ScriptedKind<ConfigMap> {
  const known = kinds.get(namespace) ?? new ScriptedKind<ConfigMap>();
  kinds.set(namespace, known);
  return known;
}

function start(namespaces: readonly string[]): MultiNamespaceInformer<ConfigMap> {
  const informer = new MultiNamespaceInformer<ConfigMap>({
    client: {
      listPage: (type, options) => kind(options?.namespace).listPage(type, options ?? {}),
      watch: (type, options) => kind(options.namespace).watch(type, options),
    },
    type: configMaps,
    namespaces,
    indexers: { name: ({ metadata }) => [metadata.name] },
    backoff: { initialMs: 1, maxMs: 4 },
  });
  const note =
    (what: string) =>
    ({ metadata }: ConfigMap) =>
      log.push(`${what} ${metadata.namespace}/${metadata.name}`);
  informer.subscribe({ added: note('added'), deleted: note('deleted') });
  running.push(informer.run(stop.signal));
  return informer;
}

const names = (objects: ConfigMap[]) => objects.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).sort();

test('follows each namespace of the list, and asks for no other', async () => {
  kind('a').put(map('a', 'one'));
  kind('b').put(map('b', 'one'));
  const informer = start(['a', 'b', 'a']);
  await informer.settled();
  expect(informer.hasSynced).toBe(true);
  expect([...kinds.keys()]).toEqual(['a', 'b']);
  expect(names(informer.list())).toEqual(['a/one', 'b/one']);
  expect(names(informer.list('b'))).toEqual(['b/one']);
  expect(informer.list('c')).toEqual([]);
  expect(names(informer.byIndex('name', 'one'))).toEqual(['a/one', 'b/one']);
  expect(informer.get({ namespace: 'b', name: 'one' })?.metadata.uid).toBe('b-one');
  expect(informer.get({ namespace: 'c', name: 'one' })).toBeUndefined();
  expect(informer.problemIn('a')).toBeUndefined();
  expect(informer.problemIn('c')).toBe('ConfigMaps of namespace c are not followed');
  await expect(informer.syncedIn('c')).rejects.toThrow(RangeError);
  kind('a').remove('a/one');
  await until(() => expect(log.sort()).toEqual(['added a/one', 'added b/one', 'deleted a/one']));
});

test('follows all namespaces with one request when the list is empty', async () => {
  kind(undefined).put(map('a', 'one'));
  const informer = start([]);
  await informer.settled();
  expect([...kinds.keys()]).toEqual([undefined]);
  expect(names(informer.list('a'))).toEqual(['a/one']);
  expect(informer.problemIn('anything')).toBeUndefined();
});

test('a namespace that may not be read holds up no other, and is complete once it may be read', async () => {
  kind('a').put(map('a', 'one'));
  kind('b').put(map('b', 'one'));
  kind('b').refuse = Array.from({ length: 1_000 }, forbidden);
  const informer = start(['a', 'b']);
  await informer.settled();
  expect(informer.problemIn('a')).toBeUndefined();
  expect(informer.problemIn('b')).toBe('configmaps is forbidden');
  expect(informer.hasSynced).toBe(false);
  kind('b').refuse = [];
  await informer.syncedIn('b');
  expect(names(informer.list())).toEqual(['a/one', 'b/one']);
});

test('waits for a namespace that fails for another reason than a lack of rights', async () => {
  kind('a').refuse = [new ApiError({ status: 500, message: 'etcd is slow' }), forbidden()];
  const informer = start(['a']);
  await informer.settled();
  expect(kind('a').refuse).toEqual([]);
});

test('waits for all namespaces when the right to read all of them is missing', async () => {
  kind(undefined).refuse = Array.from({ length: 20 }, forbidden);
  const informer = start([]);
  await informer.settled();
  expect(informer.hasSynced).toBe(true);
  expect(kind(undefined).refuse).toEqual([]);
});
