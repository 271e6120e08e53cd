import { aborted } from '../lib/base/index.ts';
import type { RunningProgram } from '../lib/bridge/index.ts';
import type { Loggers } from '../lib/ops/index.ts';
import { auditLog } from './audit/audit-log.ts';
import { SelfRegistration } from './clusters/self-registration.ts';
import type { PrincipalEngine } from './engine.ts';
import { CertificateIssuer } from './enrolment/certificate-issuer.ts';
import { startFleetPage } from './fleet-page/start.ts';
import type { PrincipalInputs } from './inputs.ts';
import { proxyRedis } from './live/redis/start.ts';
import { proxyResources } from './live/resources/start.ts';
import { eventSubject } from './notifications/presence.ts';
import { type PairServices, serveAgents } from './sessions/agent-server.ts';
import type { PrincipalSettings } from './settings.ts';

/** The principal's servers for agents and for Argo CD. */
export interface PrincipalServers {
  /** The port that agents connect to. */
  readonly port: number;
  /** The agents that have a stream. */
  connectedAgents(): string[];
  /** Ends the agents' streams, and nothing else. */
  endAgents(reason: string): void;
  /** Ends the agents' streams; resolves when their connections have ended. */
  closeAgents(): Promise<void>;
  /** Resolves when the proxies and the self-registration have ended, after the program's signal. */
  readonly ended: Promise<unknown>;
}

/**
 * Waits for the key material and serves agents; the proxies follow when their own key material is there. When that is aborted, what
 * has begun has ended.
 * @throws FatalError that names what is missing, or the port that cannot be used
 */
export async function startServers(
  settings: PrincipalSettings,
  program: RunningProgram,
  inputs: PrincipalInputs,
  engine: PrincipalEngine,
  loggers: Loggers,
  pair?: PairServices,
): Promise<PrincipalServers> {
  const { flags } = settings;
  const { signal, failed } = program;
  const { caches, credentials, link, agents, connections, method } = inputs;
  const { sessions, introductions, hub, modes, live, clusterInfos, operators, metrics, fleetEvents } = engine;
  const logger = loggers.root;
  const audit = auditLog(flags, program.registry, logger);
  const auditing = audit?.run(signal).catch(failed);
  const registration = selfRegistration(settings, program, inputs, engine, loggers);
  const fleetPage = startFleetPage({ settings, program, inputs, engine, logger });

  const { replicas, peerPort } = inputs;
  if (replicas !== undefined && peerPort !== undefined) {
    const link = live.joinReplicas({
      port: peerPort,
      directory: replicas.directory,
      deposed: (identity) => replicas.toldDeposed(identity),
      terminalIdleMs: flags['terminal-idle-timeout'],
      mostAnswerBytes: flags['resource-proxy-max-answer-size'],
      maxAnswerBytes: flags['grpc-max-message-size'],
      logger: loggers.root,
      signal,
    });
    replicas.tellDeposedBy((peer) => {
      const limited = AbortSignal.any([signal, AbortSignal.timeout(flags['replica-lease-duration'])]);
      link.tellDeposed(peer, limited).catch((error: unknown) => {
        logger.debug({ error, replica: peer.identity }, 'a replica that was deposed cannot be told: it may have died');
      });
    });
  }

  const { server, tokens } = await serveAgents({
    settings,
    credentials,
    method,
    connections,
    modes,
    refused: (reason) => {
      metrics.refusedLogin(reason);
      fleetEvents?.report('agent-refused', `logins/${reason}`, { reason });
    },
    cutOff: () => replicas?.cutOff,
    called: metrics.called,
    tracer: program.tracing?.tracer,
    refusedMode: (error) => {
      operators.refusedMode(error);
      clusterInfos.refused(error.agent ?? '', error.message);
      const { agent = '', message } = error;
      fleetEvents?.report('agent-refused', eventSubject(agent), { agent, reason: 'mode', message });
      fleetPage?.refused(error.agent ?? '', error.message);
    },
    introductions,
    loggedIn: (agent) => registration?.loggedIn(agent),
    sessions,
    live: live.streams,
    enrolment: enrolment(settings, program, inputs, loggers),
    pair,
    logger,
    signal,
  }).catch(async (error: unknown) => {
    await (signal.aborted ? Promise.all([auditing, fleetPage?.ended.catch(failed), peerPort?.close()]) : undefined);
    throw error;
  });

  const registering = registration?.run(tokens, signal).catch(failed);
  // Subscribed after the token authority, so that the tokens are issued with the new key.
  if (registration !== undefined) {
    credentials.signingKey?.subscribe(() => registration.renew());
  }

  const redisProxy = flags['disable-redis-proxy']
    ? undefined
    : proxyRedis({
        settings,
        credentials,
        caches,
        owners: { isAgent: (name) => agents.has(name), agentOf: hub.ownerOf },
        live,
        link,
        metrics: engine.liveMetrics.redisProxy,
        logger: loggers.component('redis-proxy'),
        signal,
      }).catch(failed);
  const resourceProxy = flags['enable-resource-proxy']
    ? proxyResources({
        settings,
        credentials,
        caches,
        live,
        tokens,
        connections,
        metrics: engine.liveMetrics.resourceProxy,
        audit: audit?.add,
        logger: loggers.component('resource-proxy'),
        signal,
      }).catch(failed)
    : undefined;
  return {
    port: server.port,
    connectedAgents: () => server.connectedAgents(),
    endAgents(reason) {
      for (const agent of server.connectedAgents()) {
        server.disconnect(agent, reason);
      }
    },
    closeAgents: () => server.close(),
    ended: Promise.all([
      registering,
      redisProxy,
      resourceProxy,
      auditing,
      fleetPage?.ended.catch(failed),
      aborted(signal).then(() => peerPort?.close()),
    ]),
  };
}

/** Undefined unless `--enable-enrolment`. */
function enrolment(
  { flags: { namespace } }: PrincipalSettings,
  { client, signal }: RunningProgram,
  { caches, credentials, agents, blocklist }: PrincipalInputs,
  { root: logger }: Loggers,
): CertificateIssuer | undefined {
  const { authority, clientTrust: trust } = credentials;
  return (
    authority &&
    trust &&
    new CertificateIssuer({
      client,
      secrets: caches.Secrets,
      agents,
      isBlocked: (fingerprint) => blocklist.has(fingerprint),
      namespace,
      authority,
      trust,
      logger,
      signal,
    })
  );
}

/** Undefined unless `--enable-self-cluster-registration`. */
function selfRegistration(
  settings: PrincipalSettings,
  { client }: RunningProgram,
  { caches, credentials, agents }: PrincipalInputs,
  { observerOf }: PrincipalEngine,
  { root: logger }: Loggers,
): SelfRegistration | undefined {
  if (settings.selfRegistration === undefined || credentials.proxyIdentity === undefined) {
    return undefined;
  }
  return new SelfRegistration({
    client,
    secrets: caches.Secrets,
    agents,
    namespace: settings.flags.namespace,
    address: settings.selfRegistration.address,
    identity: credentials.proxyIdentity,
    observer: observerOf('self-registration'),
    logger,
  });
}
