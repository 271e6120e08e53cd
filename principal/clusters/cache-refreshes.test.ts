import { expect, test } from 'vitest';
import { createLogger } from '../../lib/ops/index.ts';
import { CacheRefreshes } from './cache-refreshes.ts';
import type { MappedCluster } from './mapped-agents.ts';

const synced = '2026-11-21T10:00:00Z';

/** The principal with agent `a`; `annotations` are those of its cluster Secrets. */
function start(annotations: (string | undefined)[] = [undefined]) {
  const sent: string[] = [];
  const state = { annotations, isConnected: true };
  const refreshes = new CacheRefreshes({
    agents: {
      clustersOf: () =>
        state.annotations.map((refresh): MappedCluster => {
          const metadata = {
            name: 'cluster-a',
            annotations: refresh === undefined ? {} : { 'argocd.argoproj.io/refresh': refresh },
          };
          return { server: 'https://a', name: 'a', mode: undefined, secret: { metadata } };
        }),
    },
    send: (agent) => state.isConnected && sent.push(agent) > 0,
    logger: createLogger({ level: 'fatal' }),
  });
  /** As Argo CD's API server does. */
  const invalidate = (...times: string[]) => {
    state.annotations = times;
    refreshes.secretWritten('a');
  };
  return { refreshes, sent, state, invalidate };
}

test('Invalidate cache is passed on once, and again when somebody asks again', () => {
  const { refreshes, sent, invalidate } = start();
  refreshes.reported('a', { dropsCache: true, lastCacheSyncTime: synced });
  expect(sent).toEqual([]);
  invalidate('2026-11-21T10:05:00Z');
  refreshes.secretWritten('a');
  refreshes.reported('a', { dropsCache: true, lastCacheSyncTime: synced });
  expect(sent).toEqual(['a']);
  invalidate('2026-11-21T10:06:00Z', 'not a time');
  expect(sent).toEqual(['a', 'a']);
});

test("a request while the agent is connected is passed on, whatever the cluster's clock says", () => {
  const { refreshes, sent, invalidate } = start();
  refreshes.reported('a', { dropsCache: true, lastCacheSyncTime: '2026-11-21T10:20:00Z' });
  invalidate('2026-11-21T10:05:00Z');
  refreshes.reported('a', { dropsCache: true, lastCacheSyncTime: '2026-11-21T10:21:00Z' });
  expect(sent).toEqual(['a']);
});

test('an agent that was away, or lost the request, gets it when it is back', () => {
  const { refreshes, sent, state, invalidate } = start();
  invalidate('2026-11-21T10:05:00Z');
  state.isConnected = false;
  refreshes.reported('a', { dropsCache: true, lastCacheSyncTime: synced });
  expect(sent).toEqual([]);
  state.isConnected = true;
  refreshes.reported('a', { dropsCache: true, lastCacheSyncTime: synced });
  refreshes.disconnected('a');
  refreshes.secretWritten('a');
  expect(sent).toEqual(['a']);
  refreshes.reported('a', { dropsCache: true, lastCacheSyncTime: synced });
  expect(sent).toEqual(['a', 'a']);
});

test('a cache that was read after the request is kept, and one that has not been read yet', () => {
  const { refreshes, sent } = start(['2026-11-21T10:05:00Z']);
  refreshes.reported('a', { dropsCache: true, lastCacheSyncTime: '2026-11-21T10:05:03+00:00' });
  refreshes.reported('a', { dropsCache: true });
  expect(sent).toEqual([]);
});

test('an agent of argocd-agent, or one that cannot, gets nothing', () => {
  const { refreshes, sent } = start(['2026-11-21T10:05:00Z']);
  refreshes.reported('a', { lastCacheSyncTime: synced });
  refreshes.reported('a', { dropsCache: false, lastCacheSyncTime: synced });
  expect(sent).toEqual([]);
});
