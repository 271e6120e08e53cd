import { decodeJwt } from 'jose';
import type { AgentSync } from '../../lib/argocd/index.ts';
import { loginEnd, svidAudience } from '../../lib/auth/index.ts';
import { every, hostPort, type Logger, splitHostPort, withoutBrackets } from '../../lib/base/index.ts';
import {
  adaptStream,
  ConnectionObserver,
  messageLog,
  refusalOf,
  resourceTypeOf,
  UnservedEvents,
} from '../../lib/bridge/index.ts';
import { type Detail, FatalError, versionInfo } from '../../lib/ops/index.ts';
import { fetchJwtSvid, type X509Source } from '../../lib/spiffe/index.ts';
import type { Tracer } from '../../lib/tracing/index.ts';
import {
  agentSource,
  type ClientTls,
  type EventStream,
  eventTypes,
  heartbeatEvent,
  type LoginCredentials,
  type PrincipalInfo,
  runWireClient,
  type SessionCalls,
  type SessionHandlers,
  targets,
  WireError,
} from '../../lib/wire/index.ts';
import type { CertificateKeeper } from '../certificate-keeper.ts';
import type { AgentCredentials } from '../credentials.ts';
import type { LiveRequests } from '../live/requests.ts';
import type { AgentMetrics } from '../metrics.ts';
import { type AgentSettings, serverAddresses } from '../settings.ts';
import type { ClusterStatistics } from './cluster-statistics.ts';
import type { OwnCluster } from './own-cluster.ts';
import { ReportPace } from './report-pace.ts';

/** Options of the agent's connection. */
export interface ConnectionContext {
  readonly settings: AgentSettings;
  readonly credentials: AgentCredentials;
  readonly sync: AgentSync;
  readonly statistics: ClusterStatistics;
  readonly cluster: Pick<OwnCluster, 'dropCache'>;
  /** Undefined when somebody else brings the agent's certificate. */
  readonly keeper: CertificateKeeper | undefined;
  readonly live: LiveRequests;
  readonly metrics: AgentMetrics;
  readonly tracer: Tracer | undefined;
  readonly detail: Detail;
  readonly logger: Logger;
  /** For each event that is received or sent. */
  readonly eventLogger: Logger;
  /** For reports that are delayed. */
  readonly bufferLogger: Logger;
  readonly signal: AbortSignal;
  /** Called with the reason of a missing connection, and with undefined once there is one. */
  state(problem: string | undefined): void;
}

/** Keeps the agent connected to the principal until aborted, with everything that uses the connection. */
export function keepConnected(context: ConnectionContext): Promise<void> {
  const { settings, credentials, metrics, logger, signal } = context;
  const { flags } = settings;
  context.state('not connected to the principal');
  return runWireClient({
    ...connectionSettings(settings),
    tls: () => clientTls(settings, credentials),
    credentials: () => loginCredentials(settings, signal),
    mode: settings.mode,
    version: versionInfo().version,
    agentNamespace: flags.namespace,
    ...(flags['keep-alive-ping-interval'] > 0 ? { keepalivePingIntervalMs: flags['keep-alive-ping-interval'] } : {}),
    maxMessageBytes: flags['grpc-max-message-size'],
    called: metrics.called,
    tracer: context.tracer,
    logger,
    signal,
    onConnected: (stream, principal, calls) => onConnected(context, stream, principal, calls),
    onDisconnected: (error) => {
      context.state(`not connected to the principal: ${error.message}`);
      if (error.code === 'unauthenticated' || error.code === 'certificate-rejected') {
        metrics.authFailed();
      }
    },
  });
}

