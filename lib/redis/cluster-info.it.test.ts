import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { compareWithArgoCD, comparisonMs } from '../../e2e/oracle/index.ts';
import { type ClusterInfo, clusterInfoKey, decodeClusterInfo, encodeClusterInfo } from './index.ts';

test(
  'Argo CD reads what is written of a cluster, where it is written, and its own is read',
  async () => {
    const differs = await compareWithArgoCD('info', (dice) => {
      const word = () => dice.pick(['', 'v1.34', '<b>&"\\\u2028', 'größe 🚀', 'Successful']);
      const time = () => dice.pick([undefined, '2026-03-29T01:30:00Z', '1999-12-31T23:59:59Z']);
      const info: ClusterInfo = {
        connectionState: { status: word(), message: word(), attemptedAt: time() },
        serverVersion: word(),
        cacheInfo: {
          resourcesCount: dice.integer(0, 3),
          apisCount: dice.pick([0, 1, 2 ** 40]),
          lastCacheSyncTime: time(),
        },
        applicationsCount: dice.integer(0, 3),
      };
      const compression = dice.pick(['gzip', 'none'] as const);
      const server = dice.pick([
        'https://kubernetes.default.svc',
        'https://proxy:9090?agentName=a',
        'https://[::1]:6443',
        '',
      ]);
      const key = clusterInfoKey(server, compression);
      const value = encodeClusterInfo(info, compression);
      const json = (compression === 'gzip' ? gunzipSync(value) : value).toString();
      return {
        of: { compression, server, key, value: value.toString('base64'), info: JSON.parse(json) },
        ours: info,
        agrees: (theirs) => {
          const { written = {}, read } = theirs as { written?: Record<string, string>; read?: unknown };
          const own = Buffer.from(written[key] ?? '', 'base64');
          const same = (bytes: Buffer) =>
            JSON.stringify(decodeClusterInfo(bytes, compression)) === JSON.stringify(info);
          const again = Buffer.from(JSON.stringify(read));
          return (
            own.length > 0 && same(own) && JSON.stringify(decodeClusterInfo(again, 'none')) === JSON.stringify(info)
          );
        },
      };
    });
    expect(differs).toBeUndefined();
  },
  comparisonMs,
);
