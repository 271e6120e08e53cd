import type { X509Certificate } from 'node:crypto';
import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { ServerTls } from '../server-options.ts';
import type { WireLogger } from '../stream.ts';
import { watchSession } from './keepalive.ts';
import { ServerCall } from './server-call.ts';
import { grpcStatus } from './status.ts';
import { secureContextOptions } from './tls-options.ts';

/** Room for one stream and for a connection before the peer must wait: enough for bursts over long distances. */
export const streamWindowBytes = 1024 * 1024;
/** See `streamWindowBytes`. */
export const connectionWindowBytes = 8 * 1024 * 1024;
/** In MB; Node counts what is queued and received on a session and refuses new streams above it. */
export const sessionMemoryMegabytes = 1024;

/** Calls that a client may have open at once: its events, its renewals, and live logs and terminals of many users. */
const maxConcurrentStreams = 256;
const shutdownGraceMs = 1000;
const handshakeTimeoutMs = 15_000;

/** A client's connection. */
export interface ServerConnection {
  /** `address:port`. */
  readonly address: string;
  readonly encrypted: boolean;
  /** Present when the client showed a certificate and it holds. */
  readonly certificate?: X509Certificate;
  /** Why the certificate that was asked for does not hold, in words; undefined when all is well. */
  readonly certificateProblem?: string;
}

/** A listening gRPC server. */
export interface GrpcListener {
  readonly port: number;
  setTls(tls: ServerTls): void;
  close(): Promise<void>;
}

/**
 * Serves gRPC over HTTP/2, with TLS or in plaintext with prior knowledge (h2c).
 *
 * TLS material is replaced with `tls.Server.setSecureContext`: handshakes from then on use the new one, connections
 * stay. A client certificate that does not hold does not fail the handshake, because TLS offers no way to tell
 * the client why; the connection is marked with `certificateProblem` and `serve` answers with the reason.
 */
export async function listenGrpc(options: {
  readonly address?: string;
  readonly port: number;
  readonly tls: ServerTls | 'plaintext';
  readonly keepalive: { readonly intervalMs: number; readonly timeoutMs: number };
  /** How long a connection may stay open without a call. */
  readonly idleMs: number;
  readonly logger: WireLogger;
  /** Called for every call; nothing of its request is read before `ServerCall.listen`. */
  serve(call: ServerCall, connection: ServerConnection): void;
}): Promise<GrpcListener> {
  const { logger, tls } = options;
  const sessions = new Set<ServerHttp2Session>();
  const sockets = new Set<Socket>();
  /** Addresses of open connections that made a call. */
  const called = new Set<string>();
  let isClosing = false;
  const connections = new WeakMap<ServerHttp2Session, ServerConnection>();
  const common = {
    settings: { initialWindowSize: streamWindowBytes, maxConcurrentStreams },
    maxSessionMemory: sessionMemoryMegabytes,
  };
  const server: Http2Server | Http2SecureServer =
    tls === 'plaintext'
      ? createServer(common)
      : createSecureServer({
          ...common,
          ...secureContextOptions(tls),
          ...verification(tls),
          ALPNProtocols: ['h2'],
          handshakeTimeout: handshakeTimeoutMs,
        });
  server.setTimeout(0);

  // Both kinds of server emit the same events; their types differ only in the options.
  const events = server as Http2Server;
  events.on('connection', (socket: Socket) => {
    const peer = addressOf(socket);
    sockets.add(socket);
    socket.on('close', () => {
      sockets.delete(socket);
      // A client that does not like the server's certificate just leaves. Probes of load balancers send nothing.
      if (!called.delete(peer) && tls !== 'plaintext' && socket.bytesRead > 0 && !isClosing) {
        logger.info(
          { peer },
          "A client left without a call; it may not trust this principal's certificate or not find its name in it",
        );
      }
    });
  });
  events.on('session', (session) => {
    sessions.add(session);
    session.setLocalWindowSize(connectionWindowBytes);
    const connection = describe(session);
    connections.set(session, connection);
    const stop = watchSession(session, options.keepalive, () =>
      logger.warn({ peer: connection.address }, 'A connection does not answer any more and is cut off'),
    );
    const stopIdling = closeWhenIdle(session, options.idleMs);
    session.on('error', (error) => logger.debug({ peer: connection.address, err: error }, 'A connection broke'));
    session.once('stream', () => called.add(connection.address));
    session.on('close', () => {
      stop();
      stopIdling();
      sessions.delete(session);
    });
    if (isClosing) session.destroy();
  });
  events.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    const connection = stream.session === undefined ? undefined : connections.get(stream.session as ServerHttp2Session);
    if (connection === undefined) {
      stream.on('error', (error) => logger.debug({ err: error }, 'A stream of a closed connection'));
      stream.close();
      return;
    }
    const call = new ServerCall(stream, headers);
    if (!isGrpc(headers)) {
      call.refuseContent();
      return;
    }
    const encoding = call.header('grpc-encoding') ?? 'identity';
    if (encoding !== 'identity' && encoding !== 'gzip') {
      call.finish(grpcStatus.unimplemented, `messages with grpc-encoding "${encoding}" cannot be read here`);
      return;
    }
    options.serve(call, connection);
  });
  if (tls !== 'plaintext') logTlsTrouble(server as Http2SecureServer, logger);

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
      if (tls === 'plaintext') throw new Error('A plaintext server takes no certificates');
      (server as Http2SecureServer).setSecureContext({ ...secureContextOptions(next) });
    },
    async close() {
      isClosing = true;
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const session of sessions) session.close();
      const force = setTimeout(() => {
        for (const session of sessions) session.destroy();
        for (const socket of sockets) socket.destroy();
      }, shutdownGraceMs);
      await closed;
      clearTimeout(force);
    },
  };
}

