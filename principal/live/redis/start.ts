import type { Application } from '../../../lib/argocd/index.ts';
import { aborted, type Logger, splitHostPort } from '../../../lib/base/index.ts';
import { type RedisLink, redisTls } from '../../../lib/redis/index.ts';
import type { ServerTls } from '../../../lib/wire/index.ts';
import type { PrincipalCaches } from '../../caches.ts';
import type { PrincipalCredentials } from '../../credentials.ts';
import type { PrincipalSettings } from '../../settings.ts';
import { firstMaterial } from '../key-material.ts';
import type { LiveAccess } from '../live-access.ts';
import type { RedisProxyMetrics } from '../metrics.ts';
import { applicationOf, unknownPrefix } from './keys.ts';

/** Maps Applications to agents. */
export interface ApplicationOwners {
  /** Whether there is an agent of this name. */
  isAgent(name: string): boolean;
  /** The agent that deploys a hub Application, as its own or as one that the hub mirrors; undefined when none does. */
  agentOf(application: Application): string | undefined;
}

/**
 * Serves the Redis proxy until aborted. A proxy with TLS starts when its certificate exists.
 * @throws FatalError when the port cannot be taken
 */
export async function proxyRedis(options: {
  settings: PrincipalSettings;
  credentials: PrincipalCredentials;
  caches: PrincipalCaches;
  owners: ApplicationOwners;
  live: LiveAccess;
  link: RedisLink;
  metrics: RedisProxyMetrics;
  logger: Logger;
  signal: AbortSignal;
}): Promise<void> {
  const { settings, credentials, caches, live, link, metrics, logger, signal } = options;
  const { flags, redis } = settings;
  const keyPrefix = flags['redis-key-prefix'];
  let isPrefixSaid = false;
  const address = splitHostPort(flags['redis-proxy-listen']);
  const [, host = '', port = ''] = /^\[?([^[\]]+)\]?:(\d+)$/.exec(redis.address) ?? [];
  const { redisProxy: pair } = credentials;
  const allowed = settings.tls === 'plaintext' ? {} : settings.tls.settings;
  const material = (): ServerTls | undefined => pair?.value && { ...pair.value, ...allowed };
  const tls =
    pair &&
    (await firstMaterial(material, [pair], {
      what: 'Redis proxy',
      flag: 'redis-proxy-server-tls-secret-name',
      off: 'disable-redis-proxy=true',
      secrets: caches.Secrets,
      logger,
      signal,
    }));
  if (address === undefined || signal.aborted) {
    return;
  }
  const proxy = await live.serveRedis({
    ...address,
    tls,
    upstream: {
      host,
      port: Number(port),
      tls: redisTls(redis, { secrets: caches.Secrets, namespace: flags.namespace, logger, signal }),
    },
    link,
    agentOf: (key) => {
      const prefix = isPrefixSaid ? undefined : unknownPrefix(key);
      if (prefix !== undefined) {
        isPrefixSaid = true;
        logger.warn(
          { prefix: prefix.slice(0, 100), known: keyPrefix },
          "Argo CD's keys in Redis have a prefix that the principal does not know: resource trees of the clusters are not shown. Give the principal the same --redis-key-prefix (ARGOCD_REDIS_KEY_PREFIX), or restart it if redis.key.prefix was changed",
        );
      }
      return agentOf(key, options);
    },
    keyPrefix,
    metrics,
    logger,
  });
  logger.info({ port: proxy.port, redis: redis.address }, 'Redis proxy serves');
  const reload = () => {
    const next = material();
    if (next === undefined) {
      return;
    }
    try {
      proxy.setTls(next);
    } catch (error) {
      logger.error({ error }, "the Redis proxy's new certificate cannot be used, the former one stays in use");
    }
  };
  pair?.subscribe(reload);
  // The certificate may have changed while the port was being opened.
  reload();
  await aborted(signal);
  await proxy.close();
}

/**
 * The agent whose Argo CD has a key; undefined: the hub's own. By namespace it is that of its Application, when there is such an
 * agent; by destination the one that has the Application, or whose mirror it is.
 */
function agentOf(
  key: string,
  {
    settings: { flags },
    caches,
    owners,
  }: { settings: PrincipalSettings; caches: PrincipalCaches; owners: ApplicationOwners },
): string | undefined {
  const keyed = applicationOf(key);
  if (keyed === undefined) {
    return undefined;
  }
  if (flags['destination-based-mapping']) {
    const found = caches.Applications.get({ namespace: keyed.namespace || flags.namespace, name: keyed.name });
    if (found !== undefined) {
      // The hub's own may be in a namespace that is called like an agent.
      return owners.agentOf(found as unknown as Application);
    }
  }
  return keyed.namespace !== '' && owners.isAgent(keyed.namespace) ? keyed.namespace : undefined;
}
