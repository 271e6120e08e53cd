import type { Server, TLSSocket } from 'node:tls';
import { type Logger, networkOf, remoteAddressOf } from '../../../base/index.ts';
import { RefusalLog } from '../../../http/index.ts';

/**
 * Logs why TLS handshakes fail: each reason once in a while, with how many failed for it. Anybody may begin one.
 * @returns takes what is refused after a handshake as well
 */
export function logTlsFailures(server: Server, logger: Logger): RefusalLog {
  const failures = new RefusalLog('agents', logger, { ends: 'a TLS handshake' });
  server.on('tlsClientError', (error: NodeJS.ErrnoException, socket: TLSSocket) => {
    const peer = remoteAddressOf(socket);
    // Reported when the socket closes.
    if (error.code === 'ECONNRESET') {
      logger.debug({ peer }, 'A client left during the TLS handshake');
    } else {
      logger.debug({ peer, error }, 'A TLS handshake failed');
      failures.add(tlsFailure(error), networkOf(socket.remoteAddress ?? ''), { peer, code: error.code });
    }
  });
  return failures;
}

function tlsFailure(error: NodeJS.ErrnoException & { readonly reason?: unknown }): string {
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
    case 'ERR_SSL_NO_APPLICATION_PROTOCOL':
      return 'the client does not offer HTTP/2 (ALPN h2); for HTTP/1.1 and WebSocket set --enable-websocket';
    case 'ERR_SSL_HTTP_REQUEST':
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
      return 'the client speaks plaintext on a TLS port';
    case 'ERR_TLS_HANDSHAKE_TIMEOUT':
      return 'the client takes too long';
    default:
      // One of OpenSSL's or Node's few texts. The message has numbers as well.
      return typeof error.reason === 'string' ? error.reason : (error.code ?? 'it is malformed');
  }
}
