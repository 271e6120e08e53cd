import type { Logger } from '../../../base/index.ts';
import type { CertifiedPort } from '../../../credentials/index.ts';
import { RefusalLog } from '../../../http/index.ts';
import type { ServerTls } from '../../tls.ts';
import type { KeepaliveTiming } from '../keepalive.ts';
import { grpcStatus } from '../status.ts';
import { clientOf } from './client-of.ts';
import type { ServerConnection } from './connection.ts';
import type { ConnectionLimits } from './connection-rate.ts';
import { createHttp1Server } from './http1-server.ts';
import { type Http2Connection, serveHttp2 } from './http2-server.ts';
import { type ConnectionRefusal, listenForConnections } from './listener.ts';
import { ReceiveBudget } from './receive-budget.ts';
import type { ServerCall } from './server-call.ts';
import { WaitingCalls } from './waiting-calls.ts';

export { clientOf } from './client-of.ts';
export type { ServerConnection } from './connection.ts';

const shutdownGraceMs = 1000;
/** What a call costs at least, in ms of the event loop: its stream, and the check of its token, which goes on later. */
const callMs = 0.3;

/** A listening gRPC server. */
export interface GrpcListener {
  readonly port: number;
  /**
   * Handshakes from now on use the new material; connections stay while their certificates count. Throws when it is unusable.
   */
  setTls(tls: ServerTls): void;
  close(): Promise<void>;
}

/**
 * Serves gRPC over HTTP/2, with TLS or in plaintext with prior knowledge (h2c); on the same port, if asked for, also over
 * HTTP/1.1 and WebSocket. The connection of a client with an invalid certificate has a `certificateProblem`, so that
 * `serve` can answer with the reason.
 */
export async function listenGrpc(options: {
  readonly address?: string;
  readonly port: number;
  readonly tls: ServerTls | 'plaintext';
  /** Whether HTTP/1.1 and WebSocket are served too. */
  readonly http1: boolean;
  readonly keepalive: KeepaliveTiming;
  /** Shortest allowed time between pings of a client; undefined for our own default. */
  readonly minPingIntervalMs: number | undefined;
  /** How long a connection may stay open without a call. */
  readonly idleMs: number;
  readonly limits: ConnectionLimits;
  /** Bytes of incomplete messages that may be in memory, on all connections together. */
  readonly maxReceivingBytes: number;
  /** How long an incomplete message may take. */
  readonly messageMs: number;
  /** Watches the certificates of clients. */
  readonly certified: CertifiedPort;
  readonly logger: Logger;
  /** A connection was not taken. */
  refused(reason: ConnectionRefusal, peer: { readonly address: string }): void;
  /** Called for every call; nothing of its request is read before `ServerCall.listen`. */
  serve(call: ServerCall, connection: ServerConnection): void;
}): Promise<GrpcListener> {
  const { keepalive, idleMs, logger } = options;
  const budget = new ReceiveBudget({ maxBytes: options.maxReceivingBytes, messageMs: options.messageMs });
  const begin = (call: ServerCall, connection: ServerConnection) => {
    const encoding = call.header('grpc-encoding') ?? 'identity';
    if (encoding === 'identity' || encoding === 'gzip') {
      options.serve(call, connection);
    } else {
      call.finish(grpcStatus.unimplemented, `messages with grpc-encoding "${encoding}" cannot be read here`);
    }
  };
  const waiting = new WaitingCalls();
  const refusals = new RefusalLog('agents', logger, { ends: 'a call' });
  // A client may begin a thousand calls at once.
  const serve = (call: ServerCall, connection: ServerConnection) => {
    const client = clientOf(connection);
    const waited = waiting.add(client, call, (reason) => {
      refusals.add(reason, connection.address);
      call.finish(grpcStatus.unavailable, 'too many calls wait for their turn');
    });
    if (waited === undefined) {
      return;
    }
    const inTurn = () => {
      if (!call.isOver && budget.turns.tryAcquire(client, inTurn)) {
        const began = performance.now();
        waited();
        begin(call, connection);
        budget.turns.used(client, 0, Math.max(callMs, performance.now() - began));
      }
    };
    // What is over keeps no memory until its turn.
    call.onOver(() => budget.turns.withdraw(inTurn));
    inTurn();
  };
  const http2Connections = new Set<Http2Connection>();
  let isClosing = false;
  const http1Server = createHttp1Server({
    keepalive,
    idleMs,
    budget,
    logger,
    called: (socket) => listener.called(socket),
    authenticated: (socket) => listener.authenticated(socket),
    serve,
  });
  const listener = await listenForConnections({
    ...options,
    accept(socket, version, certified) {
      if (isClosing) {
        socket.destroy();
        return;
      }
      if (version === 'http/1.1') {
        http1Server.take(socket, certified);
        return;
      }
      const connection = serveHttp2(socket, {
        ...options,
        certified,
        budget,
        called: () => listener.called(socket),
        authenticated: () => listener.authenticated(socket),
        serve,
      });
      http2Connections.add(connection);
      socket.once('close', () => http2Connections.delete(connection));
    },
  });
  return {
    port: listener.port,
    setTls: (tls) => listener.setTls(tls),
    async close() {
      isClosing = true;
      const closed = listener.close();
      for (const connection of http2Connections) {
        connection.close();
      }
      http1Server.closeIdle();
      const force = setTimeout(() => listener.destroyAll(), shutdownGraceMs);
      await closed;
      clearTimeout(force);
    },
  };
}
