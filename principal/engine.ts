import { hostname } from 'node:os';
import { type RunningProgram, receiveWindowLimits } from '../lib/bridge/index.ts';
import { EventRecorder } from '../lib/kube/index.ts';
import { type Detail, type FleetReporter, type Loggers, queueMetrics } from '../lib/ops/index.ts';
import type { Compression } from '../lib/redis/index.ts';
import { eventTypes, messageEvent, principalSource, targets, type WireEvent } from '../lib/wire/index.ts';
import { ApplicationEvents } from './application-events.ts';
import { countChanges, gpgKeyCount } from './change-metrics.ts';
import { CacheRefreshes } from './clusters/cache-refreshes.ts';
import { ClusterInfos } from './clusters/cluster-info.ts';
import { HubClusters } from './clusters/hub-clusters.ts';
import { OperatorEvents } from './clusters/operator-events.ts';
import { type HubSynchronisation, hubSync } from './hub-sync.ts';
import type { PrincipalInputs } from './inputs.ts';
import { LiveAccess } from './live/live-access.ts';
import { type LiveMetrics, liveMetrics } from './live/metrics.ts';
import { outOfStepMetric, type PrincipalMetrics, principalMetrics } from './metrics.ts';
import { startNotifications } from './notifications/start.ts';
import { countDelivery, observeState } from './observed-state.ts';
import { AgentQuotas } from './quotas/agent-quotas.ts';
import { agentLimits } from './quotas/limits.ts';
import type { AgentRecords } from './sessions/agent-records.ts';
import { ConnectionRecords } from './sessions/connection-records.ts';
import { AgentIntroductions } from './sessions/introductions.ts';
import { OpenSessions } from './sessions/open-sessions.ts';
import { type ModeSources, pinnedMode } from './sessions/pinned-mode.ts';
import { Sessions } from './sessions/sessions.ts';
import { UnsteadyConnections } from './sessions/unsteady-connections.ts';
import type { PrincipalSettings } from './settings.ts';
import { shareAgents } from './share-agents.ts';

/** Everything behind the principal's servers: the agents' sessions and what is synchronised and recorded on them. */
export interface PrincipalEngine {
  readonly sessions: Sessions;
  readonly open: OpenSessions;
  readonly records: AgentRecords;
  /** This process, as the connection records name it. */
  readonly identity: string;
  readonly introductions: AgentIntroductions;
  readonly hub: HubSynchronisation;
  readonly modes: ModeSources;
  readonly live: LiveAccess;
  readonly clusterInfos: ClusterInfos;
  readonly operators: OperatorEvents;
  readonly metrics: PrincipalMetrics;
  readonly liveMetrics: LiveMetrics;
  readonly observerOf: ReturnType<typeof queueMetrics>;
  /** Undefined unless `--events-sink-url`. */
  readonly fleetEvents: FleetReporter | undefined;
  /** Resolves when the work queues have ended, after the program's signal. */
  readonly ended: Promise<unknown>;
  /** Records all agents as disconnected. Call it when the sessions and the queues have ended. */
  recordEnd(): Promise<void>;
  /** Sends the last Kubernetes Events. */
  flushEvents(): Promise<void>;
}

