import { constants } from 'node:crypto';
import type { SecureContextOptions } from 'node:tls';
import type { ServerTls } from '../../tls.ts';

/**
 * Options of the TLS context of a server. Session tickets are off: a resumed session would skip the check of a client
 * certificate against CAs that have changed in between.
 */
export function secureContextOptions(tls: ServerTls): SecureContextOptions {
  return {
    cert: tls.cert,
    key: tls.key,
    ...(tls.clientCa === undefined ? undefined : { ca: tls.clientCa }),
    minVersion: tls.minVersion ?? 'TLSv1.2',
    ...(tls.maxVersion === undefined ? undefined : { maxVersion: tls.maxVersion }),
    ...(tls.ciphers === undefined ? undefined : { ciphers: tls.ciphers }),
    secureOptions: constants.SSL_OP_NO_TICKET,
    honorCipherOrder: true,
  };
}
