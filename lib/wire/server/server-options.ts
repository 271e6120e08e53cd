import type { CertificateResponse } from '../../../proto/gen/enrolmentapi/enrolment.ts';
import type { AgentIdentity, AuthErrorCode, AuthRequest, ClientInfo, Login, TokenAuthority } from '../../auth/index.ts';
import type { Logger } from '../../base/index.ts';
import type { OpenConnections } from '../../credentials/index.ts';
import type { Tracer } from '../../tracing/index.ts';
import type { ConnectionLimits } from '../grpc/server/connection-rate.ts';
import type { ConnectionRefusal } from '../grpc/server/listener.ts';
import type { ReplicationService } from '../ha/replication-service.ts';
import type { ObservedCall } from '../observe.ts';
import type { LiveStreamService } from '../streams/live-streams.ts';
import type { EventStream, SessionHandlers } from '../streams/stream.ts';
import type { ServerTls } from '../tls.ts';

/** An agent on a stream of its own. */
export interface Session extends AgentIdentity {
  readonly peer: ClientInfo;
  readonly stream: EventStream;
}

/**
 * Why a client was refused: the code of an AuthError, `certificate` for an unusable client certificate, or a limit of
 * connections.
 */
export type RefusalReason = AuthErrorCode | 'certificate' | ConnectionRefusal;

/** Gives certificates to agents. */
export interface CertificateService {
  enroll(token: string, request: string): Promise<CertificateResponse>;
  renew(agent: string, request: string): Promise<CertificateResponse>;
}

/** The configuration and callbacks of a server of the protocol. */
export interface WireServerOptions {
  /** Address to listen on. Default: all. */
  readonly address?: string;
  /** 0 takes a free port. */
  readonly port: number;
  readonly tls: ServerTls | 'plaintext';
  /** The principal's version: bare in the answer to `Authenticate`, as `argocd-agent-<version>` from `Version`. */
  readonly version: string;
  readonly principalNamespace: string;
  readonly tokens: TokenAuthority;
  /** Throws AuthError to refuse; agents learn only that authentication failed. */
  authenticate(request: AuthRequest, peer: ClientInfo): Promise<Login>;
  /** Called after an agent got tokens, with its description of itself. */
  authenticated?(identity: AgentIdentity, request: AuthRequest, peer: ClientInfo): void | Promise<void>;
  /** A last check of every call with a valid token and of every token refresh (mode, removed agent). Throws AuthError. */
  authorize?(identity: AgentIdentity, peer: ClientInfo): void | Promise<void>;
  /** Called when a client was refused. */
  refused?(reason: RefusalReason, peer: Pick<ClientInfo, 'address'>): void;
  /** Called when a call begins, passes a message and has ended; for metrics. */
  called?(call: ObservedCall): void;
  /** Traces calls, under the spans of the clients that name theirs. Default: none are traced. */
  readonly tracer?: Tracer | undefined;
  /** Ends connections, and what agents have open, when what proved them does not count any more. Default: one of its own. */
  readonly connections?: OpenConnections | undefined;
  /** Whether the certificate's common name must be the agent's name. Not checked on plaintext connections. */
  readonly matchCertificateSubject?: boolean;
  /** Why no agent may connect now, undefined if they may. Agents see `Unavailable` and try again. */
  refuse?(identity: AgentIdentity): string | undefined;
  /** A stream was opened; an older one of the same agent has been closed just before. */
  subscribe(session: Session): SessionHandlers;
  /**
   * Gives certificates to agents, with a token or to renew theirs (PEM in, PEM out); throws AuthError to refuse. `enroll` is
   * called by clients without a certificate. Default: the methods are not implemented, as in argocd-agent.
   */
  readonly enrolment?: CertificateService | undefined;
  /** Answers a second principal that follows this one. Default: the methods are not implemented. */
  readonly replication?: ReplicationService | undefined;
  /** Takes the live streams that agents open. Default: they are refused. */
  readonly live?: LiveStreamService | undefined;
  /** Default 200 MiB. */
  readonly maxMessageBytes?: number;
  /**
   * Bytes of incomplete messages that may be in memory, on all connections together; above it, a call of the peer that holds
   * most is ended. Default: 128 MiB, and at least two messages of the greatest size.
   */
  readonly maxReceivingBytes?: number;
  /** When a silent connection is probed. Default after 15 s; a peer that is silent for another 10 s is cut off. */
  readonly keepalive?: { readonly intervalMs: number; readonly timeoutMs: number };
  /**
   * How long the server waits: `requestMs` for the request of a login or renewal (default 15 s), `idleMs` for the next call on
   * a connection without one (default 60 s), `messageMs` for the rest of a message that has begun (default 5 minutes).
   */
  readonly timeouts?: { readonly requestMs?: number; readonly idleMs?: number; readonly messageMs?: number };
  /** Whether HTTP/1.1 and WebSocket are served on the same port (`--enable-websocket`). */
  readonly webSocket?: boolean;
  /**
   * Shortest allowed time between HTTP/2 pings of an agent (`--keepalive-min-interval`): the third ping that comes earlier
   * without anything sent in between ends its connection. Default: only floods are stopped (above one a second).
   */
  readonly minPingIntervalMs?: number;
  /** How many connections are accepted. Defaults: see `ConnectionLimits`. */
  readonly limits?: Partial<ConnectionLimits>;
  readonly logger: Logger;
}

/** A running server. */
export interface WireServer {
  readonly port: number;
  /**
   * New connections use this material from now on; open ones stay while their certificates count. Throws when it is unusable, and
   * keeps the old.
   */
  setTls(tls: ServerTls): void;
  /** The agents that have a stream now. */
  connectedAgents(): string[];
  /** Closes the stream of one agent, which will come back if it may. Returns whether there was one. */
  disconnect(agent: string, reason: string): boolean;
  /**
   * Makes all connected agents log in again, spread over `withinMs`: for a new token key (`TokenAuthority.rotate`).
   * They reconnect at once and miss nothing.
   */
  renewLogins(withinMs: number): void;
  /** Ends all streams in an orderly way (agents reconnect to the next principal), then all connections. */
  close(): Promise<void>;
}
