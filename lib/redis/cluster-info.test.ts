import { gunzipSync, gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { type ClusterInfo, clusterInfoKey, decodeClusterInfo, encodeClusterInfo } from './index.ts';

const info: ClusterInfo = {
  connectionState: { status: 'Successful', message: 'well', attemptedAt: '2026-01-02T03:04:05Z' },
  serverVersion: '',
  cacheInfo: { resourcesCount: 12, apisCount: 3, lastCacheSyncTime: undefined },
  applicationsCount: 4,
};

test("the key is Argo CD's", () => {
  const server = 'https://proxy:9090?agentName=a';
  expect(clusterInfoKey(server, 'gzip')).toBe('cluster|info|https://proxy:9090?agentName=a|1.8.3.gz');
  expect(clusterInfoKey(server, 'none')).toBe('cluster|info|https://proxy:9090?agentName=a|1.8.3');
});

test("the value has Argo CD's form: JSON with a line end, without empty fields", () => {
  const text =
    '{"connectionState":{"status":"Successful","message":"well","attemptedAt":"2026-01-02T03:04:05Z"},"cacheInfo":{"resourcesCount":12,"apisCount":3},"applicationsCount":4}\n';
  expect(encodeClusterInfo(info, 'none').toString()).toBe(text);
  expect(gunzipSync(encodeClusterInfo(info, 'gzip')).toString()).toBe(text);
});

test.each(['gzip', 'none'] as const)('a written value can be read: %s', (compression) => {
  expect(decodeClusterInfo(encodeClusterInfo(info, compression), compression)).toEqual(info);
});

test('values of an application controller can be read, with nulls and unknown fields', () => {
  const written = {
    connectionState: { status: '', message: '', attemptedAt: null },
    serverVersion: '1.34',
    cacheInfo: { resourcesCount: 300, apisCount: 60, lastCacheSyncTime: '2026-01-02T03:04:05Z' },
    applicationsCount: 2,
    apiVersions: ['v1', 'apps/v1'],
  };
  expect(decodeClusterInfo(gzipSync(JSON.stringify(written)), 'gzip')).toEqual({
    connectionState: { status: '', message: '', attemptedAt: undefined },
    serverVersion: '1.34',
    cacheInfo: { resourcesCount: 300, apisCount: 60, lastCacheSyncTime: '2026-01-02T03:04:05Z' },
    applicationsCount: 2,
  });
  expect(decodeClusterInfo(Buffer.from('{}'), 'none').applicationsCount).toBe(0);
});

test('something else is refused, also when it unpacks to more than is reasonable', () => {
  for (const bad of ['', 'null', '[]', '{"applicationsCount":"many"}', '{"applicationsCount":-1}']) {
    expect(() => decodeClusterInfo(Buffer.from(bad), 'none'), bad).toThrow();
  }
  expect(() => decodeClusterInfo(gzipSync(Buffer.alloc(16 * 1024 * 1024, ' ')), 'gzip')).toThrow();
});
