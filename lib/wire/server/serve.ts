import { PushSummary } from '../../../proto/gen/eventstreamapi/eventstream.ts';
import { VersionResponse } from '../../../proto/gen/versionapi/version.ts';
import { type AgentIdentity, AuthError, type ClientInfo } from '../../auth/index.ts';
import { type CertificateProblem, OpenConnections } from '../../credentials/index.ts';
import { parseTraceparent } from '../../tracing/index.ts';
import { defaultConnectionLimits } from '../grpc/server/connection-rate.ts';
import { peerOf } from '../grpc/server/peer-of.ts';
import { clientOf, listenGrpc, type ServerConnection } from '../grpc/server/server.ts';
import type { ServerCall } from '../grpc/server/server-call.ts';
import { GrpcError, grpcStatus } from '../grpc/status.ts';
import { isReplicationPath, serveReplication } from '../ha/replication-service.ts';
import { collectUnary, paths } from '../methods.ts';
import { callSpan, observeCall } from '../observe.ts';
import { CallEventStream } from '../streams/event-stream.ts';
import { LogStreamResponse, serveLiveStream, terminalStreamCodec } from '../streams/live-streams.ts';
import { logStreamCodec } from '../streams/log-stream-data.ts';
import { defaultMaxMessageBytes } from '../streams/stream.ts';
import { AgentRate } from './agent-rate.ts';
import { AuthCalls, shortened } from './auth-calls.ts';
import { OpenCalls } from './open-calls.ts';
import type { Session, WireServer, WireServerOptions } from './server-options.ts';

const defaultKeepalive = { intervalMs: 15_000, timeoutMs: 10_000 };
const defaultTimeouts = { requestMs: 15_000, idleMs: 60_000, messageMs: 300_000 };
/** Room for incomplete messages of many agents at a time. */
const minReceivingBytes = 128 * 1024 * 1024;
/** Calls with one request and one answer. */
const requestPaths: ReadonlySet<string> = new Set([
  paths.authenticate,
  paths.refreshToken,
  paths.version,
  paths.enroll,
  paths.renew,
]);
/** Requests of unary calls are small: credentials and tokens. */
const maxCredentialsBytes = 64 * 1024;

const certificateHint =
  "It needs a certificate that is in force and of a CA in the principal's bundle (--tls-ca-secret-name, --root-ca-path).";

/**
 * Serves agents: login, version, event streams, over HTTP/2 and, if asked for, over HTTP/1.1 and WebSocket.
 *
 * The checks and answers are those of argocd-agent's principal, with these differences, which its agents do not notice:
 * agents of any version are accepted; a bad client certificate is answered with a reason; a newer stream of an agent ends
 * the older one; an invalid message is skipped instead of ending the stream.
 *
 * A connection ends as soon as its client certificate does not count any more: it has expired, it is blocked, or its authority
 * is not trusted. With argocd-agent's principal a stream may outlive its certificate; its agents come back from either.
 *
 * @throws when the port cannot be used or the TLS material is unusable
 */
export async function serveWire(options: WireServerOptions): Promise<WireServer> {
  const connections = options.connections ?? new OpenConnections({ logger: options.logger });
  const server = new AgentService({ ...options, connections });
  const timeouts = { ...defaultTimeouts, ...options.timeouts };
  const listener = await listenGrpc({
    ...(options.address === undefined ? undefined : { address: options.address }),
    port: options.port,
    tls: options.tls,
    http1: options.webSocket ?? false,
    keepalive: options.keepalive ?? defaultKeepalive,
    minPingIntervalMs: options.minPingIntervalMs,
    limits: { ...defaultConnectionLimits, ...options.limits },
    maxReceivingBytes:
      options.maxReceivingBytes ?? Math.max(minReceivingBytes, 2 * (options.maxMessageBytes ?? defaultMaxMessageBytes)),
    messageMs: timeouts.messageMs,
    idleMs: timeouts.idleMs,
    certified: connections.port('agents'),
    logger: options.logger,
    refused: (reason, peer) => options.refused?.(reason, peer),
    serve: (call, connection) => server.serve(call, connection),
  });
  return {
    port: listener.port,
    setTls: (tls) => listener.setTls(tls),
    connectedAgents: () => server.connectedAgents(),
    disconnect: (agent, reason) => server.disconnect(agent, reason),
    renewLogins: (withinMs) => server.renewLogins(withinMs),
    async close() {
      server.endAll('the principal is shutting down');
      await listener.close();
    },
  };
}

