import 'reflect-metadata';
import type { X509Certificate } from 'node:crypto';
import { X509Certificate as ParsedCertificate } from '@peculiar/x509';

/** The last common name in a certificate's subject, as Go's `Subject.CommonName` has it; undefined without one. */
export function commonNameOf(certificate: X509Certificate): string | undefined {
  return new ParsedCertificate(certificate.raw).subjectName.getField('CN').at(-1);
}
