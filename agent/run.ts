import { kubeClient, kubeRate } from '../lib/bridge/index.ts';
import type { KubeClient } from '../lib/kube/index.ts';
import {
  type CommandContext,
  commandLoggers,
  createRegistry,
  type HttpEndpoint,
  kubeRequestMetrics,
  serveHealth,
  serveMetrics,
  serveProfiles,
  versionInfo,
} from '../lib/ops/index.ts';
import { redisLink } from '../lib/redis/index.ts';
import { startTracing } from '../lib/tracing/index.ts';
import { asksForCipherSuites, cipherSuiteCatalogue } from '../lib/wire/index.ts';
import { agentCaches, cachesFilled } from './caches.ts';
import { agentParts } from './cluster-sync.ts';
import { ClusterStatistics } from './connection/cluster-statistics.ts';
import { keepConnected } from './connection/connect.ts';
import { type AgentCredentials, agentCredentials } from './credentials.ts';
import type { AgentFlags, agentFlags } from './flags.ts';
import { serveLive } from './live/live-access.ts';
import { agentMetrics } from './metrics.ts';
import { agentSettings } from './settings.ts';

/** How long the key material's Secrets may take to appear at the start. */
const credentialsTimeoutMs = 300_000;
/** Watches of the UI's users hold a connection to the API server each. */
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
  const registry = createRegistry();
  const client: KubeClient = kubeClient(flags, {
    rate: kubeRate(context.env, (message) => logger.warn(message)),
    observe: kubeRequestMetrics(registry, () => new URL(client.server).host),
  });
  const failure = new AbortController();
  const signal = AbortSignal.any([context.signal, failure.signal]);
  const shared = { client, logger, signal, failed: (error: unknown) => failure.abort(error) };
  const principal = `${flags['server-address']}:${flags['server-port']}`;
  logger.info({ version: versionInfo().version, namespace, mode: settings.mode, principal }, 'agent starts');

  if (flags['ignore-unmanaged-apps'] && settings.mode === 'autonomous') {
    logger.warn('--ignore-unmanaged-apps has no effect in autonomous mode: all Applications are of this cluster');
  }
  const tracing = startTracing(flags, `agent-${settings.mode}`, logger);
  let unwell: string | undefined = 'waiting for the API server';
  const waiting = (what: string) => {
    unwell = `waiting for ${what}`;
  };
  const endpoints: HttpEndpoint[] = [
    await serveHealth({
      port: flags['healthz-port'],
      healthz: () => ({ ok: unwell === undefined, text: unwell ?? '' }),
    }),
  ];
  if (flags['pprof-port'] > 0) {
    endpoints.push(await serveProfiles({ port: flags['pprof-port'] }));
  }

  const caches = agentCaches(flags, shared);
  const credentials = agentCredentials(settings, { secrets: caches.Secrets, logger, signal });
  const link = redisLink(settings.redis, { secrets: caches.Secrets, namespace, notify: true, logger, signal });
  await cachesFilled(caches, flags, { signal, waiting });

  const parts = agentParts({ mode: settings.mode, flags, client, caches, detail: loggers.detail, logger });
  parts.start(signal);
  const metrics = agentMetrics(registry, {
    mode: settings.mode,
    outOfStep: () => parts.stats().pending,
    isRedisConnected: () => link.problem === undefined,
  });
  if (flags['metrics-port'] > 0) {
    endpoints.push(await serveMetrics({ port: flags['metrics-port'], registry }));
  }
  const statistics = new ClusterStatistics({ link, intervalMs: flags['cache-refresh-interval'], logger });
  const informing = Promise.all([link.run(signal), statistics.run(signal)]).catch(shared.failed);

  const live = serveLive({
    client: kubeClient(flags, { maxConnections: mostLiveConnections }),
    applications: caches.Applications,
    settings: caches["Argo CD's settings"],
    namespace,
    isEnabled: flags['enable-resource-proxy'],
    access: flags['live-access'] as 'managed' | 'all',
    redis: { link, hasSameKeys: flags['destination-based-mapping'], metrics: metrics.redisProxy },
    terminals: { idleMs: flags['terminal-idle-timeout'], metrics: metrics.terminals },
    logger: loggers.component('resource-proxy'),
  });

  waiting('the key material (Secrets or files)');
  await readyToConnect(credentials, signal);
  await keepConnected({
    settings,
    credentials,
    parts,
    statistics,
    live,
    metrics,
    tracer: tracing?.tracer,
    detail: loggers.detail,
    logger,
    eventLogger: loggers.component('grpc-event'),
    bufferLogger: loggers.component('informer-event-buffer'),
    signal,
    state: (problem) => {
      unwell = problem;
    },
  }).catch(shared.failed);
  logger.info('agent stops');
  await Promise.all([informing, tracing?.close(), ...endpoints.map((endpoint) => endpoint.close())]);
  if (failure.signal.aborted) {
    throw failure.signal.reason;
  }
}

async function readyToConnect(credentials: AgentCredentials, signal: AbortSignal): Promise<void> {
  const wait = { timeoutMs: credentialsTimeoutMs, signal };
  const flag = (names: string) => `Create it, or name another one with ${names}`;
  await credentials.clientCertificate?.ready({
    ...wait,
    advice: flag('--tls-secret-name or --tls-client-cert and --tls-client-key'),
  });
  await credentials.trust?.ready({ ...wait, advice: flag('--root-ca-secret-name or --root-ca-path') });
}
