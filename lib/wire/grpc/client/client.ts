import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { isIP } from 'node:net';
import { onAbort } from '../../../base/index.ts';
import type { ClientTls } from '../../tls.ts';
import { type KeepaliveTiming, watchSession } from '../keepalive.ts';
import { GrpcError, grpcStatus } from '../status.ts';
import { connectionWindowBytes, sessionMemoryMegabytes, streamWindowBytes } from '../windows.ts';
import { ClientCall } from './client-call.ts';
import { Http2ClientChannel } from './client-channel.ts';
import { openSocket } from './socket.ts';

const userAgent = 'argocd-agent/v0.0.1 grpc-node-http2/1';

/** The code of a `failure` after which pings should become rarer. */
export const tooManyPings = 'ERR_TOO_MANY_PINGS';

/** A transport to a gRPC server: one HTTP/2 connection, or one WebSocket per call. */
export interface GrpcTransport {
  /** Starts a call. `headers` are sent unchanged, with names in lower case. */
  call(path: string, headers?: Readonly<Record<string, string>>): ClientCall;
  /** Why the connection broke; undefined while it is open or after an orderly close. */
  readonly failure: Error | undefined;
  /** Resolves when the connection is gone. */
  readonly closed: Promise<void>;
  /** Ends the connection at once. */
  destroy(): void;
}

/** Options of a transport. */
export interface TransportOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: ClientTls | 'plaintext';
  /** The HTTP proxy to go through. */
  readonly proxy?: URL | undefined;
  readonly timeoutMs: number;
  readonly maxMessageBytes: number;
  readonly compression: boolean;
  readonly keepalive: KeepaliveTiming;
  readonly signal: AbortSignal;
}

/**
 * Connects over HTTP/2, with TLS (ALPN h2 required) or in plaintext with prior knowledge.
 *
 * A server with TLS 1.3 refuses a client certificate only after this resolves: then the first call fails, and
 * `failure` has the reason.
 *
 * @throws the error of the TCP connection, the proxy or the TLS handshake
 */
export async function connectGrpc(options: TransportOptions): Promise<GrpcTransport> {
  const { host, port, tls, signal } = options;
  const socket = await openSocket({ ...options, proxy: options.proxy, protocol: 'h2' });
  const scheme = tls === 'plaintext' ? 'http' : 'https';
  const authority = `${bracketed(host)}:${port}`;
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
  session.on('goaway', (code, _lastStream, data) => {
    if (String(data ?? '') === 'too_many_pings') {
      fail(Object.assign(new Error('the server finds that we ping too often'), { code: tooManyPings }));
    } else if (code !== 0) {
      fail(new GrpcError(grpcStatus.unavailable, `the server ends the connection (HTTP/2 error ${code})`));
    }
  });
  session.on('connect', () => session.setLocalWindowSize(connectionWindowBytes));
  const stop = watchSession(session, options.keepalive, () => {
    fail(Object.assign(new Error('the connection does not answer any more'), { code: 'ETIMEDOUT' }));
  });
  const destroy = () => session.destroy();
  const unlisten = onAbort(signal, destroy);
  const closed = new Promise<void>((resolve) => {
    session.on('close', () => {
      stop();
      unlisten();
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
  options: TransportOptions,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): ClientCall {
  if (session.closed || session.destroyed) {
    throw new GrpcError(grpcStatus.unavailable, 'the connection is closed', { isConnectionLoss: true });
  }
  const { host, compression, maxMessageBytes } = options;
  const stream = session.request(
    {
      ':method': 'POST',
      ':path': path,
      // Without the port, as argocd-agent's agents do; proxies may look at it.
      ':authority': bracketed(host),
      ...callHeaders(options, headers),
    },
    { endStream: false },
  );
  return new ClientCall(new Http2ClientChannel(stream), { gzip: compression, maxMessageBytes });
}

/** The headers of every call, on whatever transport. */
export function callHeaders(
  { compression }: { readonly compression: boolean },
  headers: Readonly<Record<string, string>> = {},
): Record<string, string> {
  return {
    te: 'trailers',
    'content-type': 'application/grpc',
    'user-agent': userAgent,
    'grpc-accept-encoding': 'identity,gzip',
    ...(compression ? { 'grpc-encoding': 'gzip' } : undefined),
    ...headers,
  };
}

function bracketed(host: string): string {
  return isIP(host) === 6 ? `[${host}]` : host;
}