/** The newest stream of an agent. */
interface OpenStream {
  readonly stream: CallEventStream;
  readonly connection: ServerConnection;
  /** A one-way stream beside it. */
  push: ServerCall | undefined;
}

/** The methods that agents call, and the streams that they have open. */
class AgentService {
  readonly #options: WireServerOptions & { readonly connections: OpenConnections };
  readonly #authCalls: AuthCalls;
  readonly #sessions = new Map<string, OpenStream>();
  readonly #streams = new AgentRate();
  readonly #open = new OpenCalls();

  constructor(options: WireServerOptions & { readonly connections: OpenConnections }) {
    this.#options = options;
    this.#authCalls = new AuthCalls(options);
  }

  connectedAgents(): string[] {
    return [...this.#sessions.keys()];
  }

  disconnect(agent: string, reason: string): boolean {
    const session = this.#sessions.get(agent);
    session?.stream.close(reason);
    return session !== undefined;
  }

  renewLogins(withinMs: number): void {
    for (const { stream } of this.#sessions.values()) {
      setTimeout(() => stream.close('the principal wants you to log in anew'), Math.random() * withinMs).unref();
    }
  }

  endAll(reason: string): void {
    for (const session of [...this.#sessions.values()]) {
      session.stream.close(reason);
    }
  }

  serve(call: ServerCall, connection: ServerConnection): void {
    const { called, tracer } = this.#options;
    if (called !== undefined || tracer !== undefined) {
      const parent = tracer && parseTraceparent(call.header('traceparent'), call.header('tracestate'));
      observeCall(call, call.path, called, callSpan(tracer, call.path, 'server', parent));
    }
    const peer = peerOf(call, connection);
    const { enrolment } = this.#options;
    const mayLackCertificate = call.path === paths.enroll && enrolment !== undefined;
    const problem = this.#certificateProblem(connection);
    if (problem !== undefined && !(mayLackCertificate && problem.code === 'certificate')) {
      const { code, reason } = problem;
      const hint = code === 'revoked' ? new AuthError(code, reason).hint : certificateHint;
      const about = { peer: connection.address, call: shortened(call.path), hint };
      this.#options.logger.warn(about, `An agent is turned away: ${reason}`);
      this.#options.refused?.(code, peer);
      call.finish(grpcStatus.unauthenticated, `client certificate rejected: ${reason}`);
      return;
    }
    const { requestMs } = { ...defaultTimeouts, ...this.#options.timeouts };
    const limits = { maxBytes: maxCredentialsBytes, timeoutMs: requestMs, peer: clientOf(connection) };
    if (requestPaths.has(call.path) && !this.#open.admitRequest(call, connection)) {
      call.finish(grpcStatus.unavailable, 'too many requests at once on this connection');
      return;
    }
    switch (call.path) {
      case paths.authenticate:
        collectUnary(call, limits, async (bytes) => {
          const { agent, answer } = await this.#authCalls.authenticate(bytes, peer);
          this.#admit(agent, call, connection);
          return answer;
        });
        break;
      case paths.refreshToken:
        collectUnary(call, limits, (bytes) => this.#authCalls.refreshToken(bytes, peer));
        break;
      case paths.version:
        collectUnary(call, limits, async () => this.#version());
        break;
      case paths.enroll:
      case paths.renew:
        if (enrolment === undefined) {
          call.finish(grpcStatus.unimplemented, unknownPath(call.path));
        } else if (call.path === paths.enroll) {
          collectUnary(call, limits, (bytes) => this.#authCalls.enroll(bytes, enrolment, peer));
        } else {
          collectUnary(call, limits, (bytes) => this.#authCalls.renewCertificate(call, bytes, enrolment, peer));
        }
        break;
      case paths.subscribe:
        this.#withIdentity(call, peer, connection, (identity) => this.#subscribe(call, identity, peer, connection));
        break;
      case paths.push:
        this.#withIdentity(call, peer, connection, (identity) => this.#push(call, identity, connection));
        break;
      case paths.ping:
        this.#withIdentity(call, peer, connection, () => {
          call.finish(grpcStatus.unimplemented, 'method Ping not implemented');
        });
        break;
      case paths.streamLogs:
      case paths.streamTerminal:
        this.#withIdentity(call, peer, connection, ({ agent }) => this.#serveLive(call, agent));
        break;
      default:
        this.#serveOther(call, peer, connection);
    }
  }

  #serveOther(call: ServerCall, peer: ClientInfo, connection: ServerConnection): void {
    const { replication, logger } = this.#options;
    if (replication === undefined || !isReplicationPath(call.path)) {
      call.finish(grpcStatus.unimplemented, unknownPath(call.path));
      return;
    }
    serveReplication(call, replication, { peer, connection, logger, accepted: () => connection.authenticated() });
  }

  #version(): Uint8Array {
    return VersionResponse.encode({ version: `argocd-agent-${this.#options.version}` }).finish();
  }

  #certificateProblem(connection: ServerConnection): CertificateProblem | undefined {
    const { tls } = this.#options;
    const isRequired = tls !== 'plaintext' && tls.requireClientCertificate === true;
    return isRequired || connection.certificate !== undefined ? connection.certificateProblem() : undefined;
  }

  #withIdentity(
    call: ServerCall,
    peer: ClientInfo,
    connection: ServerConnection,
    accepted: (identity: AgentIdentity) => void,
  ): void {
    this.#authCalls
      .identify(call, peer)
      .then((identity) => {
        this.#admit(identity.agent, call, connection);
        if (!call.isOver) {
          accepted(identity);
        }
      })
      .catch((error: unknown) => {
        if (!(error instanceof GrpcError)) {
          this.#options.logger.error({ peer: peer.address, call: call.path, error }, 'Serving a call failed');
        }
        // Agents of the original hang on a stream that ends with `internal`.
        call.fail(error instanceof GrpcError ? error : new GrpcError(grpcStatus.unavailable, 'internal server error'));
      });
  }

  /** @throws GrpcError when the agent has too much open */
  #admit(agent: string, call: ServerCall, connection: ServerConnection): void {
    const refusal = this.#open.admit(agent, call, connection);
    if (refusal !== undefined) {
      const peer = connection.address;
      this.#options.logger.warn({ agent, peer, call: call.path }, `A call of an agent is refused: ${refusal}`);
      throw new GrpcError(grpcStatus.unavailable, refusal);
    }
    const end = (reason: string) => call.finish(grpcStatus.unavailable, reason);
    call.onOver(this.#options.connections.used(agent, end, call.header('authorization')));
    connection.authenticated();
  }

  #subscribe(call: ServerCall, identity: AgentIdentity, peer: ClientInfo, connection: ServerConnection): void {
    const { logger } = this.#options;
    const maxMessageBytes = this.#maxMessageBytes(call);
    const { agent, mode } = identity;
    const refusal = this.#streams.tryTake(agent)
      ? this.#options.refuse?.(identity)
      : `It opens a stream more than ${AgentRate.text}`;
    if (refusal !== undefined) {
      logger.warn({ agent, mode, peer: peer.address }, `An agent is refused: ${refusal}`);
      call.finish(grpcStatus.unavailable, refusal);
      return;
    }
    this.#sessions.get(agent)?.stream.close('replaced by a newer connection of this agent');

    const about = { agent, mode, peer: peer.address };
    const stream = new CallEventStream(call, {
      maxMessageBytes,
      logger,
      about: { agent },
      // Agents of the original keep reading from a stream that ends with another code than these few.
      end: (reason) => call.finish(grpcStatus.unavailable, reason ?? 'the principal ended the stream'),
    });
    const entry: OpenStream = { stream, connection, push: undefined };
    this.#sessions.set(agent, entry);
    const session: Session = { ...identity, peer, stream };
    logger.info(about, 'An agent is connected');
    call.accept();
    try {
      stream.attach(this.#options.subscribe(session));
    } catch (error) {
      logger.error({ ...about, error }, 'Taking an agent failed');
      this.#sessions.delete(agent);
      call.finish(grpcStatus.unavailable, 'the principal cannot take this agent now');
      return;
    }
    call.listen(
      {
        message: (bytes) => stream.received(bytes),
        unreadable: (error) => this.#refuseMessage(call, agent, error),
        halfClose: () => call.finish(),
        end: () => {
          if (this.#sessions.get(agent) === entry) {
            this.#sessions.delete(agent);
          }
          entry.push?.finish(grpcStatus.unavailable, 'the event stream has ended');
          logger.info(about, 'An agent is disconnected');
          stream.finished(undefined);
        },
      },
      { maxMessageBytes, peer: agent },
    );
  }

  /**
   * Events of a second, one-way stream; they are received as if they had come over the agent's event stream, and wait with it. It must be
   * open on the same connection (or, where each call has one of its own, be the same client's). A newer one ends the older one.
   */
  #push(call: ServerCall, { agent }: AgentIdentity, connection: ServerConnection): void {
    const maxMessageBytes = this.#maxMessageBytes(call);
    const session = this.#sessions.get(agent);
    if (session === undefined || !isSameClient(session.connection, connection)) {
      call.finish(grpcStatus.unavailable, 'there is no event stream on this connection');
      return;
    }
    session.push?.finish(grpcStatus.unavailable, 'replaced by a newer one-way stream');
    session.push = call;
    call.onOver(session.stream.receiveFrom(call));
    let received = 0;
    call.listen(
      {
        message: (bytes) => {
          received++;
          session.stream.received(bytes);
        },
        unreadable: (error) => this.#refuseMessage(call, agent, error),
        halfClose: () => {
          call.send(PushSummary.encode(PushSummary.fromPartial({ received })).finish());
          call.finish();
        },
        end: () => {
          if (session.push === call) {
            session.push = undefined;
          }
        },
      },
      { maxMessageBytes, peer: agent },
    );
  }

