import type { CertificateResponse } from '../../../proto/gen/enrolmentapi/enrolment.ts';
import type { AgentMode } from '../../auth/index.ts';
import type { Logger } from '../../base/index.ts';
import type { Tracer } from '../../tracing/index.ts';
import type { WireError } from '../errors.ts';
import type { ObservedCall } from '../observe.ts';
import type { LiveCalls } from '../streams/live-streams.ts';
import type { EventStream, SessionHandlers } from '../streams/stream.ts';
import type { ClientTls } from '../tls.ts';

/** The calls that an agent can make while its event stream is open. */
export interface SessionCalls extends LiveCalls {
  /**
   * Requests a certificate in place of the agent's own.
   * @param request PKCS #10, PEM
   * @throws WireError that says why there is none
   */
  renewCertificate(request: string): Promise<CertificateResponse>;
}

/** How an agent proves who it is: the method's name on the wire, and what goes with it. */
export interface LoginCredentials {
  readonly method: string;
  readonly credentials: Readonly<Record<string, string>>;
  /** When a login with them ends, in ms of Unix time. Default: when its connection does. */
  readonly until?: number;
}

/** Options of an agent's connection. */
export interface WireClientOptions {
  /** `host:port` of the principal. */
  readonly server: string;
  /** `host:port` of other principals, tried in this order when there is no connection to the ones before. */
  readonly otherServers?: readonly string[];
  /** Asked for before every connection, so renewed certificates are taken up by themselves. */
  tls(): ClientTls | 'plaintext';
  /** Asked for before every login. It throws WireError when there are none now. */
  credentials(): LoginCredentials | Promise<LoginCredentials>;
  readonly mode: AgentMode;
  /** This agent's version. A principal that requires its own version gets that one (see `runWireClient`). */
  readonly version: string;
  readonly agentNamespace: string;
  /** The stream is open. Called once per connection; the handlers' `closed` ends it. */
  onConnected(stream: EventStream, peer: PrincipalInfo, calls: SessionCalls): SessionHandlers;
  /** An attempt failed, or a stream ended; the next attempt follows in `retryInMs`. Already logged. */
  onDisconnected?(error: WireError, retryInMs: number): void;
  /** Called with each gRPC call at its start, at each message and at its end; for metrics. */
  called?(call: ObservedCall): void;
  /** Traces gRPC calls. Default: none are traced. */
  readonly tracer?: Tracer | undefined;
  readonly signal: AbortSignal;
  /** Default 200 ms to 10 s. Each wait is random between half and the whole of the current value, which doubles. */
  readonly backoff?: { readonly initialMs: number; readonly maxMs: number };
  /** Interval of HTTP/2 pings, at least 10 s (`--keep-alive-ping-interval`). Default: pings only on suspicion. */
  readonly keepalivePingIntervalMs?: number;
  /** gzip for everything that is sent (`--enable-compression`). */
  readonly compression?: boolean;
  /** Default 200 MiB; 64 MiB over WebSocket. */
  readonly maxMessageBytes?: number;
  /** `websocket` for networks that let only HTTP/1.1 through (`--enable-websocket`). Default `grpc`. */
  readonly transport?: 'grpc' | 'websocket';
  /** The variables that may name a proxy (`HTTPS_PROXY`, `NO_PROXY`). Default: those of the process. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly logger: Logger;
}

/** The principal's description of itself. */
export interface PrincipalInfo {
  /** Empty if unknown. */
  readonly principalNamespace: string;
  /** Bare version string, empty if unknown. */
  readonly version: string;
  /** Who we are to the principal. */
  readonly agent: string;
}
