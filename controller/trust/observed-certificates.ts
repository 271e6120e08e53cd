import { inspectCertificate, PkiError, secretText } from '../../lib/pki/index.ts';
import type { Caches } from '../hub/index.ts';

/** When the authorities and the servers' certificates of the hub expire; what cannot be read is left out. */
export function observedCertificates(
  caches: Pick<Caches, 'certificateSecrets'>,
): { readonly namespace: string; readonly secret: string; readonly notAfter: Date }[] {
  return caches.certificateSecrets().flatMap(({ metadata: { namespace = '', name: secret }, data }) => {
    const pem = secretText(data, 'tls.crt');
    try {
      return pem === undefined ? [] : [{ namespace, secret, notAfter: inspectCertificate(pem, secret).notAfter }];
    } catch (error) {
      if (error instanceof PkiError) {
        return [];
      }
      throw error;
    }
  });
}
