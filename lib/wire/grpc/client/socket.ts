import { X509Certificate } from 'node:crypto';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, type DetailedPeerCertificate, type PeerCertificate, type TLSSocket } from 'node:tls';
import { after, onAbort, trusting } from '../../../base/index.ts';
import type { ClientTls } from '../../tls.ts';
import { connectThroughProxy } from './proxy.ts';

/** When the kernel starts probing an idle TCP connection; ten lost probes, one a second, end it. */
const tcpKeepaliveMs = 10_000;

/** Where to, how, and for how long to try. */
export interface SocketOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: ClientTls | 'plaintext';
  /** What to agree on with the server (ALPN); refused when the server speaks nothing of it. */
  readonly protocol: 'h2' | 'http/1.1';
  /** The HTTP proxy to go through. */
  readonly proxy: URL | undefined;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Opens a connection, through a proxy and with TLS if asked for.
 * @throws the error of the TCP connection, the proxy (code `ERR_PROXY`) or the TLS handshake
 */
export async function openSocket(options: SocketOptions): Promise<Socket> {
  const { host, port, tls, proxy, signal, timeoutMs, protocol } = options;
  signal.throwIfAborted();
  const abort = new AbortController();
  const unlisten = onAbort(signal, () => abort.abort(signal.reason));
  const cancel = after(timeoutMs, () => abort.abort(timeout(host, port, timeoutMs)));
  try {
    const target = { host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: tcpKeepaliveMs };
    const tcp =
      proxy === undefined
        ? await settled(connectTcp(target), 'connect', abort.signal)
        : await connectThroughProxy(proxy, { host, port }, abort.signal);
    tcp.setNoDelay(true).setKeepAlive(true, tcpKeepaliveMs);
    if (tls === 'plaintext') {
      return tcp;
    }
    const socket = await settled(startTls(tcp, host, tls, protocol), 'secureConnect', abort.signal);
    if (protocol === 'h2' && socket.alpnProtocol !== 'h2') {
      socket.destroy();
      throw Object.assign(new Error('the server does not speak HTTP/2 (ALPN h2)'), { code: 'ERR_ALPN' });
    }
    return socket;
  } finally {
    cancel();
    unlisten();
  }
}

function startTls(socket: Socket, host: string, tls: ClientTls, protocol: string): TLSSocket {
  return connectTls({
    socket,
    host,
    ALPNProtocols: [protocol],
    ...(isIP(host) === 0 ? { servername: host } : undefined),
    ...trusting(tls.ca),
    ...(tls.cert === undefined ? undefined : { cert: tls.cert }),
    ...(tls.key === undefined ? undefined : { key: tls.key }),
    rejectUnauthorized: tls.insecure !== true,
    ...checking(tls.checkServer),
    minVersion: tls.minVersion ?? 'TLSv1.2',
    ...(tls.maxVersion === undefined ? undefined : { maxVersion: tls.maxVersion }),
    ...(tls.ciphers === undefined ? undefined : { ciphers: tls.ciphers }),
  });
}

/** The check of the server's certificate that replaces that of its host name. */
function checking(check: ClientTls['checkServer']) {
  if (check === undefined) {
    return {};
  }
  const checkServerIdentity = (_: string, shown: PeerCertificate): Error | undefined => {
    try {
      check(chainOf(shown));
      return undefined;
    } catch (error) {
      return Object.assign(error as Error, { code: 'ERR_TLS_CERT_IDENTITY' });
    }
  };
  return { checkServerIdentity };
}

/** A certificate and those that came with it. Node ends the chain with a certificate that is its own issuer. */
function chainOf(shown: PeerCertificate | DetailedPeerCertificate): X509Certificate[] {
  const chain: X509Certificate[] = [];
  const seen = new Set<PeerCertificate>();
  for (let next: PeerCertificate | undefined = shown; next?.raw !== undefined && !seen.has(next); ) {
    seen.add(next);
    chain.push(new X509Certificate(next.raw));
    next = 'issuerCertificate' in next ? (next.issuerCertificate as DetailedPeerCertificate) : undefined;
  }
  return chain;
}

/** Waits for `event`; a socket that fails, or is not ready when `signal` aborts, is destroyed. */
async function settled<S extends Socket>(
  socket: S,
  event: 'connect' | 'secureConnect',
  signal: AbortSignal,
): Promise<S> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const closed = () => reject(Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' }));
  // Stays: later errors are for the user of the socket, and one that nobody handles would end the process.
  socket.on('error', () => undefined);
  socket.once('error', reject);
  socket.once('close', closed);
  socket.once(event, () => resolve());
  const unlisten = onAbort(signal, () => reject(signal.reason instanceof Error ? signal.reason : new Error('aborted')));
  try {
    await promise;
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    unlisten();
    socket.off('error', reject);
    socket.off('close', closed);
  }
}

function timeout(host: string, port: number, timeoutMs: number): Error {
  return Object.assign(new Error(`no connection to ${host}:${port} within ${timeoutMs} ms`), { code: 'ETIMEDOUT' });
}