/** Starts the engine on inputs that are complete. */
export function startEngine(
  settings: PrincipalSettings,
  program: RunningProgram,
  inputs: PrincipalInputs,
  loggers: Loggers & { readonly detail: Detail },
  env: Readonly<Record<string, string | undefined>>,
): PrincipalEngine {
  const { flags } = settings;
  const { namespace } = flags;
  const { client, registry, signal } = program;
  const { caches, link, agents, connections, principalUid, replicas } = inputs;
  const { root: logger, detail } = loggers;
  const identity = process.env.POD_NAME ?? hostname();
  const isMapped = (agent: string) => agents.has(agent);
  const observerOf = queueMetrics(registry, 'argocd_principal');

  // Records about agents: Kubernetes Events, Leases and Argo CD's Redis.
  const events = new EventRecorder({ client, component: 'argocd-agent/principal', instance: identity, logger });
  const operators = new OperatorEvents({ agents, events });
  const records: AgentRecords =
    replicas?.holds ??
    new ConnectionRecords({
      client,
      namespace,
      identity,
      informer: caches.Leases,
      observer: observerOf('connections'),
      logger,
    });
  // Those about Applications are many, and must not take the place of the others.
  const applicationEvents = flags['application-events']
    ? new EventRecorder({ client, component: 'argocd-agent/principal', instance: identity, logger })
    : undefined;
  const clusterInfos = new ClusterInfos({
    agents,
    link,
    compression: flags['redis-compression-type'] as Compression,
    keyPrefix: flags['redis-key-prefix'],
    isResponsible: replicas && ((agent) => replicas.isResponsible(agent)),
    reported: (agent, cache) => cacheRefreshes.reported(agent, cache),
    observer: observerOf('cluster-information'),
    logger,
  });

  // Sessions and their metrics.
  const introductions = new AgentIntroductions(isMapped);
  const notifications = startNotifications({
    flags,
    registry,
    agents,
    credentials: inputs.credentials,
    versionOf: (agent) => introductions.of(agent)?.version ?? '',
    connected: () => open.connections().map(({ agent }) => ({ agent, oldestMs: hub.sync.oldestMs(agent) })),
    lateApplications: (agent, afterMs, most) => hub.sync.late(agent, 'Application', afterMs, most),
    logger,
    signal,
  });
  const open = new OpenSessions(isMapped);
  if (notifications !== undefined) {
    open.subscribe(notifications.presence);
  }
  open.subscribe(new UnsteadyConnections((found) => operators.unsteady(found)));
  const send = (agent: string, event: WireEvent) => {
    const isSent = open.send(agent, event);
    if (isSent) {
      metrics.eventSent();
    }
    return isSent;
  };
  const cacheRefreshes = new CacheRefreshes({
    agents,
    send: (agent) => {
      const { clusterCacheInvalidate } = eventTypes;
      return send(
        agent,
        messageEvent(targets.clusterCacheInfoUpdate, clusterCacheInvalidate, {}, { source: principalSource }),
      );
    },
    logger,
  });
  const isForgotten = (agent: string) => cacheRefreshes.disconnected(agent);
  open.subscribe({ connected: isForgotten, disconnected: isForgotten });
  const modes: ModeSources = { agents, recorded: (agent) => records.modeOf(agent) };
  const metrics = principalMetrics(registry, {
    connections: () => open.connections(),
    gpgKeys: () => gpgKeyCount(caches['GPG keys']),
    isRedisConnected: () => link.problem === undefined,
    disconnected: () => hub.disconnectedAgents(),
  });
  countChanges(caches, metrics);

  // Synchronisation.
  const quotas = new AgentQuotas(agentLimits(flags), {
    refused: (agent, limit, message) => {
      metrics.overQuota(agent, limit);
      logger.warn({ agent, limit }, `an agent may not store more on the hub: ${message}`);
      operators.overQuota(agent, message);
    },
    delayed: (agent, seconds) => {
      metrics.delayed(agent, seconds);
      logger.warn({ agent, seconds }, 'an agent writes faster to the hub than it may, and its messages wait');
    },
  });
  agents.subscribe({ unmapped: (agent) => quotas.forgetAgent(agent) });
  const hubClusters = new HubClusters((nameOrUrl) => hub.hubClusterChanged(nameOrUrl));
  const hub: HubSynchronisation = hubSync({
    flags,
    client,
    caches,
    principalUid,
    agents: () => agents.names(),
    lastSeen: (agent) => records.lastSeen(agent),
    managedLastSeen: (agent) => records.managedLastSeen(agent),
    agentNamespace: (agent) => introductions.of(agent)?.namespace,
    clustersOf: (agent) => agents.clustersOf(agent),
    fleet: {
      isMapped,
      modeOf: (agent) => pinnedMode(modes, agent),
      agentOfCluster: (nameOrUrl) => hubClusters.agentOf(nameOrUrl),
      agentOfUrl: (url) => hubClusters.agentOfUrl(url),
      secretsWithUrl: (url) => hubClusters.secretsWithUrl(url),
    },
    namespaceCreation: settings.namespaceCreation,
    tracer: program.tracing?.tracer,
    refused: (agent, resourceType) => metrics.refusedEvent(agent, resourceType),
    onFailure: (failure) => operators.cannotMirror(failure),
    onPutBack: (mirror, was) => operators.putBack(mirror, was),
    quotas,
    replicas,
    delivered: (delivery) => countDelivery(metrics, delivery),
    onForeign: (agent, application) => operators.keptApplication(agent, application),
    onRefused: (agent, application, reason) => operators.refusedReport(agent, application, reason),
    detail,
    logger,
  });
  hubClusters.follow(caches.Secrets);
  hub.sync.start(signal);
  if (applicationEvents !== undefined) {
    new ApplicationEvents({
      ownerOf: (application) => hub.ownerOf(application),
      isResponsible: replicas && ((agent) => replicas.isResponsible(agent)),
      events: applicationEvents,
    }).follow(caches.Applications);
  }
  agents.subscribe({
    mapped: hub.mapped,
    written: (agent) => {
      clusterInfos.secretWritten(agent);
      cacheRefreshes.secretWritten(agent);
    },
  });
  outOfStepMetric(registry, () =>
    open.connections().map(({ agent }) => [agent, hub.sync.stats(agent).pending] as const),
  );

  observeState(registry, {
    flags,
    spire: settings.spire,
    caches,
    credentials: inputs.credentials,
    agents: () => agents.names(),
    open,
    introductions,
    hub,
    metrics,
  });

  // Live access.
  const live = new LiveAccess({
    send,
    isConnected: (agent) => open.isConnected(agent),
    mirrored: {
      isAutonomous: (agent) => pinnedMode(modes, agent) === 'autonomous',
      namespaceOf: (agent) => introductions.of(agent)?.namespace,
    },
    tracer: program.tracing?.tracer,
  });
  const liveCounts = liveMetrics(registry, isMapped, () => live.terminals);
  agents.subscribe({ unmapped: (agent) => liveCounts.forgetAgent(agent) });

  // The sessions, which join all of these.
  const sessions = new Sessions({
    open,
    introductions,
    sync: hub.sync,
    isMapped,
    clusterChanged: hub.clusterChanged,
    pinnedMode: (agent) => pinnedMode(modes, agent),
    records,
    clusterInfos,
    refused: (agent, reason) => operators.refusedByAgent(agent, reason),
    live,
    receiveWindow: receiveWindowLimits(env, (message) => logger.warn(message)),
    metrics,
    tracer: program.tracing?.tracer,
    detail,
    logger,
    eventLogger: loggers.component('grpc-event'),
  });
  agents.subscribe(sessions);
  // After the engine has forgotten it.
  agents.subscribe({ unmapped: (agent) => connections.agentGone(agent) });
  // Mirrors are protected from now on, not only from when their agent is back.
  const protectMirrors = (agent: string) => {
    if (pinnedMode(modes, agent) === 'autonomous') {
      hub.sync.expect(agent, 'autonomous');
    }
  };
  if (replicas === undefined) {
    for (const agent of agents.names()) {
      protectMirrors(agent);
    }
    records.forgetAllBut(isMapped);
  } else {
    shareAgents({ replicas, sessions, hub, agents, records, clusterInfos, protectMirrors });
  }
  const ended = Promise.all([
    notifications?.ended.catch(program.failed),
    (replicas ?? records).run(signal).catch(program.failed),
    Promise.all([link.run(signal), clusterInfos.run(signal)]).catch(program.failed),
  ]);
  return {
    sessions,
    open,
    records,
    identity,
    introductions,
    hub,
    modes,
    live,
    clusterInfos,
    operators,
    metrics,
    liveMetrics: liveCounts,
    observerOf,
    fleetEvents: notifications?.events,
    ended,
    recordEnd: () => (replicas ?? records).close(),
    flushEvents: async () => void (await Promise.all([events.close(), applicationEvents?.close()])),
  };
}
