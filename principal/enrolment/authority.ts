import type { TextFields } from '../../lib/ops/index.ts';
import { inspectCertificate, isKeyOf, type KeyCertificate } from '../../lib/pki/index.ts';

/**
 * The authority in `tls.crt` and `tls.key`.
 * @throws Error that explains the fault
 */
export function parseAuthority(fields: TextFields): KeyCertificate {
  const { 'tls.crt': certificate = '', 'tls.key': key = '' } = fields;
  if (key === '') {
    throw new Error('has no tls.key, so no certificate can be issued');
  }
  if (!inspectCertificate(certificate, 'tls.crt').isAuthority) {
    throw new Error('tls.crt is not the certificate of an authority');
  }
  if (!isKeyOf(certificate, key)) {
    throw new Error('tls.key is not the key of the certificate in tls.crt');
  }
  return { certificate, key };
}
