import { constants } from 'node:crypto';
import type { SecureContextOptions, Server } from 'node:tls';
import { trusting } from '../../../base/index.ts';
import type { ServerTls } from '../../tls.ts';

/**
 * Options of the TLS context of a server. Session tickets are off: a resumed session would skip the check of a client
 * certificate against CAs that have changed in between.
 */
export function secureContextOptions(tls: ServerTls): SecureContextOptions {
  return {
    cert: tls.cert,
    key: tls.key,
    ...trusting(tls.clientCa),
    minVersion: tls.minVersion ?? 'TLSv1.2',
    ...(tls.maxVersion === undefined ? undefined : { maxVersion: tls.maxVersion }),
    ...(tls.ciphers === undefined ? undefined : { ciphers: tls.ciphers }),
    secureOptions: constants.SSL_OP_NO_TICKET,
    honorCipherOrder: true,
  };
}

/** Gives a server these certificates, or its first ones: for a server made with {@link secureContextOptions}, too. */
export function useTls(server: Server, tls: ServerTls): void {
  server.setSecureContext(secureContextOptions(tls));
  // Node 24 leaves this option out when it makes the context of a server. There is no other way to set it there.
  const { _sharedCreds: shared } = server as unknown as ServerInternals;
  if (tls.clientCa !== undefined) {
    shared?.context?.setAllowPartialTrustChain?.();
  }
}

/** What a TLS server of Node has inside. */
interface ServerInternals {
  readonly _sharedCreds?: { readonly context?: { setAllowPartialTrustChain?(): void } };
}
