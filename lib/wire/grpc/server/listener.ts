import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from 'node:tls';
import { type Logger, networkOf, remoteAddressOf } from '../../../base/index.ts';
import { type CertifiedPort, certifySockets, type SocketCertificate } from '../../../credentials/index.ts';
import {
  ConnectionTurns,
  limitHandshakeBytes,
  NetworkShares,
  RefusalLog,
  refuseRenegotiation,
} from '../../../http/index.ts';
import type { ServerTls } from '../../tls.ts';
import { type ConnectionLimits, ConnectionRate } from './connection-rate.ts';
import { logTlsFailures } from './tls-failures.ts';
import { secureContextOptions, useTls } from './tls-options.ts';

/** The HTTP version of a client. */
export type HttpVersion = 'h2' | 'http/1.1';

/** Why a connection was not taken. */
export type ConnectionRefusal = 'too-many-connections' | 'too-many-strangers' | 'too-many-from-address';

/** The listening socket, and every connection until its first request. */
export interface ConnectionListener {
  readonly port: number;
  setTls(tls: ServerTls): void;
  /** A call has come in on this connection. */
  called(socket: Socket): void;
  /** The client of this connection is authenticated. */
  authenticated(socket: Socket): void;
  /** Takes no more connections; resolves when all have ended. */
  close(): Promise<void>;
  /** Ends all connections at once. */
  destroyAll(): void;
}

/** The longest TLS handshake; `idleMs` may shorten it. */
const maxHandshakeMs = 60_000;
/** An unauthenticated connection is kept at least this long before it may have to make room for one whose network has no fewer. */
const unauthenticatedGraceMs = 5000;
/** The first bytes of every HTTP/2 client. */
const http2Preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
/** Refused connections are logged at most this often. */
const refusalLogMs = 10_000;

interface OpenConnection {
  readonly peer: string;
  readonly network: string;
  readonly socket: Socket;
  readonly since: number;
  hasCalled: boolean;
}

/**
 * Listens, limits the connections, terminates TLS and detects the version of HTTP: by ALPN, or in plaintext by the first
 * bytes. An invalid client certificate does not fail the handshake, because TLS cannot carry the reason to the client.
 */
