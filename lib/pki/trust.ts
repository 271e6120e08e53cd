import { inspectCertificate, parseCertificates } from './inspect.ts';

/** The certificates of several PEM texts as one, each once, in their order; empty when there are none. */
export function joinCertificates(...texts: readonly string[]): string {
  const blocks = texts.filter((text) => text.trim() !== '').flatMap((text) => splitCertificates(text));
  return blocks.length === 0 ? '' : `${[...new Set(blocks)].join('\n')}\n`;
}

/**
 * The certificates of a PEM text, each as a text of its own.
 * @throws PkiError BAD_CERTIFICATE when there is none or one does not parse
 */
export function splitCertificates(pem: string, what?: string): string[] {
  return parseCertificates(pem, what).map((certificate) => certificate.toString().trim());
}

/**
 * SHA-256 fingerprints of the certificates of a PEM text, in order, 64 upper-case hex digits each.
 * @throws PkiError BAD_CERTIFICATE when there is none or one does not parse
 */
export function fingerprintsOf(pem: string): string[] {
  return splitCertificates(pem).map((certificate) => inspectCertificate(certificate).fingerprint);
}
