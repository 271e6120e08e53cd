import { kubeClient, kubeRequestSpans, propagationOf, startProgram } from '../lib/bridge/index.ts';
import { type CommandContext, commandLoggers, FatalError } from '../lib/ops/index.ts';
import { redisLink } from '../lib/redis/index.ts';
import { asksForCipherSuites, cipherSuiteCatalogue, requestCertificate, WireError } from '../lib/wire/index.ts';
import { agentCaches, agentCachesSynced, followRestores } from './caches.ts';
import { CertificateKeeper, type CertificateKeeperOptions } from './certificate-keeper.ts';
import { agentFieldManager, agentSync } from './cluster-sync.ts';
import { ClusterStatistics } from './connection/cluster-statistics.ts';
import { connectionSettings, keepConnected } from './connection/connect.ts';
import { OwnCluster } from './connection/own-cluster.ts';
import { type AgentCredentials, agentCredentials } from './credentials.ts';
import type { AgentFlags, agentFlags } from './flags.ts';
import { serveLive } from './live/live-access.ts';
import { agentMetrics } from './metrics.ts';
import { type AgentSettings, agentSettings } from './settings.ts';

/** How long the key material's Secrets may take to appear at the start. */
const credentialsTimeoutMs = 300_000;
/** Each watch of a user of the UI holds a connection to the API server. */
const mostLiveConnections = 1_000;

/**
 * Runs the agent until aborted.
 * @throws FatalError when it cannot start, with what to do
 */
export async function runAgent(flags: AgentFlags, context: CommandContext<typeof agentFlags>): Promise<void> {
  if (asksForCipherSuites(flags['tls-ciphersuites'])) {
    return context.stdout(cipherSuiteCatalogue());
  }
  const settings = agentSettings(flags, context.parsed.given);
  const loggers = commandLoggers('agent', flags, context);
  const logger = loggers.root;
  const { namespace } = flags;
  const { mode } = settings;
  const { server, otherServers } = connectionSettings(settings);
  const principal = [server, ...otherServers].join(',');
  const program = await startProgram({
    name: 'agent',
    service: `agent-${mode}`,
    flags,
    env: context.env,
    signal: context.signal,
    about: () => ({ mode, principal }),
    logger,
  });
  const { client, registry, tracing, signal, failed } = program;
  const waiting = (what: string) => program.health(`waiting for ${what}`);
  if (flags['ignore-unmanaged-apps'] && mode === 'autonomous') {
    logger.warn('--ignore-unmanaged-apps has no effect in autonomous mode: all Applications are of this cluster');
  }

  const caches = agentCaches(flags, { client, logger, signal, failed });
  const credentials = agentCredentials(settings, { secrets: caches.Secrets, logger, signal });
  const keeper = certificateKeeper(settings, { client, secrets: caches.Secrets, credentials, logger, signal });
  const link = redisLink(settings.redis, { secrets: caches.Secrets, namespace, notify: true, logger, signal });
  await agentCachesSynced(caches, flags, { signal, waiting });

  const sync = agentSync({
    mode,
    flags,
    client,
    caches,
    delivered: (delivery) => {
      const arrived = propagationOf(delivery, agentFieldManager, Date.now());
      if (arrived !== undefined) {
        metrics.propagated(arrived.resourceType, arrived.seconds);
      }
    },
    tracer: tracing?.tracer,
    detail: loggers.detail,
    logger,
  });
  sync.start(signal);
  followRestores(caches, () => sync.restored());
  const metrics = agentMetrics(registry, {
    mode,
    outOfStep: () => sync.stats().pending,
    oldestMs: () => sync.oldestMs(),
    certificates: () => [
      // The SPIFFE Workload API replaces its short-lived ones itself.
      {
        certificate: 'client',
        pem: settings.spire === undefined ? credentials.clientCertificate?.value?.cert : undefined,
      },
      {
        certificate: 'authority',
        pem: settings.spire === undefined ? credentials.trust?.value : undefined,
        isTrust: true,
      },
    ],
    isRedisConnected: () => link.problem === undefined,
  });
  await program.serveMetrics();
  const cluster = new OwnCluster({ client, secrets: caches.Secrets, fieldManager: agentFieldManager, logger });
  const intervalMs = flags['cache-refresh-interval'];
  const keyPrefix = flags['redis-key-prefix'];
  const statistics = new ClusterStatistics({ link, cluster, keyPrefix, intervalMs, logger });
  const informing = Promise.all([link.run(signal), statistics.run(signal), keeper?.run(signal)]).catch(failed);

  const live = serveLive({
    client: kubeClient(flags, {
      maxConnections: mostLiveConnections,
      observe: tracing && kubeRequestSpans(tracing.tracer),
    }),
    applications: caches.Applications,
    appProjects: caches.AppProjects,
    settings: caches["Argo CD's settings"],
    namespace,
    resourceMetrics: metrics.resourceProxy,
    isEnabled: flags['enable-resource-proxy'],
    access: flags['live-access'] as 'managed' | 'all',
    redis: { link, hasSameKeys: flags['destination-based-mapping'], keyPrefix, metrics: metrics.redisProxy },
    terminals: { idleMs: flags['terminal-idle-timeout'], metrics: metrics.terminals },
    tracer: tracing?.tracer,
    logger: loggers.component('resource-proxy'),
  });

  waiting('the key material (Secrets or files)');
  await readyToConnect(credentials, signal);
  await keepConnected({
    settings,
    credentials,
    sync,
    statistics,
    cluster,
    keeper,
    live,
    metrics,
    tracer: tracing?.tracer,
    detail: loggers.detail,
    logger,
    eventLogger: loggers.component('grpc-event'),
    bufferLogger: loggers.component('informer-event-buffer'),
    signal,
    state: (problem) => program.health(problem),
  }).catch(failed);
  logger.info('agent stops');
  await Promise.all([informing, program.close()]);
}