export async function listenForConnections(options: {
  readonly address?: string;
  readonly port: number;
  readonly tls: ServerTls | 'plaintext';
  /** Whether HTTP/1.1 is served beside HTTP/2. */
  readonly http1: boolean;
  /** How long a client may take for its first bytes, or for the TLS handshake. */
  readonly idleMs: number;
  readonly limits: ConnectionLimits;
  readonly logger: Logger;
  /** Watches the certificates of clients. */
  readonly certified: CertifiedPort;
  refused(reason: ConnectionRefusal, peer: { readonly address: string }): void;
  /** @param certified the client's certificate, when one was verified */
  accept(socket: Socket, version: HttpVersion, certified: SocketCertificate | undefined): void;
}): Promise<ConnectionListener> {
  const { limits, logger, tls, http1 } = options;
  const rate = new ConnectionRate(limits);
  const turns = new ConnectionTurns();
  const connections = new Map<string, OpenConnection>();
  /** Connections without a valid certificate on which no call has authenticated yet. */
  const strangers = new NetworkShares<OpenConnection>();
  let isClosing = false;
  let refusals = 0;
  let loggedAt = Number.NEGATIVE_INFINITY;

  const refuse = (socket: Socket, reason: ConnectionRefusal) => {
    const peer = remoteAddressOf(socket);
    socket.destroy();
    options.refused(reason, { address: peer });
    refusals++;
    const now = performance.now();
    if (now - loggedAt < refusalLogMs) {
      return;
    }
    logger.warn(
      { peer, reason, connections: connections.size, refusals },
      'A connection is refused: there are too many',
    );
    loggedAt = now;
    refusals = 0;
  };
  /** The connection is none of a stranger any more: it has logged in, or has gone. */
  const isKnown = (peer: string) => {
    const connection = connections.get(peer);
    if (connection !== undefined) {
      strangers.delete(connection.network, connection);
    }
  };
  const makeRoom = (network: string, now: number): boolean => {
    if (strangers.size < limits.maxUnauthenticated) {
      return true;
    }
    const { oldest } = strangers;
    const isOld = oldest !== undefined && now - oldest.since >= unauthenticatedGraceMs;
    const leaving = strangers.placeFor(network)?.connection ?? (isOld ? oldest : undefined);
    if (leaving === undefined) {
      return false;
    }
    isKnown(leaving.peer);
    refuse(leaving.socket, 'too-many-strangers');
    return true;
  };

  const tlsServer = tls === 'plaintext' ? undefined : createTlsListener(tls, http1, options.idleMs);
  options.certified.trust(tls === 'plaintext' ? undefined : tls.clientCa);
  const accept = (socket: Socket) => {
    if (tlsServer !== undefined) {
      tlsServer.emit('connection', socket);
    } else if (!http1) {
      options.accept(socket, 'h2', undefined);
    } else {
      sniff(socket, options.idleMs, (version) => options.accept(socket, version, undefined));
    }
  };
  const server = createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: 30_000 }, (socket) => {
    const now = performance.now();
    socket.on('error', () => undefined);
    const wait = rate.admit(socket.remoteAddress ?? '', now);
    if (connections.size >= limits.maxConnections) {
      return refuse(socket, 'too-many-connections');
    }
    if (wait === undefined) {
      return refuse(socket, 'too-many-from-address');
    }
    const network = networkOf(socket.remoteAddress ?? '');
    if (!makeRoom(network, now)) {
      return refuse(socket, 'too-many-strangers');
    }
    const peer = remoteAddressOf(socket);
    const connection: OpenConnection = { peer, network, socket, since: now, hasCalled: false };
    connections.set(peer, connection);
    strangers.add(network, connection);
    let leaveQueue: (() => void) | undefined;
    const begin = () => {
      leaveQueue = turns.enter(socket.remoteAddress ?? '', () => accept(socket));
    };
    const timer = wait === 0 ? undefined : setTimeout(begin, wait);
    socket.once('close', () => {
      clearTimeout(timer);
      leaveQueue?.();
      isKnown(peer);
      connections.delete(peer);
      // A client that rejects the server's certificate closes without an alert. Probes of load balancers send nothing, and
      // argocd-agent's agents probe before every call over WebSocket, only to see the certificate.
      if (connection.hasCalled || tls === 'plaintext' || socket.bytesRead === 0 || isClosing) {
        return;
      }
      const message =
        "A client left without a call; it may not trust this principal's certificate or not find its name in it";
      if (http1) {
        logger.debug({ peer }, message);
      } else {
        logger.info({ peer }, message);
      }
    });
    if (timer === undefined) {
      begin();
    }
  });
  if (tlsServer !== undefined) {
    const certificateOf = certifySockets(tlsServer, options.certified);
    const failures = logTlsFailures(tlsServer, logger);
    // Node.js reports a handshake that takes too long, and leaves it to the server to end the connection.
    tlsServer.on('tlsClientError', (_error, socket) => socket.destroy());
    tlsServer.on('secureConnection', (socket: TLSSocket) => {
      socket.on('error', () => undefined);
      refuseRenegotiation(socket);
      const certified = certificateOf(socket);
      if (certified !== undefined && certified.problem() === undefined) {
        isKnown(remoteAddressOf(socket));
      }
      if (socket.alpnProtocol === 'h2') {
        options.accept(socket, 'h2', certified);
      } else if (http1) {
        options.accept(socket, 'http/1.1', certified);
      } else {
        failures.add('the client does not speak HTTP/2 (ALPN h2)', networkOf(socket.remoteAddress ?? ''));
        socket.destroy();
      }
    });
    if (tls !== 'plaintext' && tls.clientCa !== undefined) {
      limitHandshakeBytes(tlsServer, new RefusalLog('agents', logger));
    }
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port: options.port, ...(options.address ? { host: options.address } : undefined) }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  server.on('error', (error: Error) => logger.error({ error }, 'The gRPC listener failed'));

  return {
    port: (server.address() as AddressInfo).port,
    setTls(next) {
      if (tlsServer === undefined) {
        throw new Error('A plaintext server takes no certificates');
      }
      useTls(tlsServer, next);
      options.certified.trust(next.clientCa);
    },
    called(socket) {
      const connection = connections.get(remoteAddressOf(socket));
      if (connection !== undefined) {
        connection.hasCalled = true;
      }
    },
    authenticated(socket) {
      isKnown(remoteAddressOf(socket));
    },
    close() {
      isClosing = true;
      return new Promise((resolve) => server.close(() => resolve()));
    },
    destroyAll() {
      for (const { socket } of connections.values()) {
        socket.destroy();
      }
    },
  };
}

function createTlsListener(tls: ServerTls, http1: boolean, idleMs: number): TlsServer {
  const server = createTlsServer({
    ...secureContextOptions(tls),
    requestCert: tls.clientCa !== undefined,
    rejectUnauthorized: false,
    ALPNProtocols: http1 ? ['h2', 'http/1.1'] : ['h2'],
    handshakeTimeout: Math.min(idleMs, maxHandshakeMs),
  });
  useTls(server, tls);
  return server;
}

/** Reads the bytes that distinguish HTTP/2 from HTTP/1.1, and puts them back. */
function sniff(socket: Socket, timeoutMs: number, found: (version: HttpVersion) => void): void {
  let seen = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), timeoutMs).unref();
  const look = (chunk: Buffer) => {
    seen = Buffer.concat([seen, chunk]);
    const length = Math.min(seen.length, http2Preface.length);
    const isHttp2 = seen.subarray(0, length).equals(http2Preface.subarray(0, length));
    if (isHttp2 && length < http2Preface.length) {
      return;
    }
    clearTimeout(timer);
    socket.off('data', look);
    socket.pause();
    socket.unshift(seen);
    found(isHttp2 ? 'h2' : 'http/1.1');
    // HTTP/2 reads the unshifted bytes by itself.
    if (!isHttp2) {
      socket.resume();
    }
  };
  socket.on('data', look);
  socket.once('close', () => clearTimeout(timer));
}
