import { afterEach, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { type ClusterInfo, encodeClusterInfo } from '../../lib/redis/index.ts';
import type { WireEvent } from '../../lib/wire/index.ts';
import { ClusterStatistics } from './cluster-statistics.ts';

const stops: AbortController[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) {
    stop.abort();
  }
});

const info = (applicationsCount: number): ClusterInfo => ({
  connectionState: { status: '', message: '', attemptedAt: undefined },
  serverVersion: '1.34',
  cacheInfo: { resourcesCount: 10, apisCount: 2, lastCacheSyncTime: undefined },
  applicationsCount,
});

function start(options: { notified: boolean; intervalMs?: number; keyPrefix?: string }) {
  const redis = new Map<string, Buffer>();
  const listeners: (() => void)[] = [];
  const cluster = { isKnown: false, changed: (): void => undefined };
  const state = { reads: 0, problem: undefined as string | undefined, failure: undefined as Error | undefined };
  const statistics = new ClusterStatistics({
    link: {
      get problem() {
        return state.problem;
      },
      isNotified: options.notified,
      get: async (key) => {
        state.reads++;
        if (state.failure) {
          throw state.failure;
        }
        return redis.get(key);
      },
      onReady: (listener) => listeners.push(listener),
      onChanged: (listener) => listeners.push(listener),
    },
    cluster: {
      get isKnown() {
        return cluster.isKnown;
      },
      onChanged: (listener) => {
        cluster.changed = listener;
      },
    },
    keyPrefix: options.keyPrefix ?? '',
    intervalMs: options.intervalMs ?? 1,
    logger: createLogger({ level: 'fatal' }),
  });
  const stop = new AbortController();
  stops.push(stop);
  void statistics.run(stop.signal);
  const sent: unknown[] = [];
  const send = (event: WireEvent) => void sent.push(JSON.parse(Buffer.from(event.data).toString()));
  const put = (value: ClusterInfo, compression: 'gzip' | 'none' = 'gzip', prefix = '') => {
    redis.clear();
    const key = `${prefix}cluster|info|https://kubernetes.default.svc|1.8.3${compression === 'gzip' ? '.gz' : ''}`;
    redis.set(key, encodeClusterInfo(value, compression));
    for (const listener of listeners) {
      listener();
    }
  };
  return { statistics, state, cluster, sent, send, put };
}
const payload = (applicationsCount: number) => ({
  applicationsCount,
  apisCount: 2,
  resourcesCount: 10,
  serverVersion: '1.34',
});
const count = (sent: unknown[], length: number) => until(() => sent.length === length);

test('a failed read is repeated, also without a notification', async () => {
  const { statistics, state, sent, send, put } = start({ notified: true });
  statistics.connected(send);
  state.failure = new Error('no answer in time');
  put(info(1));
  await until(() => state.reads > 2);
  state.failure = undefined;
  await count(sent, 1);
  expect(sent).toEqual([payload(1)]);
});

test('sent once per connection and when changed, not while disconnected', async () => {
  const { statistics, state, sent, send, put } = start({ notified: true });
  put(info(1));
  await until(() => state.reads > 0);
  expect(sent).toEqual([]);
  statistics.connected(send);
  await count(sent, 1);
  put(info(1));
  put(info(2));
  await count(sent, 2);
  expect(sent).toEqual([payload(1), payload(2)]);
  statistics.disconnected();
  const reads = state.reads;
  put(info(3));
  await until(() => state.reads > reads);
  expect(sent).toHaveLength(2);
  statistics.connected(send);
  await until(() => sent.length > 2);
  expect(sent.at(-1)).toEqual(payload(3));
});

test('with notifications Redis is asked only after one; without, at the interval', async () => {
  const notified = start({ notified: true });
  const polling = start({ notified: false });
  notified.put(info(1));
  await until(() => polling.state.reads > 20);
  expect(notified.state.reads).toBeLessThanOrEqual(4);
});

test('a burst of changes costs one reading per interval', async () => {
  const intervalMs = 50;
  const began = performance.now();
  const { statistics, state, sent, send, put } = start({ notified: true, intervalMs });
  statistics.connected(send);
  for (let n = 1; n <= 20; n++) {
    put(info(n));
    await new Promise((resolve) => setTimeout(resolve, 3));
  }
  await until(() => (sent.at(-1) as { applicationsCount?: number })?.applicationsCount === 20);
  const intervals = Math.ceil((performance.now() - began) / intervalMs);
  expect(state.reads).toBeLessThanOrEqual(3 + intervals);
});

test('an Argo CD that does not compress is understood', async () => {
  const { statistics, sent, send, put } = start({ notified: true });
  statistics.connected(send);
  put(info(7), 'none');
  await count(sent, 1);
  expect(sent).toEqual([payload(7)]);
});

test("keys begin with Argo CD's prefix; without it they are those of an Argo CD that knows none", async () => {
  const { statistics, sent, send, put } = start({ notified: true, keyPrefix: 'fleet:' });
  statistics.connected(send);
  put(info(7), 'gzip', 'fleet:');
  await count(sent, 1);
  put(info(8), 'none');
  await count(sent, 2);
  expect(sent).toEqual([payload(7), payload(8)]);
});

test('says whether Argo CD can be made to drop its cache, at once when that changes', async () => {
  const { statistics, cluster, sent, send, put } = start({ notified: true });
  statistics.connected(send);
  put(info(1));
  await count(sent, 1);
  cluster.changed();
  cluster.isKnown = true;
  cluster.changed();
  cluster.isKnown = false;
  cluster.changed();
  expect(sent).toEqual([payload(1), { ...payload(1), dropsCache: true }, payload(1)]);
});
