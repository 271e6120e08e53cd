import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { Random } from '../../../e2e/random/index.ts';
import { type Cluster, startCluster } from '../../../e2e/testbed/index.ts';
import { effort, liveMemory, until } from '../../base/testing.ts';
import { type ConfigMap, configMaps, Informer, type InformerOptions, KubeClient, namespaces } from '../index.ts';
import { Mirror, versionsOf } from '../testing/mirror.ts';
import { startTcpProxy } from '../testing/tcp-proxy.ts';

let cluster: Cluster;
let client: KubeClient;
let namespace = '';
let stop: AbortController;
let running: Promise<void>[];
let nextNamespace = 1;

beforeAll(async () => {
  cluster = await startCluster({ name: 'informer' });
  client = KubeClient.fromKubeconfig(cluster.kubeconfig);
});
afterAll(async () => {
  await client?.close();
  await cluster?.stop();
});
beforeEach(async () => {
  stop = new AbortController();
  running = [];
  namespace = `test-${nextNamespace++}`;
  await client.create(namespaces, { metadata: { name: namespace } });
});
afterEach(async () => {
  stop.abort();
  await Promise.all(running);
});

/** The controller manager puts a ConfigMap of its own into every namespace: a label distinguishes ours. */
const labelSelector = 'ours=yes';
const map = (name: string, data: Record<string, string> = {}): ConfigMap => ({
  metadata: { namespace, name, labels: { ours: 'yes' } },
  data,
});

/** Starts an informer of the test's namespace and a mirror that listens to it. */
async function started(options: Partial<InformerOptions<ConfigMap>> = {}) {
  const informer = new Informer({ client, type: configMaps, namespace, labelSelector, ...options });
  const mirror = new Mirror<ConfigMap>();
  informer.subscribe(mirror);
  running.push(informer.run(stop.signal));
  await informer.synced();
  await until(() => expect(informer.stats.watches).toBe(1));
  return { informer, mirror };
}

async function expectSameAsServer({ informer, mirror }: Awaited<ReturnType<typeof started>>): Promise<void> {
  await until(async () => {
    const there = versionsOf(await client.list(configMaps, { namespace, labelSelector }));
    expect(versionsOf(informer.list())).toEqual(there);
    expect(mirror.versions).toEqual(there);
  });
  expect(mirror.complaints).toEqual([]);
}

