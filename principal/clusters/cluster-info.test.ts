import { afterEach, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { decodeClusterInfo } from '../../lib/redis/index.ts';
import { agentSource, eventTypes, messageEvent, targets } from '../../lib/wire/index.ts';
import { ClusterInfos } from './cluster-info.ts';
import type { MappedCluster } from './mapped-agents.ts';

const stops: AbortController[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) {
    stop.abort();
  }
});

const keyOf = (server: string) => `cluster|info|${server}|1.8.3`;
const report = (payload: object) =>
  messageEvent(targets.clusterCacheInfoUpdate, eventTypes.clusterCacheInfoUpdate, payload, { source: agentSource });
const counts = { applicationsCount: 3, apisCount: 60, resourcesCount: 500 };

/** The principal with an in-memory Redis; `servers` are those of the agents' cluster Secrets. */
function start(
  servers: Record<string, string[]>,
  options: { redis?: Map<string, Buffer>; graceMs?: number; keyPrefix?: string } = {},
) {
  const redis = options.redis ?? new Map<string, Buffer>();
  const state = {
    problem: undefined as string | undefined,
    writes: 0,
    reports: [] as unknown[],
    ready: (): void => undefined,
  };
  const infos = new ClusterInfos({
    agents: {
      names: () => Object.keys(servers),
      clustersOf: (agent) =>
        (servers[agent] ?? []).map(
          (server): MappedCluster => ({
            server,
            name: server,
            mode: undefined,
            secret: { metadata: { name: server } },
          }),
        ),
    },
    link: {
      get problem() {
        return state.problem;
      },
      get isConnected() {
        return state.problem === undefined;
      },
      get: async (key) => redis.get(key),
      set: async (key, value) => {
        state.writes++;
        redis.set(key, value);
      },
      delete: async (key) => void redis.delete(key),
      onReady: (listener) => {
        state.ready = listener;
      },
    },
    compression: 'none',
    keyPrefix: options.keyPrefix ?? '',
    reported: (agent, { dropsCache, lastCacheSyncTime }) => state.reports.push([agent, dropsCache, lastCacheSyncTime]),
    logger: createLogger({ level: 'fatal' }),
  });
  const stop = new AbortController();
  stops.push(stop);
  void infos.run(stop.signal, { graceMs: options.graceMs ?? 3_600_000, refreshMs: 3_600_000 });
  const read = (server: string) => {
    const value = redis.get(keyOf(server));
    return value && decodeClusterInfo(value, 'none');
  };
  const says = (server: string, status: string) => until(() => read(server)?.connectionState.status === status);
  return { infos, redis, state, read, says, servers };
}

test('connection and statistics are there together, whatever comes first', async () => {
  const { infos, read, says } = start({ a: ['https://a'] });
  infos.connected('a');
  await says('https://a', 'Successful');
  infos.statistics('a', report(counts));
  await until(() => read('https://a')?.applicationsCount === 3);
  expect(read('https://a')).toMatchObject({
    connectionState: { message: "Agent: 'a' is connected with principal" },
    cacheInfo: { apisCount: 60, resourcesCount: 500 },
  });
});

test('an agent that is not connected has no counts, and the time of its last synchronisation stays', async () => {
  const { infos, read, says } = start({ a: ['https://a'], b: ['https://b'] });
  const lastCacheSyncTime = '2026-11-21T10:00:00Z';
  infos.connected('a');
  infos.connected('b');
  infos.statistics('a', report({ ...counts, serverVersion: '1.33', lastCacheSyncTime }));
  infos.statistics('b', report(counts));
  await until(() => read('https://b')?.applicationsCount === 3);
  infos.disconnected('a');
  infos.refused('b', 'not yet');
  infos.disconnected('b');
  await says('https://a', 'Failed');
  expect(read('https://a')).toMatchObject({
    applicationsCount: 0,
    serverVersion: '1.33',
    cacheInfo: { resourcesCount: 0, apisCount: 0, lastCacheSyncTime },
  });
  await says('https://b', 'Failed');
  // The agent of the original does not report this time: its last report is the latest sign of it.
  expect(Date.parse(read('https://b')?.cacheInfo.lastCacheSyncTime ?? '')).toBeGreaterThan(Date.now() - 60_000);
  // As before: the same statistics count again.
  infos.connected('a');
  await says('https://a', 'Successful');
  expect(read('https://a')?.applicationsCount).toBe(0);
  infos.statistics('a', report({ ...counts, serverVersion: '1.33', lastCacheSyncTime }));
  await until(() => read('https://a')?.applicationsCount === 3);
});