function onConnected(
  context: ConnectionContext,
  stream: EventStream,
  { agent, principalNamespace }: PrincipalInfo,
  calls: SessionCalls,
): SessionHandlers {
  const { sync, statistics, live, metrics } = context;
  const observer = new ConnectionObserver({
    counter: metrics,
    times: {
      arrived: (type, seconds) => metrics.arrived(type, seconds),
      done: (type, seconds, outcome) => metrics.processed(type, outcome, seconds),
    },
    tracer: context.tracer,
    attributes: { 'argocd.agent.mode': context.settings.mode },
  });
  const logDetail = messageLog(context.detail, context.logger);
  const pace = new ReportPace(context.settings.flags['buffer-informer-event-interval'], context.bufferLogger);
  const unserved = new UnservedEvents(context.eventLogger);
  const adapter = adaptStream({
    stream,
    source: agentSource,
    logger: context.eventLogger,
    listener: {
      receive: (message) => {
        logDetail('received', message);
        sync.receive(message);
      },
      unreadable: (message) => sync.unreadable(message),
      acknowledged: (ids) => pace.acknowledged(ids, () => sync.acknowledged(ids)),
      writable: () => sync.writable(),
    },
    observer,
    messageSent: (message) => {
      pace.sent(message);
      logDetail('sent', message);
    },
    other: (event) => {
      if (live.take(event)) {
        return;
      }
      if (event.target === targets.clusterCacheInfoUpdate && event.type === eventTypes.clusterCacheInvalidate) {
        void context.cluster.dropCache(context.signal);
        return;
      }
      unserved.report(event);
      const answer = refusalOf(event, agentSource);
      if (answer !== undefined) {
        stream.send(answer);
      }
      observer.failed(event);
    },
    unreadable: (event) => observer.failed(event),
    unsendable: (event) => metrics.unsendable(event.type, resourceTypeOf(event)),
  });
  metrics.connected();
  context.state(undefined);
  sync.connected(adapter.connection, { agent, principalNamespace });
  context.keeper?.connected(calls);
  statistics.connected((event) => void stream.send(event));
  live.connected({
    live: calls,
    send: (event) => {
      metrics.eventSent();
      stream.send(event);
    },
  });
  const heartbeat = startHeartbeat(stream, context.settings.flags['heartbeat-interval']);
  return {
    event: adapter.event,
    closed: () => {
      heartbeat?.();
      pace.close();
      observer.close();
      metrics.disconnected();
      context.state('not connected to the principal');
      context.keeper?.disconnected();
      statistics.disconnected();
      live.disconnected();
      sync.disconnected(adapter.connection);
    },
  };
}

/** Sends heartbeats, the first after one interval. */
function startHeartbeat(stream: EventStream, intervalMs: number): (() => void) | undefined {
  if (intervalMs <= 0) {
    return undefined;
  }
  return every(intervalMs, () => stream.send(heartbeatEvent({ source: agentSource })));
}

/** @throws WireError when the SPIFFE Workload API gives no JWT-SVID */
async function loginCredentials({ credentials, spire }: AgentSettings, signal: AbortSignal): Promise<LoginCredentials> {
  if (credentials.method !== 'spiffe-jwt' || spire === undefined) {
    return credentials;
  }
  try {
    const token = await fetchJwtSvid(spire.endpoint, { audience: svidAudience, signal });
    const { exp = 0 } = decodeJwt(token);
    return { ...credentials, credentials: { token }, until: loginEnd(exp, Date.now() / 1_000) * 1_000 };
  } catch (cause) {
    throw new WireError('unauthenticated', `The agent cannot log in: ${(cause as Error).message}`, { cause });
  }
}

/** How the agent reaches the principal, besides its certificate. */
export function connectionSettings({ flags }: Pick<AgentSettings, 'flags'>) {
  const given = serverAddresses(flags);
  const [server = '', ...otherServers] = given.map((address) => {
    // Only in a list: a single address is taken as argocd-agent's agent takes it.
    const own = given.length > 1 ? splitHostPort(address) : undefined;
    return own === undefined ? hostPort(withoutBrackets(address), flags['server-port']) : hostPort(own.host, own.port);
  });
  return {
    server,
    otherServers,
    compression: flags['enable-compression'],
    transport: flags['enable-websocket'] ? ('websocket' as const) : ('grpc' as const),
  };
}

/** @param expected empty: any SPIFFE ID that is proved */
function principalCheck(workload: X509Source, expected: string): NonNullable<ClientTls['checkServer']> {
  return (chain) => {
    const id = workload.idOf(chain);
    if (expected !== '' && id !== expected) {
      throw new Error(`it is that of ${id}, and --spire-principal-id is ${expected}`);
    }
  };
}

function clientTls({ flags, tls }: AgentSettings, credentials: AgentCredentials): ClientTls | 'plaintext' {
  if (tls === 'plaintext') {
    return 'plaintext';
  }
  const { clientCertificate, workload } = credentials;
  const pair = clientCertificate?.value;
  if (clientCertificate !== undefined && pair === undefined) {
    throw new FatalError('the client certificate is gone');
  }
  const ca = credentials.trust?.value;
  return {
    ...pair,
    ...(ca === undefined ? {} : { ca }),
    ...(workload === undefined ? {} : { checkServer: principalCheck(workload, flags['spire-principal-id']) }),
    insecure: !tls.verify,
    ...tls.settings,
  };
}