/** Undefined where the certificate comes from elsewhere than a Secret, or there is none. */
function certificateKeeper(
  settings: AgentSettings,
  shared: Pick<CertificateKeeperOptions, 'client' | 'secrets' | 'logger'> & {
    readonly credentials: AgentCredentials;
    readonly signal: AbortSignal;
  },
): CertificateKeeper | undefined {
  const { flags, tls } = settings;
  const { credentials, signal, ...rest } = shared;
  // Nobody gives a token to whom he does not know.
  if (tls === 'plaintext' || tls.files || settings.spire !== undefined || !tls.verify) {
    return undefined;
  }
  const wait = { timeoutMs: credentialsTimeoutMs, advice: '', signal };
  return new CertificateKeeper({
    ...rest,
    namespace: flags.namespace,
    clientSecret: flags['tls-secret-name'],
    trustSecret: flags['root-ca-secret-name'],
    exchange: async (token, request) => {
      const ca = await credentials.trust?.ready(wait);
      const trusted = { ...(ca === undefined ? {} : { ca }), ...tls.settings };
      const { server: first, otherServers, ...connection } = connectionSettings(settings);
      for (const [index, server] of [first, ...otherServers].entries()) {
        try {
          return await requestCertificate({ ...connection, server, tls: trusted, token, request, signal });
        } catch (error) {
          // A token that was refused is refused for all; one that nobody saw is left for the next principal.
          const isUnseen = error instanceof WireError && ['unreachable', 'not-accepting'].includes(error.code);
          if (!isUnseen || index === otherServers.length) {
            throw error;
          }
        }
      }
      throw new FatalError('no address of a principal is known');
    },
  });
}

async function readyToConnect(credentials: AgentCredentials, signal: AbortSignal): Promise<void> {
  const wait = { timeoutMs: credentialsTimeoutMs, signal };
  const flag = (names: string) => `Create it, or name another one with ${names}`;
  await credentials.clientCertificate?.ready({
    ...wait,
    advice: `${flag('--tls-secret-name, --tls-client-cert and --tls-client-key, or --spire-agent-socket')}, or enroll the agent with argocd-agent enroll on the hub`,
  });
  await credentials.trust?.ready({
    ...wait,
    advice: flag('--root-ca-secret-name, --root-ca-path or --spire-agent-socket'),
  });
}
