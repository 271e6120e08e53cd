import { hostname } from 'node:os';
import { type AuthMethod, createAuthMethod } from '../lib/auth/index.ts';
import type { Logger } from '../lib/base/index.ts';
import { kubeClient, kubeRate, receiveWindowLimits, retryForever } from '../lib/bridge/index.ts';
import { EventRecorder, type KubeClient } from '../lib/kube/index.ts';
import {
  type CommandContext,
  commandLoggers,
  createRegistry,
  FatalError,
  type HttpEndpoint,
  kubeRequestMetrics,
  queueMetrics,
  serveHealth,
  serveMetrics,
  serveProfiles,
  versionInfo,
} from '../lib/ops/index.ts';
import { type Compression, redisLink } from '../lib/redis/index.ts';
import { startTracing } from '../lib/tracing/index.ts';
import { asksForCipherSuites, cipherSuiteCatalogue } from '../lib/wire/index.ts';
import { cachesFilled, principalCaches } from './caches.ts';
import { countChanges, gpgKeyCount } from './change-metrics.ts';
import { ClusterInfos } from './clusters/cluster-info.ts';
import { MappedAgents } from './clusters/mapped-agents.ts';
import { OperatorEvents } from './clusters/operator-events.ts';
import { SelfRegistration } from './clusters/self-registration.ts';
import { principalCredentials } from './credentials.ts';
import type { PrincipalFlags, principalFlags } from './flags.ts';
import { principalParts } from './hub-sync.ts';
import { LiveAccess } from './live/live-access.ts';
import { liveMetrics } from './live/metrics.ts';
import { proxyRedis } from './live/redis/start.ts';
import { proxyResources } from './live/resources/start.ts';
import { principalMetrics } from './metrics.ts';
import { ensurePrincipalUid } from './principal-uid.ts';
import { serveAgents } from './sessions/agent-server.ts';
import { Blocklist } from './sessions/blocklist.ts';
import { ConnectionRecords } from './sessions/connection-records.ts';
import { pinnedMode } from './sessions/pinned-mode.ts';
import { Sessions } from './sessions/sessions.ts';
import { type PrincipalSettings, principalSettings } from './settings.ts';

/**
 * Runs the principal until aborted.
 * @throws FatalError when it cannot start, with what to do
 */