test('shows when the agent was last heard of, in the words of argocd-agent', async () => {
  const { infos, read, says } = start({ a: ['https://a'] });
  infos.connected('a');
  await says('https://a', 'Successful');
  expect(read('https://a')?.connectionState.message).toBe("Agent: 'a' is connected with principal");
  const connectedAt = read('https://a')?.connectionState.attemptedAt ?? '';
  await until(() => Date.now() >= Date.parse(connectedAt) + 1_000);
  infos.statistics('a', report(counts));
  await until(() => (read('https://a')?.connectionState.attemptedAt ?? '') > connectedAt);
});

test('an agent that talks without end costs a few writes', async () => {
  const { infos, state, read } = start({ a: ['https://a'] });
  infos.connected('a');
  for (let n = 1; n <= 1_000; n++) {
    infos.statistics('a', report({ ...counts, applicationsCount: n }));
  }
  await until(() => read('https://a')?.applicationsCount === 1_000);
  expect(state.writes).toBeLessThanOrEqual(3);
});

test('what Argo CD writes when somebody edits the cluster is replaced', async () => {
  const { infos, redis, read } = start({ a: ['https://a'] });
  infos.connected('a');
  infos.statistics('a', report(counts));
  await until(() => read('https://a')?.applicationsCount === 3);
  infos.secretWritten('a');
  // After the Secret, and after what the principal writes at once.
  redis.set(
    keyOf('https://a'),
    Buffer.from('{"connectionState":{"status":"Successful"},"cacheInfo":{},"applicationsCount":0}'),
  );
  await until(() => read('https://a')?.applicationsCount === 3);
  expect(read('https://a')?.connectionState.message).toContain("Agent: 'a' is connected");
});

test('what an agent repeats is not written again', async () => {
  const { infos, state, read } = start({ a: ['https://a'], b: ['https://b'] });
  infos.connected('a');
  infos.statistics('a', report(counts));
  await until(() => read('https://a')?.applicationsCount === 3);
  const { writes } = state;
  infos.statistics('a', report(counts));
  // Both wait equally long to be written, in their order.
  infos.statistics('b', report({ ...counts, applicationsCount: 4 }));
  infos.connected('b');
  await until(() => read('https://b')?.applicationsCount === 4);
  expect(state.writes - writes).toBeLessThanOrEqual(2);
  infos.statistics('a', report({ ...counts, applicationsCount: 5 }));
  await until(() => read('https://a')?.applicationsCount === 5);
});

test('what an agent says of its cache is passed on, also when it is no news', () => {
  const { infos, state } = start({ a: ['https://a'] });
  const lastCacheSyncTime = '2026-11-21T10:00:00Z';
  infos.statistics('a', report({ ...counts, dropsCache: true, lastCacheSyncTime }));
  infos.statistics('a', report({ ...counts, dropsCache: true, lastCacheSyncTime }));
  infos.statistics('a', report(counts));
  expect(state.reports).toEqual([
    ['a', true, lastCacheSyncTime],
    ['a', true, lastCacheSyncTime],
    ['a', undefined, undefined],
  ]);
});

test('invalid statistics of an agent are refused', () => {
  const { infos } = start({ a: ['https://a'] });
  for (const bad of [
    {},
    { ...counts, apisCount: -1 },
    { ...counts, serverVersion: 'x'.repeat(1_000) },
    { ...counts, lastCacheSyncTime: 'now' },
    { ...counts, dropsCache: 'yes' },
    { ...counts, padding: 'x'.repeat(20_000) },
  ]) {
    expect(() => infos.statistics('a', report(bad))).toThrow();
  }
});

