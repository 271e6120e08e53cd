import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Logger, remoteAddressOf } from '../../../base/index.ts';
import type { SocketCertificate } from '../../../credentials/index.ts';
import { limitRequests, RefusalLog } from '../../../http/index.ts';
import type { KeepaliveTiming } from '../keepalive.ts';
import { webSocketProtocol } from '../websocket-frames.ts';
import { ConnectionCalls, describePeer, Idleness, onSocketClose, type ServerConnection } from './connection.ts';
import { Http1ServerChannel } from './http1-channel.ts';
import type { ReceiveBudget } from './receive-budget.ts';
import { ServerCall } from './server-call.ts';
import type { ServerChannel } from './server-channel.ts';
import { WebSocketServerChannel } from './websocket-channel.ts';

/** Headers of a request: a token and what proxies add. */
const maxHeaderBytes = 32 * 1024;
/** Streams stay silent for as long as they like; a client that is not there any more is found by its keep-alive. */
const requestCaps = { requestsUnderWay: 2, stallMs: 0 };

/** Serves connections that speak HTTP/1.1. */
export interface Http1Server {
  /** @param certified the client's certificate, when one was verified */
  take(socket: Socket, certified: SocketCertificate | undefined): void;
  /** Ends the connections that have no call. */
  closeIdle(): void;
}

interface OpenConnection {
  readonly idleness: Idleness;
  readonly connection: ServerConnection;
  readonly calls: ConnectionCalls;
}

/**
 * Serves gRPC to clients behind proxies that only speak HTTP/1.1: over WebSocket, one call each, and over plain requests with
 * trailers. Any other request gets 404, as from argocd-agent's principal.
 */
export function createHttp1Server(options: {
  readonly keepalive: KeepaliveTiming;
  readonly idleMs: number;
  readonly budget: ReceiveBudget;
  readonly logger: Logger;
  /** A call has come in on a connection. */
  called(socket: Socket): void;
  /** The client of this connection is authenticated. */
  authenticated(socket: Socket): void;
  serve(call: ServerCall, connection: ServerConnection): void;
}): Http1Server {
  const { logger } = options;
  const connections = new Map<Duplex, OpenConnection>();
  // Streams last for days: only connections without a call have a time limit.
  const server = createServer({ maxHeaderSize: maxHeaderBytes, requestTimeout: 0, keepAliveTimeout: 0 });

  const serve = (channel: ServerChannel, socket: Duplex) => {
    const open = connections.get(socket);
    if (open === undefined) {
      // It has closed in the meantime.
      socket.destroy();
      return;
    }
    open.idleness.callBegan();
    options.called(socket as Socket);
    const call = new ServerCall(channel, options.budget);
    open.calls.began(call);
    options.serve(call, open.connection);
  };
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (!isGrpc(request)) {
      response.writeHead(404, { 'content-type': 'text/plain', connection: 'close' }).end('404 page not found\n');
      return;
    }
    response.once('close', () => connections.get(request.socket)?.idleness.callEnded());
    serve(new Http1ServerChannel(request, response), request.socket);
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // The header is compared as a whole, as argocd-agent's principal does.
    if (request.headers['sec-websocket-protocol'] !== webSocketProtocol) {
      socket.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    const peer = remoteAddressOf(request.socket);
    const dead = () => logger.warn({ peer }, 'A connection does not answer any more and is cut off');
    const channel = new WebSocketServerChannel(request, request.socket, head, { keepalive: options.keepalive, dead });
    serve(channel, socket);
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    logger.debug({ peer: remoteAddressOf(socket as Socket), code: error.code }, 'A client sends what is no HTTP');
    if (socket.writable) {
      socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
    } else {
      socket.destroy();
    }
  });
  limitRequests(server, requestCaps, new RefusalLog('agents over HTTP/1.1', logger));

  return {
    take(socket, certified) {
      const idleness = new Idleness(options.idleMs, () => socket.destroy());
      let isAuthenticated = false;
      const connection: ServerConnection = {
        ...describePeer(socket, certified),
        isShared: false,
        onClose: onSocketClose(socket),
        get isAuthenticated() {
          return isAuthenticated;
        },
        authenticated: () => {
          isAuthenticated = true;
          options.authenticated(socket);
        },
      };
      const calls = new ConnectionCalls();
      certified?.endWith((reason) => calls.end(reason, () => socket.destroy()));
      connections.set(socket, { idleness, connection, calls });
      socket.once('close', () => {
        idleness.stop();
        connections.delete(socket);
      });
      socket.setNoDelay(true);
      server.emit('connection', socket);
    },
    closeIdle() {
      for (const [socket, { idleness }] of connections) {
        if (idleness.isIdle) {
          socket.destroy();
        }
      }
    },
  };
}

function isGrpc({ method, headers, httpVersion }: IncomingMessage): boolean {
  const type = headers['content-type'] ?? '';
  return method === 'POST' && httpVersion === '1.1' && /^application\/grpc(\+proto)?($|;)/.test(type);
}
