import type { X509Certificate } from 'node:crypto';
import { AuthRequest as AuthRequestMessage, AuthResponse, RefreshTokenRequest } from '../../proto/gen/authapi/auth.ts';
import { PushSummary } from '../../proto/gen/eventstreamapi/eventstream.ts';
import { VersionResponse } from '../../proto/gen/versionapi/version.ts';
import {
  type AgentIdentity,
  AuthError,
  type AuthRequest,
  commonNameOf,
  isAgentMode,
  type PeerInfo,
} from '../auth/index.ts';
import { CallEventStream } from './event-stream.ts';
import { listenGrpc, type ServerConnection } from './grpc/server.ts';
import type { ServerCall } from './grpc/server-call.ts';
import { GrpcError, grpcStatus } from './grpc/status.ts';
import type { Session, WireServer, WireServerOptions } from './server-options.ts';
import { collectUnary, paths } from './services.ts';
import { defaultMaxMessageBytes } from './stream.ts';

const defaultKeepalive = { intervalMs: 20_000, timeoutMs: 10_000 };
const defaultPatience = { requestMs: 15_000, idleMs: 60_000 };
/** Requests of unary calls are small: credentials and tokens. */
const maxCredentialsBytes = 64 * 1024;
/** What strangers call and name, as far as it goes into the log. */
const loggedCharacters = 100;

const certificateHint =
  "It needs a certificate that is in force and of a CA in the principal's bundle (--tls-ca-secret-name, --root-ca-path).";

/** Texts that argocd-agent's principal answers with; agents and people know them. */
const answers = {
  authenticationFailed: 'authentication failed',
  invalidAuthenticationData: 'invalid authentication data',
  versionRequired: 'agent version is required',
} as const;

/**
 * Serves agents: login, version, event streams.
 *
 * The checks and answers are those of argocd-agent's principal, with these differences, which its agents do not notice:
 * agents of any version are taken; a bad client certificate is answered with a reason; a newer stream of an agent ends
 * the older one; a message that is no event is left out instead of ending the stream.
 *
 * @throws when the port cannot be taken or the TLS material is unusable
 */
