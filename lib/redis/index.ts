export {
  type ClusterInfo,
  type Compression,
  clusterInfoKey,
  clusterInfoLifetimeMs,
  decodeClusterInfo,
  encodeClusterInfo,
} from './cluster-info.ts';
export { redisLink, redisTls } from './connect.ts';
export { prefixedValue } from './key-prefix.ts';
export { RedisLink, type RedisLinkOptions, type Subscription } from './link.ts';
export { type RedisSettings, type RedisTlsFlags, redisSettings } from './settings.ts';
