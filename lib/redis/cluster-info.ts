import { gunzipSync, gzipSync } from 'node:zlib';
import { z } from 'zod';

/** The compression of Argo CD's cached values (`--redis-compression-type`). */
export type Compression = 'gzip' | 'none';

/** How long Argo CD keeps a cluster's information. */
export const clusterInfoLifetimeMs = 10 * 60_000;

/** The version of Argo CD's cache format, part of every key. */
const cacheVersion = '1.8.3';
/** A compressed value may not become larger than this: a few hundred kinds of a cluster are some 30 KiB. */
const maxBytes = 4 * 1024 * 1024;

const count = z
  .number()
  .int()
  .nonnegative()
  .nullish()
  .transform((value) => value ?? 0);
const text = z
  .string()
  .nullish()
  .transform((value) => value ?? '');
const time = z
  .string()
  .nullish()
  .transform((value) => value ?? undefined);

const schema = z.object({
  connectionState: z
    .object({ status: text, message: text, attemptedAt: time })
    .nullish()
    .transform((value) => value ?? { status: '', message: '', attemptedAt: undefined }),
  serverVersion: text,
  cacheInfo: z
    .object({ resourcesCount: count, apisCount: count, lastCacheSyncTime: time })
    .nullish()
    .transform((value) => value ?? { resourcesCount: 0, apisCount: 0, lastCacheSyncTime: undefined }),
  applicationsCount: count,
});

/** What Argo CD knows about a cluster, as its UI shows it under Settings > Clusters. Times are RFC 3339. */
export type ClusterInfo = z.output<typeof schema>;

/** Where Argo CD keeps the information about the cluster of this server URL. */
export function clusterInfoKey(server: string, compression: Compression): string {
  return `cluster|info|${server}|${cacheVersion}${compression === 'gzip' ? '.gz' : ''}`;
}

/** The value as Argo CD writes it: JSON and a line end, compressed. */
export function encodeClusterInfo(info: ClusterInfo, compression: Compression): Buffer {
  const { cacheInfo, connectionState } = info;
  const json = JSON.stringify({
    connectionState: { ...connectionState, attemptedAt: connectionState.attemptedAt ?? null },
    ...(info.serverVersion === '' ? {} : { serverVersion: info.serverVersion }),
    cacheInfo: {
      ...(cacheInfo.resourcesCount === 0 ? {} : { resourcesCount: cacheInfo.resourcesCount }),
      ...(cacheInfo.apisCount === 0 ? {} : { apisCount: cacheInfo.apisCount }),
      ...(cacheInfo.lastCacheSyncTime === undefined ? {} : { lastCacheSyncTime: cacheInfo.lastCacheSyncTime }),
    },
    applicationsCount: info.applicationsCount,
  });
  const bytes = Buffer.from(`${json}\n`);
  return compression === 'gzip' ? gzipSync(bytes) : bytes;
}

/** @throws Error when the value is not what Argo CD writes */
export function decodeClusterInfo(value: Buffer, compression: Compression): ClusterInfo {
  const bytes = compression === 'gzip' ? gunzipSync(value, { maxOutputLength: maxBytes }) : value;
  return schema.parse(JSON.parse(bytes.toString('utf8')));
}