  #serveLive(call: ServerCall, agent: string): void {
    const { live, logger } = this.#options;
    if (live === undefined) {
      // No request of ours makes an agent call these; the refusal does not disturb it.
      logger.info({ agent, call: call.path }, 'An agent offers live data that nobody asked for');
      call.finish(grpcStatus.unimplemented, 'live logs and terminals are not served here');
      return;
    }
    if (call.path === paths.streamLogs) {
      const codecs = { incoming: logStreamCodec, outgoing: LogStreamResponse };
      serveLiveStream(call, agent, codecs, logger, (stream) => live.logs(stream));
    } else {
      const codecs = { incoming: terminalStreamCodec, outgoing: terminalStreamCodec };
      serveLiveStream(call, agent, codecs, logger, (stream) => live.terminal(stream));
    }
  }

  #maxMessageBytes(call: ServerCall): number {
    return Math.min(this.#options.maxMessageBytes ?? defaultMaxMessageBytes, call.maxMessageBytes);
  }

  /** Ends a stream of events after a message that cannot be read, with a status that agents of the original come back from. */
  #refuseMessage(call: ServerCall, agent: string, error: GrpcError): void {
    const hint =
      error.code === grpcStatus.resourceExhausted
        ? { hint: 'Raise --grpc-max-message-size on both sides.' }
        : undefined;
    this.#options.logger.warn({ agent, ...hint }, `The stream of an agent ends: ${error.details}`);
    call.finish(grpcStatus.unavailable, error.details);
  }
}

function isSameClient(one: ServerConnection, other: ServerConnection): boolean {
  if (one.isShared || other.isShared) {
    return one === other;
  }
  return one.certificate?.fingerprint256 === other.certificate?.fingerprint256;
}

function unknownPath(path: string): string {
  const [, service = '', method = ''] = /^\/([^/]*)\/(.*)$/.exec(path) ?? [];
  const isKnownService = Object.values(paths).some((known) => known.startsWith(`/${service}/`));
  return isKnownService ? `unknown method ${method} for service ${service}` : `unknown service ${service}`;
}