export async function runPrincipal(
  flags: PrincipalFlags,
  context: CommandContext<typeof principalFlags>,
): Promise<void> {
  if (asksForCipherSuites(flags['tls-ciphersuites'])) {
    return context.stdout(cipherSuiteCatalogue());
  }
  const settings = principalSettings(flags, context.parsed.given);
  const loggers = commandLoggers('principal', flags, context);
  const logger = loggers.root;
  const { namespace } = flags;
  const identity = process.env.POD_NAME ?? hostname();
  const registry = createRegistry();
  const client: KubeClient = kubeClient(flags, {
    rate: kubeRate(context.env, (message) => logger.warn(message)),
    observe: kubeRequestMetrics(registry, () => new URL(client.server).host),
  });
  const failure = new AbortController();
  const signal = AbortSignal.any([context.signal, failure.signal]);
  const shared = { client, logger, signal, failed: (error: unknown) => failure.abort(error) };
  logger.info({ version: versionInfo().version, namespace, server: client.server }, 'principal starts');

  const tracing = startTracing(flags, 'principal', logger);
  let waitingFor: string | undefined = 'the API server';
  const endpoints: HttpEndpoint[] = [
    await serveHealth({
      port: flags['healthz-port'],
      healthz: () => ({
        ok: waitingFor === undefined,
        text: waitingFor === undefined ? '' : `waiting for ${waitingFor}`,
      }),
    }),
  ];
  if (flags['pprof-port'] > 0) {
    endpoints.push(await serveProfiles({ port: flags['pprof-port'] }));
  }

  const caches = principalCaches(flags, shared);
  const credentials = principalCredentials(settings, { secrets: caches.Secrets, logger, signal });
  const link = redisLink(settings.redis, { secrets: caches.Secrets, namespace, notify: false, logger, signal });
  const agents = new MappedAgents(logger);
  agents.follow(caches.Secrets);
  const blocklist = new Blocklist(logger);
  const method = await authMethod(settings, blocklist, logger);
  const principalUid = await retryForever(
    'establish the identity',
    () => ensurePrincipalUid(client, namespace, signal),
    {
      signal,
      logger,
      isFinal: (error) => error instanceof FatalError,
    },
  );
  const waiting = (what: string) => {
    waitingFor = what;
  };
  await cachesFilled(caches, { client, namespace, logger, signal, waiting });

  const events = new EventRecorder({ client, component: 'argocd-agent/principal', instance: identity, logger });
  const operators = new OperatorEvents({ agents, events });
  const observerOf = queueMetrics(registry, 'argocd_principal');
  const records = new ConnectionRecords({
    client,
    namespace,
    identity,
    informer: caches.Leases,
    observer: observerOf('connections'),
    logger,
  });
  const { parts, agentOf, clusterChanged } = principalParts({
    flags,
    client,
    caches,
    principalUid,
    lastSeen: (agent) => records.managedLastSeen(agent),
    agentNamespace: (agent) => sessions.namespaceOf(agent),
    clusterOf: (agent) => agents.clustersOf(agent)[0]?.name,
    namespaceCreation: settings.namespaceCreation,
    refused: (agent, resourceType) => metrics.refusedEvent(agent, resourceType),
    onFailure: (trouble) => operators.cannotMirror(trouble),
    detail: loggers.detail,
    logger,
  });
  parts.start(signal);
  const compression = flags['redis-compression-type'] as Compression;
  const clusterInfos = new ClusterInfos({
    agents,
    link,
    compression,
    observer: observerOf('cluster-information'),
    logger,
  });
  const metrics = principalMetrics(registry, {
    connections: () => sessions.connections(),
    outOfStep: () => sessions.connections().map(({ agent }) => [agent, parts.stats(agent).pending] as const),
    gpgKeys: () => gpgKeyCount(caches['GPG keys']),
    isRedisConnected: () => link.problem === undefined,
  });
  countChanges(caches, metrics);
  const counts = liveMetrics(
    registry,
    (agent) => agents.has(agent),
    () => live.terminals,
  );
  agents.subscribe({ unmapped: (agent) => counts.forgetAgent(agent) });
  const live = new LiveAccess({
    send: (agent, event) => sessions.send(agent, event),
    isConnected: (agent) => sessions.isConnected(agent),
  });
  const modes = { agents, recorded: (agent: string) => records.modeOf(agent) };
  const sessions = new Sessions({
    parts,
    isMapped: (agent) => agents.has(agent),
    clusterChanged,
    pinnedMode: (agent) => pinnedMode(modes, agent),
    records,
    clusterInfos,
    live,
    receiveWindow: receiveWindowLimits(context.env, (message) => logger.warn(message)),
    metrics,
    tracer: tracing?.tracer,
    detail: loggers.detail,
    logger,
    eventLogger: loggers.component('grpc-event'),
  });
  agents.subscribe(sessions);
  // Mirrors are protected from now on, not only from when their agent is back.
  for (const agent of agents.names()) {
    if (pinnedMode(modes, agent) === 'autonomous') {
      parts.expect(agent, 'autonomous');
    }
  }
  records.forgetAllBut((agent) => agents.has(agent));
  blocklist.follow(caches['blocked certificates'], () =>
    sessions.disconnectBlocked((fingerprint) => blocklist.has(fingerprint)),
  );
  if (flags['metrics-port'] > 0) {
    endpoints.push(await serveMetrics({ port: flags['metrics-port'], registry }));
  }
  const recording = records.run(signal).catch(shared.failed);
  const informing = Promise.all([link.run(signal), clusterInfos.run(signal)]).catch(shared.failed);

  const { selfRegistration } = settings;
  const registration =
    selfRegistration &&
    credentials.proxyIdentity &&
    new SelfRegistration({
      client,
      secrets: caches.Secrets,
      agents,
      namespace,
      address: selfRegistration.address,
      identity: credentials.proxyIdentity,
      observer: observerOf('self-registration'),
      logger,
    });

  waitingFor = 'the key material (Secrets or files)';
  const { server, tokens } = await serveAgents({
    settings,
    credentials,
    method,
    blocklist,
    modes,
    refused: (reason) => metrics.refusedLogin(reason),
    called: metrics.called,
    refusedMode: (error) => {
      operators.refusedMode(error);
      clusterInfos.refused(error.agent ?? '', error.message);
    },
    loggedIn: (agent) => registration?.loggedIn(agent),
    sessions,
    live: live.streams,
    logger,
    signal,
  });
  const registering = registration?.run(tokens, signal).catch(shared.failed);
  // After the tokens' authority has heard of the new key.
  if (registration !== undefined) {
    credentials.signingKey?.subscribe(() => registration.renew());
  }
  const caching = settings.flags['disable-redis-proxy']
    ? undefined
    : proxyRedis({
        settings,
        credentials,
        caches,
        owners: { isAgent: (name) => agents.has(name), agentOf },
        live,
        link,
        metrics: counts.redisProxy,
        logger: loggers.component('redis-proxy'),
        signal,
      }).catch(shared.failed);
  const proxying = settings.flags['enable-resource-proxy']
    ? proxyResources({
        settings,
        credentials,
        live,
        tokens,
        blocklist,
        metrics: counts.resourceProxy,
        logger: loggers.component('resource-proxy'),
        signal,
      }).catch(shared.failed)
    : undefined;
  waitingFor = undefined;
  logger.info({ port: server.port, namespace, principalUid }, 'principal serves agents');

  await new Promise<void>((resolve) => {
    if (signal.aborted) {
      resolve();
    }
    signal.addEventListener('abort', () => resolve());
  });
  logger.info('principal stops');
  // First the streams, so that agents go elsewhere at once.
  const closed = server.close();
  await Promise.all([recording, informing, proxying, caching, registering]);
  await records.close();
  await Promise.all([closed, events.close(), tracing?.close(), ...endpoints.map((endpoint) => endpoint.close())]);
  if (failure.signal.aborted) {
    throw failure.signal.reason;
  }
}

async function authMethod(settings: PrincipalSettings, blocklist: Blocklist, logger: Logger): Promise<AuthMethod> {
  try {
    return await createAuthMethod(settings.auth, {
      isRevoked: (fingerprint) => blocklist.has(fingerprint),
      warn: (message) => logger.warn({}, message),
    });
  } catch (error) {
    throw new FatalError(`--auth (ARGOCD_PRINCIPAL_AUTH): ${(error as Error).message}`, { cause: error });
  }
}
