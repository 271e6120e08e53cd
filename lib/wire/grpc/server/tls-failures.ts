import type { Server, TLSSocket } from 'node:tls';
import { type Logger, remoteAddressOf } from '../../../base/index.ts';

/** Logs why TLS handshakes fail. */
export function logTlsFailures(server: Server, logger: Logger): void {
  server.on('tlsClientError', (error: NodeJS.ErrnoException, socket: TLSSocket) => {
    const peer = remoteAddressOf(socket);
    // Reported when the socket closes.
    if (error.code === 'ECONNRESET') {
      logger.debug({ peer }, 'A client left during the TLS handshake');
    } else {
      logger.warn({ peer, code: error.code }, `A TLS handshake failed: ${tlsFailure(error)}`);
    }
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
    case 'ERR_SSL_NO_APPLICATION_PROTOCOL':
      return 'the client does not offer HTTP/2 (ALPN h2); for HTTP/1.1 and WebSocket set --enable-websocket';
    case 'ERR_SSL_HTTP_REQUEST':
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
      return 'the client speaks plaintext on a TLS port';
    default:
      return error.message;
  }
}