test('defect 29: after a restart the counts are kept until an agent does not come back', async () => {
  const before = start({ a: ['https://a'], b: ['https://b'] });
  for (const agent of ['a', 'b']) {
    before.infos.connected(agent);
    before.infos.statistics(agent, report(counts));
    await before.says(`https://${agent}`, 'Successful');
  }
  await until(() => before.read('https://b')?.applicationsCount === 3);
  const after = start({ a: ['https://a'], b: ['https://b'] }, { redis: before.redis, graceMs: 20 });
  after.infos.connected('a');
  await after.says('https://b', 'Failed');
  expect(after.read('https://a')).toMatchObject({ applicationsCount: 3, connectionState: { status: 'Successful' } });
  expect(after.read('https://b')).toMatchObject({
    applicationsCount: 0,
    cacheInfo: { resourcesCount: 0, apisCount: 0 },
    connectionState: { message: "Agent: 'b' has not connected since the principal started" },
  });
});

test('nothing is written without Redis, and everything when it is there, or has lost it', async () => {
  const { infos, redis, state, says } = start({ a: ['https://a'] });
  state.problem = 'away';
  infos.connected('a');
  infos.statistics('a', report(counts));
  await new Promise((resolve) => setImmediate(resolve));
  expect(state.writes).toBe(0);
  state.problem = undefined;
  state.ready();
  await says('https://a', 'Successful');
  redis.clear();
  state.ready();
  await says('https://a', 'Successful');
});

test('the entry goes with the cluster Secret, and moves with its server', async () => {
  const { infos, redis, says, servers } = start({ a: ['https://old'] });
  infos.connected('a');
  await says('https://old', 'Successful');
  servers.a = ['https://new'];
  infos.changed('a');
  await says('https://new', 'Successful');
  expect(redis.has(keyOf('https://old'))).toBe(false);
  delete servers.a;
  infos.changed('a');
  await until(() => redis.size === 0);
});

test("the key begins with Argo CD's prefix", async () => {
  const { infos, redis, servers } = start({ a: ['https://a'] }, { keyPrefix: 'fleet:' });
  infos.connected('a');
  await until(() => redis.has(`fleet:${keyOf('https://a')}`));
  delete servers.a;
  infos.changed('a');
  await until(() => redis.size === 0);
});

test('a refused agent shows, unless it is connected', async () => {
  const { infos, read, says } = start({ a: ['https://a'] });
  infos.refused('a', 'wrong mode');
  await says('https://a', 'Failed');
  expect(read('https://a')?.connectionState.message).toBe("Agent: 'a' is refused: wrong mode");
  infos.connected('a');
  await says('https://a', 'Successful');
  infos.refused('a', 'wrong mode');
  infos.statistics('a', report(counts));
  await until(() => read('https://a')?.applicationsCount === 3);
  expect(read('https://a')?.connectionState.status).toBe('Successful');
});

test('what Redis does not take is said once, and tried on, also when the link says that Redis refuses writes', async () => {
  const said: string[] = [];
  let [tries, isRefused] = [0, true];
  const logger = {
    debug: () => undefined,
    info: () => undefined,
    warn: (_: object, text: string) => said.push(text),
    error: () => undefined,
  };
  const link = {
    problem: undefined as string | undefined,
    isConnected: true,
    get: async () => undefined,
    delete: async () => undefined,
    onReady: () => undefined,
    set: async () => {
      tries++;
      if (isRefused) {
        throw new Error('NOPERM');
      }
    },
  };
  const servers = (agent: string) => [{ server: `https://p:9090?agentName=${agent}` }] as unknown as MappedCluster[];
  const infos = new ClusterInfos({
    agents: { names: () => ['a', 'b'], clustersOf: servers },
    link,
    compression: 'gzip',
    keyPrefix: '',
    logger,
  });
  const stop = new AbortController();
  const running = infos.run(stop.signal);
  infos.connected('a');
  infos.connected('b');
  await until(() => expect(said).toHaveLength(1));
  link.problem = 'NOPERM';
  const before = tries;
  infos.disconnected('a');
  await until(() => expect(tries).toBeGreaterThan(before));
  isRefused = false;
  infos.disconnected('b');
  await until(() => expect(tries).toBeGreaterThan(before + 1));
  expect(said).toHaveLength(1);
  stop.abort();
  await running;
});
