import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from 'node:tls';
import type { Logger } from '../../../base/index.ts';
import type { ServerTls } from '../../tls.ts';
import { addressOf } from './connection.ts';
import { type ConnectionLimits, ConnectionRate } from './connection-rate.ts';
import { logTlsTrouble } from './tls-failures.ts';
import { secureContextOptions } from './tls-options.ts';

/** What a client speaks. */
export type HttpVersion = 'h2' | 'http/1.1';

/** Why a connection was not taken. */
export type DoorRefusal = 'too-many-connections' | 'too-many-strangers' | 'too-many-from-address';

/** The listening socket and everything that happens before the first request. */
export interface Door {
  readonly port: number;
  setTls(tls: ServerTls): void;
  /** A call has come in on this connection. */
  called(socket: Socket): void;
  /** The connection is no stranger's. */
  trusted(socket: Socket): void;
  /** Takes no more connections; resolves when all have ended. */
  close(): Promise<void>;
  /** Ends all connections at once. */
  destroyAll(): void;
}

/** A TLS handshake takes no longer, however patient the door is otherwise; clients give up before, if they are not as patient. */
const maxHandshakeMs = 60_000;
/** Strangers are given this long before they may have to make room for others. */
const strangerGraceMs = 5000;
/** What every client of HTTP/2 sends first. */
const http2Preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
/** How often refused connections are told to the log, at most. */
const refusalLogMs = 10_000;

interface Visitor {
  readonly socket: Socket;
  readonly since: number;
  hasCalled: boolean;
}

/**
 * Listens, keeps connections within their limits, ends TLS and finds out what the client speaks: by ALPN, or in plaintext
 * by the first bytes. A client certificate that does not hold does not fail the handshake, because TLS offers no way to
 * tell the client why.
 */
export async function openDoor(options: {
  readonly address?: string;
  readonly port: number;
  readonly tls: ServerTls | 'plaintext';
  /** Whether HTTP/1.1 is served beside HTTP/2. */
  readonly http1: boolean;
  /** How long a client may take to say something, or for the TLS handshake. */
  readonly idleMs: number;
  readonly limits: ConnectionLimits;
  readonly logger: Logger;
  refused(reason: DoorRefusal, peer: { readonly address: string }): void;
  enter(socket: Socket, version: HttpVersion): void;
}): Promise<Door> {
  const { limits, logger, tls, http1 } = options;
  const rate = new ConnectionRate(limits);
  const visitors = new Map<string, Visitor>();
  /** Visitors that nobody knows, oldest first. */
  const strangers = new Map<string, Visitor>();
  let isClosing = false;
  let refusals = 0;
  let toldAt = Number.NEGATIVE_INFINITY;

  const refuse = (socket: Socket, reason: DoorRefusal) => {
    const peer = addressOf(socket);
    socket.destroy();
    options.refused(reason, { address: peer });
    refusals++;
    const now = performance.now();
    if (now - toldAt < refusalLogMs) {
      return;
    }
    logger.warn({ peer, reason, connections: visitors.size, refusals }, 'A connection is refused: there are too many');
    toldAt = now;
    refusals = 0;
  };
  const makeRoom = (now: number): boolean => {
    if (strangers.size < limits.maxStrangers) {
      return true;
    }
    const [oldest] = strangers;
    if (oldest === undefined || now - oldest[1].since < strangerGraceMs) {
      return false;
    }
    strangers.delete(oldest[0]);
    refuse(oldest[1].socket, 'too-many-strangers');
    return true;
  };

  const tlsServer = tls === 'plaintext' ? undefined : createDoorTls(tls, http1, options.idleMs);
  const enter = (socket: Socket) => {
    if (tlsServer !== undefined) {
      tlsServer.emit('connection', socket);
    } else if (!http1) {
      options.enter(socket, 'h2');
    } else {
      sniff(socket, options.idleMs, (version) => options.enter(socket, version));
    }
  };
  const server = createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: 30_000 }, (socket) => {
    const now = performance.now();
    socket.on('error', () => undefined);
    const wait = rate.admit(socket.remoteAddress ?? '', now);
    if (visitors.size >= limits.maxConnections) {
      return refuse(socket, 'too-many-connections');
    }
    if (wait === undefined) {
      return refuse(socket, 'too-many-from-address');
    }
    if (!makeRoom(now)) {
      return refuse(socket, 'too-many-strangers');
    }
    const peer = addressOf(socket);
    const visitor: Visitor = { socket, since: now, hasCalled: false };
    visitors.set(peer, visitor);
    strangers.set(peer, visitor);
    const timer = wait === 0 ? undefined : setTimeout(() => enter(socket), wait);
    socket.once('close', () => {
      clearTimeout(timer);
      visitors.delete(peer);
      strangers.delete(peer);
      // A client that does not like the server's certificate just leaves. Probes of load balancers send nothing, and those of
      // argocd-agent's agents, before every call over WebSocket, only look at the certificate.
      if (visitor.hasCalled || tls === 'plaintext' || socket.bytesRead === 0 || isClosing) {
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
      enter(socket);
    }
  });
  if (tlsServer !== undefined) {
    logTlsTrouble(tlsServer, logger);
    // Node.js reports a handshake that takes too long, and leaves it to the server to end the connection.
    tlsServer.on('tlsClientError', (_error, socket) => socket.destroy());
    tlsServer.on('secureConnection', (socket: TLSSocket) => {
      socket.on('error', () => undefined);
      if (socket.alpnProtocol === 'h2') {
        options.enter(socket, 'h2');
      } else if (http1) {
        options.enter(socket, 'http/1.1');
      } else {
        logger.warn({ peer: addressOf(socket) }, 'A client does not speak HTTP/2 (ALPN h2) and is turned away');
        socket.destroy();
      }
    });
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port: options.port, ...(options.address ? { host: options.address } : undefined) }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  server.on('error', (error: Error) => logger.error({ err: error }, 'The gRPC listener failed'));

  return {
    port: (server.address() as AddressInfo).port,
    setTls(next) {
      if (tlsServer === undefined) {
        throw new Error('A plaintext server takes no certificates');
      }
      tlsServer.setSecureContext(secureContextOptions(next));
    },
    called(socket) {
      const visitor = visitors.get(addressOf(socket));
      if (visitor !== undefined) {
        visitor.hasCalled = true;
      }
    },
    trusted(socket) {
      strangers.delete(addressOf(socket));
    },
    close() {
      isClosing = true;
      return new Promise((resolve) => server.close(() => resolve()));
    },
    destroyAll() {
      for (const { socket } of visitors.values()) {
        socket.destroy();
      }
    },
  };
}

function createDoorTls(tls: ServerTls, http1: boolean, idleMs: number): TlsServer {
  return createTlsServer({
    ...secureContextOptions(tls),
    requestCert: tls.clientCa !== undefined,
    rejectUnauthorized: false,
    ALPNProtocols: http1 ? ['h2', 'http/1.1'] : ['h2'],
    handshakeTimeout: Math.min(idleMs, maxHandshakeMs),
  });
}

/** Reads as much as tells HTTP/2 from HTTP/1.1, and puts it back. */
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
    // HTTP/2 fetches by itself what was put back.
    if (!isHttp2) {
      socket.resume();
    }
  };
  socket.on('data', look);
  socket.once('close', () => clearTimeout(timer));
}
