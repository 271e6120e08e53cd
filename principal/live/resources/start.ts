import type { TokenAuthority } from '../../../lib/auth/index.ts';
import { aborted, type Logger, splitHostPort } from '../../../lib/base/index.ts';
import type { OpenConnections } from '../../../lib/credentials/index.ts';
import type { ServerTls } from '../../../lib/wire/index.ts';
import type { PrincipalCaches } from '../../caches.ts';
import type { PrincipalCredentials } from '../../credentials.ts';
import type { PrincipalSettings } from '../../settings.ts';
import type { AuditRecord } from '../audit-record.ts';
import { firstMaterial } from '../key-material.ts';
import type { LiveAccess } from '../live-access.ts';
import type { ResourceProxyMetrics } from '../metrics.ts';

/**
 * Serves the resource proxy once its key material exists, until aborted. Missing material delays nothing else: agents and
 * synchronisation do not need the proxy.
 * @throws FatalError when the port cannot be taken
 */
export async function proxyResources(options: {
  settings: PrincipalSettings;
  credentials: PrincipalCredentials;
  caches: Pick<PrincipalCaches, 'Secrets'>;
  live: LiveAccess;
  tokens: TokenAuthority;
  connections: OpenConnections;
  metrics: ResourceProxyMetrics;
  /** Gets every request when it has ended. */
  audit: ((record: AuditRecord) => void) | undefined;
  logger: Logger;
  signal: AbortSignal;
}): Promise<void> {
  const { settings, credentials, caches, live, tokens, connections, metrics, logger, signal } = options;
  const { resourceProxy, resourceProxyTrust } = credentials;
  const address = splitHostPort(settings.flags['resource-proxy-listen']);
  if (resourceProxy === undefined || resourceProxyTrust === undefined || address === undefined) {
    return;
  }
  const material = (): ServerTls | undefined => {
    const [pair, clientCa] = [resourceProxy.value, resourceProxyTrust.value];
    const allowed = settings.tls === 'plaintext' ? {} : settings.tls.settings;
    return pair === undefined || clientCa === undefined ? undefined : { ...pair, clientCa, ...allowed };
  };
  const tls = await firstMaterial(material, [resourceProxy, resourceProxyTrust], {
    what: 'resource proxy',
    flag: 'resource-proxy-secret-name',
    off: 'enable-resource-proxy=false',
    secrets: caches.Secrets,
    logger,
    signal,
  });
  if (tls === undefined) {
    return;
  }
  const proxy = await live.serveResources({
    address,
    tls,
    tokens,
    connections,
    terminalIdleMs: settings.flags['terminal-idle-timeout'],
    mostAnswerBytes: settings.flags['resource-proxy-max-answer-size'],
    metrics,
    audit: options.audit,
    logger,
  });
  logger.info({ port: proxy.port }, 'resource proxy serves');
  const reload = () => {
    const next = material();
    if (next === undefined) {
      return;
    }
    try {
      proxy.setTls(next);
    } catch (error) {
      logger.error({ error }, "the resource proxy's new certificates cannot be used, the former ones stay in use");
    }
  };
  resourceProxy.subscribe(reload);
  resourceProxyTrust.subscribe(reload);
  // The certificates may have changed while the port was being opened.
  reload();
  await aborted(signal);
  await proxy.close();
}