/** Runs the work for all items, some at a time. */
async function inParallel<T>(items: Iterable<T>, work: (item: T) => Promise<unknown>, width = 20): Promise<void> {
  const left = items[Symbol.iterator]();
  const worker = async () => {
    for (let next = left.next(); !next.done; next = left.next()) {
      await work(next.value);
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
}

const range = (n: number) => Array.from({ length: n }, (_, i) => i);

test('5,000 objects are listed in pages', async () => {
  await inParallel(range(5000), (i) => client.create(configMaps, map(`m${i}`, { value: String(i) })));
  const pages: number[] = [];
  const counting: InformerOptions<ConfigMap>['client'] = {
    watch: client.watch.bind(client),
    listPage: async (type, options) => {
      const page = await client.listPage(type, options);
      pages.push(page.items.length);
      return page;
    },
  };
  const startedAt = performance.now();
  const both = await started({ client: counting });
  console.log(`5,000 objects cached after ${Math.round(performance.now() - startedAt)} ms, in ${pages.length} pages`);
  expect(both.informer.size).toBe(5000);
  expect(pages).toEqual(Array(10).fill(500));
  expect(both.mirror.counts.added).toBe(5000);
  await expectSameAsServer(both);
}, 180_000);

test('defect 10: deletes, changes and re-creations during a gap are reported after it', async () => {
  const proxy = await startTcpProxy(Number(new URL(cluster.server).port));
  const away = KubeClient.fromKubeconfig(cluster.kubeconfig, undefined, { server: `https://127.0.0.1:${proxy.port}` });
  try {
    for (const name of ['stays', 'changes', 'goes', 'reborn']) {
      await client.create(configMaps, map(name, { v: '1' }));
    }
    const both = await started({ client: away });
    const before = { ...both.mirror.counts };
    const reborn = both.informer.get({ namespace, name: 'reborn' });
    proxy.refuse(true);
    await client.mergePatch(configMaps, { namespace, name: 'changes' }, { data: { v: '2' } });
    await client.delete(configMaps, { namespace, name: 'goes' });
    await client.delete(configMaps, { namespace, name: 'reborn' });
    await client.create(configMaps, map('reborn', { v: '2' }));
    await until(() => expect(both.informer.stats.errors).toBeGreaterThan(1));
    expect(both.mirror.counts).toEqual(before);
    proxy.refuse(false);
    await expectSameAsServer(both);
    expect(both.informer.get({ namespace, name: 'reborn' })?.metadata.uid).not.toBe(reborn?.metadata.uid);
    expect(both.informer.stats.lists).toBe(1);
    expect(both.mirror.counts).toEqual({
      added: before.added + 1,
      updated: before.updated + 1,
      deleted: before.deleted + 2,
    });
  } finally {
    await away.close();
    await proxy.close();
  }
});

test('an informer that is stopped by what its first list shows ends at once', async () => {
  await client.create(configMaps, map('there'));
  // The watch that follows a list finds a connection open, or has to make one.
  const fresh = KubeClient.fromKubeconfig(cluster.kubeconfig);
  try {
    for (let round = 0; round < 200; round++) {
      const found = new AbortController();
      const seen = Promise.withResolvers<void>();
      const via = round === 0 ? fresh : client;
      const informer = new Informer({ client: via, type: configMaps, namespace, labelSelector });
      informer.subscribe({ added: () => seen.resolve() });
      const ended = informer.run(found.signal);
      await seen.promise;
      for (let tick = 0; tick < round % 20; tick++) {
        await undefined;
      }
      found.abort();
      await ended;
    }
  } finally {
    await fresh.close();
  }
});

test('a connection that dies silently is noticed within seconds', async () => {
  const proxy = await startTcpProxy(Number(new URL(cluster.server).port));
  const away = KubeClient.fromKubeconfig(cluster.kubeconfig, undefined, {
    server: `https://127.0.0.1:${proxy.port}`,
    pingIntervalMs: 1_000,
    pingTimeoutMs: 1_000,
  });
  try {
    const both = await started({ client: away });
    proxy.blackHole();
    const startedAt = performance.now();
    await client.create(configMaps, map('written-in-the-dark'));
    await until(() => expect(both.informer.get({ namespace, name: 'written-in-the-dark' })).toBeDefined());
    console.log(`a dead connection was replaced after ${Math.round(performance.now() - startedAt)} ms`);
    // A busy server may be late with the answer to a ping on the next connection, too.
    expect(both.informer.stats.errors).toBeGreaterThan(0);
    expect(both.informer.stats.lists).toBe(1);
    await expectSameAsServer(both);
  } finally {
    await away.close();
    await proxy.close();
  }
});

test('bookmarks keep a quiet informer able to resume while others write', async () => {
  const from: string[] = [];
  const noting: InformerOptions<ConfigMap>['client'] = {
    listPage: client.listPage.bind(client),
    watch: (type, options) => {
      from.push(options.resourceVersion);
      return client.watch(type, options);
    },
  };
  // The server sends a bookmark about every minute, and another two seconds before a watch's time is up.
  const both = await started({ client: noting, watchSeconds: 4 });
  await inParallel(range(50), (i) =>
    client.create(configMaps, { metadata: { namespace: 'default', name: `${namespace}-${i}` } }),
  );
  await until(() => expect(both.informer.stats.bookmarks).toBeGreaterThan(0));
  await until(() => expect(from.length).toBeGreaterThan(1));
  expect(Number(from.at(-1))).toBeGreaterThanOrEqual(Number(from[0]) + 50);
  expect(both.informer.stats).toMatchObject({ lists: 1, errors: 0 });
});

test('nothing is lost and nothing is made up through restarts of the API server and compaction', async () => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
  console.log(`SEED=${seed}`);
  const random = new Random(seed);
  const proxy = await startTcpProxy(Number(new URL(cluster.server).port));
  const away = KubeClient.fromKubeconfig(cluster.kubeconfig, undefined, { server: `https://127.0.0.1:${proxy.port}` });
  const writing = new AbortController();
  let written = 0;
  const write = async (n: number) => {
    const name = `m${random.integer(0, 99)}`;
    const change = random.chance(0.6)
      ? client.apply(configMaps, map(name, { n: String(n) }), { fieldManager: 'test', signal: writing.signal })
      : client.delete(configMaps, { namespace, name }, { signal: writing.signal });
    try {
      await change;
      written++;
    } catch {
      // A server that is being killed refuses writes; the test compares with its final state.
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const writes = inParallel(untilAborted(writing.signal), write, 4);
  const more = async (count: number) => {
    const target = written + count;
    await until(() => expect(written).toBeGreaterThanOrEqual(target));
  };
  try {
    const both = await started({ pageSize: 20, client: away });
    await more(300);
    // The server is killed during changes.
    const watches = both.informer.stats.watches;
    await cluster.apiServer.restart();
    await until(() => expect(both.informer.stats.watches).toBeGreaterThan(watches));
    await more(300);
    // The informer is disconnected; etcd and the server's cache drop the changes that it misses.
    const lists = both.informer.stats.lists;
    proxy.refuse(true);
    await more(300);
    await cluster.apiServer.kill();
    await cluster.compactHistory();
    await cluster.apiServer.restart();
    proxy.refuse(false);
    await until(() => expect(both.informer.stats.lists).toBe(lists + 1));
    await more(300);
    writing.abort();
    await writes;
    await expectSameAsServer(both);
    console.log(
      `${written} writes, a restart, a compaction: ${JSON.stringify({ ...both.informer.stats, ...both.mirror.counts })}`,
    );
  } finally {
    writing.abort();
    await writes;
    await away.close();
    await proxy.close();
  }
});

const updates = effort(3_000, 10_000);

test(`${updates} updates do not grow memory`, async () => {
  const both = await started();
  const padding = 'x'.repeat(2_000);
  const names = range(20).map((i) => `m${i}`);
  await inParallel(names, (name) => client.create(configMaps, map(name, { padding })));
  const update = async (count: number) => {
    const target = both.mirror.counts.updated + count;
    await inParallel(range(count), (i) =>
      client.mergePatch(
        configMaps,
        { namespace, name: names[i % names.length] ?? '' },
        { data: { value: `${target} ${i}` } },
      ),
    );
    await until(() => expect(both.mirror.counts.updated).toBe(target));
  };
  await update(1_000);
  const before = liveMemory().heap;
  const startedAt = performance.now();
  await update(updates);
  const seconds = (performance.now() - startedAt) / 1000;
  const grown = liveMemory().heap - before;
  console.log(`${updates} updates in ${seconds.toFixed(1)} s, heap grew by ${(grown / 1024).toFixed(0)} KiB`);
  // Had every object been kept, it would be 2 kB for each update: 6 MiB at least.
  expect(grown).toBeLessThan(3 << 20);
  expect(both.informer.stats).toMatchObject({ lists: 1, errors: 0 });
  await expectSameAsServer(both);
}, 300_000);

function* untilAborted(signal: AbortSignal): Generator<number> {
  for (let n = 0; !signal.aborted; n++) {
    yield n;
  }
}
