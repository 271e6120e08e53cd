import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { ClientTls } from '../client-options.ts';
import { ClientCall } from './client-call.ts';
import { type KeepaliveTiming, watchSession } from './keepalive.ts';
import { GrpcError, grpcStatus } from './status.ts';
import { connectionWindowBytes, sessionMemoryMegabytes, streamWindowBytes } from './windows.ts';

/** When the kernel starts probing an idle TCP connection; ten lost probes, one a second, end it. */
const tcpKeepaliveMs = 10_000;
const userAgent = 'argocd-agent/v0.0.1 grpc-node-http2/1';

/** A connection to a gRPC server; the seam where another transport (WebSocket) would fit. */
export interface GrpcTransport {
  /** Starts a call. `headers` are sent as they are, names in lower case. */
  call(path: string, headers?: Readonly<Record<string, string>>): ClientCall;
  /** Why the connection broke; undefined while it stands, or when it was closed in order. */
  readonly failure: Error | undefined;
  /** Resolves when the connection is gone. */
  readonly closed: Promise<void>;
  /** Ends the connection at once. */
  destroy(): void;
}

/**
 * Connects over HTTP/2, with TLS (ALPN h2 required) or in plaintext with prior knowledge.
 *
 * A server that uses TLS 1.3 refuses a client certificate only after this resolves: the first call fails then, and
 * `failure` tells why.
 *
 * @throws the error of the TCP connection or the TLS handshake
 */
export async function connectGrpc(options: {
  readonly host: string;
  readonly port: number;
  readonly tls: ClientTls | 'plaintext';
  readonly timeoutMs: number;
  readonly maxMessageBytes: number;
  readonly compression: boolean;
  readonly keepalive: KeepaliveTiming;
  readonly signal: AbortSignal;
}): Promise<GrpcTransport> {
  const { host, port, tls, signal } = options;
  const socket = await openSocket(options);
  const scheme = tls === 'plaintext' ? 'http' : 'https';
  const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const session = connectHttp2(`${scheme}://${authority}`, {
    createConnection: () => socket,
    settings: { initialWindowSize: streamWindowBytes, enablePush: false },
    maxSessionMemory: sessionMemoryMegabytes,
  });
  let failure: Error | undefined;
  const fail = (error: Error) => {
    failure ??= error;
  };
  socket.on('error', fail);
  session.on('error', fail);
  session.on('goaway', (code) => {
    if (code !== 0)
      fail(new GrpcError(grpcStatus.unavailable, `the server ends the connection (HTTP/2 error ${code})`));
  });
  session.on('connect', () => session.setLocalWindowSize(connectionWindowBytes));
  const stop = watchSession(session, options.keepalive, () => {
    fail(Object.assign(new Error('the connection does not answer any more'), { code: 'ETIMEDOUT' }));
  });
  const destroy = () => session.destroy();
  signal.addEventListener('abort', destroy, { once: true });
  const closed = new Promise<void>((resolve) => {
    session.on('close', () => {
      stop();
      signal.removeEventListener('abort', destroy);
      resolve();
    });
  });
  return {
    call: (path, headers) => startCall(session, options, path, headers),
    get failure() {
      return failure;
    },
    closed,
    destroy,
  };
}

function startCall(
  session: ClientHttp2Session,
  options: { readonly compression: boolean; readonly maxMessageBytes: number },
  path: string,
  headers: Readonly<Record<string, string>> = {},
): ClientCall {
  if (session.closed || session.destroyed) {
    throw new GrpcError(grpcStatus.unavailable, 'the connection is closed', { isConnectionLoss: true });
  }
  const stream = session.request(
    {
      ':method': 'POST',
      ':path': path,
      te: 'trailers',
      'content-type': 'application/grpc',
      'user-agent': userAgent,
      'grpc-accept-encoding': 'identity,gzip',
      ...(options.compression ? { 'grpc-encoding': 'gzip' } : undefined),
      ...headers,
    },
    { endStream: false },
  );
  return new ClientCall(stream, { gzip: options.compression, maxMessageBytes: options.maxMessageBytes });
}

async function openSocket(options: {
  readonly host: string;
  readonly port: number;
  readonly tls: ClientTls | 'plaintext';
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}): Promise<Socket> {
  const { host, port, tls, signal, timeoutMs } = options;
  signal.throwIfAborted();
  const target = { host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: tcpKeepaliveMs };
  const socket =
    tls === 'plaintext'
      ? connectTcp(target)
      : connectTls({
          ...target,
          ALPNProtocols: ['h2'],
          ...(isIP(host) === 0 ? { servername: host } : undefined),
          ...(tls.ca === undefined ? undefined : { ca: tls.ca }),
          ...(tls.cert === undefined ? undefined : { cert: tls.cert }),
          ...(tls.key === undefined ? undefined : { key: tls.key }),
          rejectUnauthorized: tls.insecure !== true,
          minVersion: tls.minVersion ?? 'TLSv1.2',
          ...(tls.maxVersion === undefined ? undefined : { maxVersion: tls.maxVersion }),
          ...(tls.ciphers === undefined ? undefined : { ciphers: tls.ciphers }),
        });
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => give(timeout(host, port, timeoutMs)), timeoutMs);
    const onAbort = () => give(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
    const give = (error?: Error) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      socket.off('error', give);
      socket.off('close', onClose);
      if (error === undefined) resolve();
      else {
        socket.on('error', () => undefined);
        socket.destroy();
        reject(error);
      }
    };
    const onClose = () => give(Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' }));
    signal.addEventListener('abort', onAbort, { once: true });
    socket.once('error', give);
    socket.once('close', onClose);
    socket.once(tls === 'plaintext' ? 'connect' : 'secureConnect', () => give());
  });
  if ('alpnProtocol' in socket && socket.alpnProtocol !== 'h2') {
    socket.destroy();
    throw Object.assign(new Error('the server does not speak HTTP/2 (ALPN h2)'), { code: 'ERR_ALPN' });
  }
  return socket;
}

function timeout(host: string, port: number, timeoutMs: number): Error {
  return Object.assign(new Error(`no connection to ${host}:${port} within ${timeoutMs} ms`), { code: 'ETIMEDOUT' });
}