/**
 * Ends a connection on which there was no call for a while, so that strangers cannot keep connections for nothing.
 * Returns the way to stop.
 */
function closeWhenIdle(session: ServerHttp2Session, idleMs: number): () => void {
  let calls = 0;
  const close = () => {
    session.close();
    // A client that does not even finish the greeting of HTTP/2 does not take part in an orderly end either.
    setTimeout(() => session.destroy(), shutdownGraceMs).unref();
  };
  let timer = setTimeout(close, idleMs).unref();
  session.on('stream', (stream: ServerHttp2Stream) => {
    calls++;
    clearTimeout(timer);
    stream.once('close', () => {
      calls--;
      if (calls > 0 || session.closed) return;
      clearTimeout(timer);
      timer = setTimeout(close, idleMs).unref();
    });
  });
  return () => clearTimeout(timer);
}

function addressOf(socket: { readonly remoteAddress?: string | undefined; readonly remotePort?: number | undefined }) {
  return `${socket.remoteAddress ?? 'unknown'}:${socket.remotePort ?? 0}`;
}

function verification(tls: ServerTls) {
  return { requestCert: tls.clientCa !== undefined, rejectUnauthorized: false };
}

function isGrpc(headers: IncomingHttpHeaders): boolean {
  const type = headers['content-type'];
  return headers[':method'] === 'POST' && /^application\/grpc(\+proto)?($|;)/.test(type ?? '');
}

function describe(session: ServerHttp2Session): ServerConnection {
  const { socket } = session;
  const address = addressOf(socket);
  // The socket of a session is a proxy that passes on the type of the socket behind it.
  if (!(socket instanceof TLSSocket)) return { address, encrypted: false };
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) {
    return { address, encrypted: true, certificateProblem: 'the client presented no certificate' };
  }
  if (socket.authorized) return { address, encrypted: true, certificate };
  const reason = certificateProblem(String(socket.authorizationError), certificate);
  return { address, encrypted: true, certificateProblem: reason };
}

function certificateProblem(code: string, certificate: X509Certificate): string {
  const subject = certificate.subject.replaceAll('\n', ', ');
  switch (code) {
    case 'CERT_HAS_EXPIRED':
      return `the certificate of "${subject}" expired on ${certificate.validTo}`;
    case 'CERT_NOT_YET_VALID':
      return `the certificate of "${subject}" is not valid before ${certificate.validFrom}`;
    case 'INVALID_PURPOSE':
      return `the certificate of "${subject}" is not meant for clients (extended key usage)`;
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'CERT_SIGNATURE_FAILURE': {
      const issuer = certificate.issuer.replaceAll('\n', ', ');
      return `the certificate of "${subject}" was issued by "${issuer}", which is not a CA that this principal trusts`;
    }
    default:
      return `the certificate of "${subject}" was refused (${code})`;
  }
}

function logTlsTrouble(server: Http2SecureServer, logger: WireLogger): void {
  server.on('tlsClientError', (error: NodeJS.ErrnoException, socket: TLSSocket) => {
    const peer = addressOf(socket);
    // Reported when the socket closes.
    if (error.code === 'ECONNRESET') logger.debug({ peer }, 'A client left during the TLS handshake');
    else logger.warn({ peer, code: error.code }, `A TLS handshake failed: ${tlsFailure(error)}`);
  });
  server.on('unknownProtocol', (socket: Socket) => {
    logger.warn({ peer: addressOf(socket) }, 'A client does not speak HTTP/2 (ALPN h2) and is turned away');
    socket.destroy();
  });
}

function tlsFailure(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA':
      return "the client does not trust this principal's certificate";
    case 'ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED':
      return "this principal's certificate has expired for the client";
    case 'ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE':
      return "the client rejects this principal's certificate, probably for its name";
    case 'ERR_SSL_UNSUPPORTED_PROTOCOL':
    case 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION':
      return 'the client and this principal have no TLS version in common';
    case 'ERR_SSL_NO_SHARED_CIPHER':
      return 'the client and this principal have no cipher in common';
    case 'ERR_SSL_HTTP_REQUEST':
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
      return 'the client speaks plaintext on a TLS port';
    default:
      return error.message;
  }
}