export async function serveWire(options: WireServerOptions): Promise<WireServer> {
  const server = new Principal(options);
  const listener = await listenGrpc({
    ...(options.address === undefined ? undefined : { address: options.address }),
    port: options.port,
    tls: options.tls,
    keepalive: options.keepalive ?? defaultKeepalive,
    idleMs: (options.patience ?? defaultPatience).idleMs,
    logger: options.logger,
    serve: (call, connection) => server.serve(call, connection),
  });
  return {
    port: listener.port,
    setTls: (tls) => listener.setTls(tls),
    connectedAgents: () => server.connectedAgents(),
    disconnect: (agent, reason) => server.disconnect(agent, reason),
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

class Principal {
  readonly #options: WireServerOptions;
  readonly #sessions = new Map<string, OpenStream>();

  constructor(options: WireServerOptions) {
    this.#options = options;
  }

  connectedAgents(): string[] {
    return [...this.#sessions.keys()];
  }

  disconnect(agent: string, reason: string): boolean {
    const session = this.#sessions.get(agent);
    session?.stream.close(reason);
    return session !== undefined;
  }

  endAll(reason: string): void {
    for (const session of [...this.#sessions.values()]) session.stream.close(reason);
  }

  serve(call: ServerCall, connection: ServerConnection): void {
    const peer = peerOf(call, connection);
    const problem = this.#certificateProblem(connection);
    if (problem !== undefined) {
      const about = { peer: connection.address, call: shortened(call.path), hint: certificateHint };
      this.#options.logger.warn(about, `An agent is turned away: ${problem}`);
      this.#options.refused?.('certificate', peer);
      call.finish(grpcStatus.unauthenticated, `client certificate rejected: ${problem}`);
      return;
    }
    const { requestMs } = this.#options.patience ?? defaultPatience;
    const limits = { maxBytes: maxCredentialsBytes, timeoutMs: requestMs };
    switch (call.path) {
      case paths.authenticate:
        collectUnary(call, limits, (bytes) => this.#authenticate(bytes, peer));
        break;
      case paths.refreshToken:
        collectUnary(call, limits, (bytes) => this.#refreshToken(bytes, peer));
        break;
      case paths.version:
        collectUnary(call, limits, async () => this.#version());
        break;
      case paths.subscribe:
        this.#withIdentity(call, peer, (identity) => this.#subscribe(call, identity, peer, connection));
        break;
      case paths.push:
        this.#withIdentity(call, peer, (identity) => this.#push(call, identity, connection));
        break;
      case paths.ping:
        this.#withIdentity(call, peer, () => call.finish(grpcStatus.unimplemented, 'method Ping not implemented'));
        break;
      default:
        call.finish(grpcStatus.unimplemented, unknownPath(call.path));
    }
  }

  #version(): Uint8Array {
    return VersionResponse.encode({ version: `argocd-agent-${this.#options.version}` }).finish();
  }

  #certificateProblem(connection: ServerConnection): string | undefined {
    const { tls } = this.#options;
    if (tls === 'plaintext' || !tls.requireClientCertificate) return undefined;
    return connection.certificateProblem ?? expiry(connection.certificate);
  }

  async #authenticate(bytes: Uint8Array, peer: PeerInfo): Promise<Uint8Array> {
    const { logger, tokens, version, principalNamespace } = this.#options;
    const message = AuthRequestMessage.decode(bytes);
    const { mode } = message;
    if (!isAgentMode(mode)) throw new GrpcError(grpcStatus.unknown, `unknown agent mode: ${mode.slice(0, 64)}`);
    const request: AuthRequest = { ...message, mode };
    const about = { peer: peer.address, method: shortened(message.method), mode, version: shortened(message.version) };
    let agent: string;
    try {
      agent = await this.#options.authenticate(request, peer);
    } catch (error) {
      throw this.#refusal(error, peer, about, answers.authenticationFailed);
    }
    if (message.version === '') throw new GrpcError(grpcStatus.invalidArgument, answers.versionRequired);
    const identity: AgentIdentity = { agent, mode };
    try {
      await this.#options.authorize?.(identity, peer);
      await this.#options.authenticated?.(identity, request, peer);
    } catch (error) {
      throw this.#refusal(error, peer, { ...about, agent }, answers.authenticationFailed);
    }
    const pair = await tokens.issue(identity);
    logger.info({ ...about, agent }, 'An agent has logged in');
    return AuthResponse.encode({ ...pair, version, principalNamespace }).finish();
  }

  async #refreshToken(bytes: Uint8Array, peer: PeerInfo): Promise<Uint8Array> {
    const { tokens } = this.#options;
    const { refreshToken } = RefreshTokenRequest.decode(bytes);
    try {
      const pair = await tokens.refresh(refreshToken, (identity) => this.#options.authorize?.(identity, peer));
      return AuthResponse.encode(
        AuthResponse.fromPartial({ accessToken: pair.accessToken, refreshToken: pair.refreshToken ?? '' }),
      ).finish();
    } catch (error) {
      throw this.#refusal(error, peer, { peer: peer.address, call: paths.refreshToken }, answers.authenticationFailed);
    }
  }

  #withIdentity(call: ServerCall, peer: PeerInfo, accepted: (identity: AgentIdentity) => void): void {
    this.#identify(call, peer)
      .then((identity) => {
        if (!call.isOver) accepted(identity);
      })
      .catch((error: unknown) => {
        if (!(error instanceof GrpcError)) {
          this.#options.logger.error({ peer: peer.address, call: call.path, err: error }, 'Serving a call failed');
        }
        // Agents of the original hang on a stream that ends with `internal`.
        call.fail(error instanceof GrpcError ? error : new GrpcError(grpcStatus.unavailable, 'internal server error'));
      });
  }

  /** The checks that argocd-agent's principal makes on every call with a token, in its order. */
  async #identify(call: ServerCall, peer: PeerInfo): Promise<AgentIdentity> {
    const { tokens, principalNamespace, matchCertificateSubject } = this.#options;
    try {
      const token = call.header('authorization');
      if (!token) throw new AuthError('bad-token', 'The call carries no token');
      const identity = await tokens.verifyAccess(token);
      const { agent } = identity;
      if (agent === principalNamespace) {
        throw new AuthError('bad-name', `The agent is named like the principal's namespace, ${agent}`, { agent });
      }
      if (matchCertificateSubject && peer.encrypted) {
        const name = peer.certificate === undefined ? undefined : commonNameOf(peer.certificate);
        if (name !== agent) {
          throw new AuthError(
            'wrong-certificate',
            `The token is of agent ${agent}, the client certificate of ${name === undefined ? 'nobody' : `"${name}"`}`,
            { agent },
          );
        }
      }
      await this.#options.authorize?.(identity, peer);
      return identity;
    } catch (error) {
      throw this.#refusal(error, peer, { peer: peer.address, call: call.path }, answers.invalidAuthenticationData);
    }
  }

  /** Tells the log why, and the agent only that. */
  #refusal(error: unknown, peer: PeerInfo, about: object, answer: string): GrpcError {
    if (error instanceof AuthError) {
      const { agent, code, hint } = error;
      const known = {
        ...(agent === undefined ? undefined : { agent }),
        code,
        ...(hint === undefined ? undefined : { hint }),
      };
      this.#options.logger.warn({ ...about, ...known }, `An agent is refused: ${error.message}`);
      this.#options.refused?.(code, peer);
      const reason = error.answer === undefined ? '' : `: ${error.answer}`;
      return new GrpcError(grpcStatus.unauthenticated, `${answer}${reason}`);
    }
    if (error instanceof GrpcError) return error;
    this.#options.logger.error({ ...about, err: error }, 'Checking an agent failed');
    return new GrpcError(grpcStatus.unavailable, 'the principal cannot check credentials now');
  }

  #subscribe(call: ServerCall, identity: AgentIdentity, peer: PeerInfo, connection: ServerConnection): void {
    const { logger, maxMessageBytes = defaultMaxMessageBytes } = this.#options;
    const { agent, mode } = identity;
    const refusal = this.#options.refuse?.(identity);
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
    const session: Session = { agent, mode, peer, stream };
    logger.info(about, 'An agent is connected');
    call.accept();
    try {
      stream.attach(this.#options.subscribe(session));
    } catch (error) {
      logger.error({ ...about, err: error }, 'Taking an agent failed');
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
          if (this.#sessions.get(agent) === entry) this.#sessions.delete(agent);
          entry.push?.finish(grpcStatus.unavailable, 'the event stream has ended');
          logger.info(about, 'An agent is disconnected');
          stream.finished(undefined);
        },
      },
      { maxMessageBytes },
    );
  }

  /**
   * Events of a second, one-way stream; they are received as if they had come over the agent's event stream, which must be
   * open on the same connection. A newer one ends the older one.
   */
  #push(call: ServerCall, { agent }: AgentIdentity, connection: ServerConnection): void {
    const { maxMessageBytes = defaultMaxMessageBytes } = this.#options;
    const session = this.#sessions.get(agent);
    if (session?.connection !== connection) {
      call.finish(grpcStatus.unavailable, 'there is no event stream on this connection');
      return;
    }
    session.push?.finish(grpcStatus.unavailable, 'replaced by a newer one-way stream');
    session.push = call;
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
          if (session.push === call) session.push = undefined;
        },
      },
      { maxMessageBytes },
    );
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

function shortened(text: string): string {
  return text.length <= loggedCharacters ? text : `${text.slice(0, loggedCharacters)}…`;
}

/** A connection may outlive the certificate that opened it. */
function expiry(certificate: X509Certificate | undefined): string | undefined {
  if (certificate === undefined || certificate.validToDate.getTime() > Date.now()) return undefined;
  return `the certificate expired on ${certificate.validTo}`;
}

function peerOf(call: ServerCall, connection: ServerConnection): PeerInfo {
  return {
    address: connection.address,
    encrypted: connection.encrypted,
    ...(connection.certificate === undefined ? undefined : { certificate: connection.certificate }),
    header: (name) => call.header(name),
  };
}

function unknownPath(path: string): string {
  const [, service = '', method = ''] = /^\/([^/]*)\/(.*)$/.exec(path) ?? [];
  const isKnownService = Object.values(paths).some((known) => known.startsWith(`/${service}/`));
  return isKnownService ? `unknown method ${method} for service ${service}` : `unknown service ${service}`;
}
