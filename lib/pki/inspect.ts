import 'reflect-metadata';
import { createHash, X509Certificate } from 'node:crypto';
// When `toLegacyObject` is called before this is loaded, Node 24 loads it without `createSecureContext`, and no TLS server starts.
import 'node:tls';
import * as x509 from '@peculiar/x509';
import { PkiError } from './errors.ts';
import { parsePrivateKey } from './keys.ts';
import { Remembered } from './remembered.ts';
import { trustPath } from './trust-path.ts';

/**
 * A controller inspects the same few certificates of every cluster again and again, and parsing one takes a millisecond.
 * The cache is large enough for a thousand clusters.
 */
const capacity = 4096;
const parsedBlocks = new Remembered<X509Certificate>(capacity);
const inspected = new Remembered<CertificateInfo>(capacity);
const verdicts = new Remembered<{ readonly isIssued: boolean }>(capacity);

/** The fields of a certificate. */
export interface CertificateInfo {
  readonly commonName: string;
  readonly organizations: readonly string[];
  /** DNS names, sorted. */
  readonly dnsNames: readonly string[];
  /** IP addresses in canonical form, sorted. */
  readonly ipAddresses: readonly string[];
  readonly uris: readonly string[];
  readonly usages: readonly CertificateUsage[];
  readonly isAuthority: boolean;
  readonly notBefore: Date;
  readonly notAfter: Date;
  readonly serialNumber: string;
  /** SHA-256 of the DER form, 64 upper-case hex digits: the form of argocd-agent's blocklist. */
  readonly fingerprint: string;
}

/** The extended key usages that this project issues. */
export type CertificateUsage = 'server' | 'client';

const usageOids: Readonly<Record<string, CertificateUsage>> = {
  [x509.ExtendedKeyUsage.serverAuth]: 'server',
  [x509.ExtendedKeyUsage.clientAuth]: 'client',
};

/**
 * The certificates of a PEM text, in order. Other blocks are skipped.
 * @throws PkiError BAD_CERTIFICATE when there is none or one does not parse
 */
export function parseCertificates(pem: string, what = 'certificate'): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) {
    throw new PkiError('BAD_CERTIFICATE', what, 'holds no certificate in PEM form');
  }
  return blocks.map((block) => {
    try {
      return parsedBlocks.of(block, () => new X509Certificate(block));
    } catch (error) {
      throw new PkiError('BAD_CERTIFICATE', what, `does not parse (${(error as Error).message})`, { cause: error });
    }
  });
}

/**
 * Describes the first certificate of a PEM text.
 * @throws PkiError BAD_CERTIFICATE
 */
export function inspectCertificate(pem: string, what = 'certificate'): CertificateInfo {
  const [first] = parseCertificates(pem, what);
  if (first === undefined) {
    throw new PkiError('BAD_CERTIFICATE', what, 'holds no certificate in PEM form');
  }
  return inspected.of(first.fingerprint256, () => describe(first));
}

function describe(first: X509Certificate): CertificateInfo {
  // OpenSSL gives most fields; the other library takes fifty times as long.
  const { subject } = first.toLegacyObject();
  const names = alternativeNames(first);
  const ofType = (type: string) =>
    names
      .filter((name) => name.type === type)
      .map(({ value }) => value)
      .sort();
  return {
    commonName: [subject?.CN].flat()[0] ?? '',
    organizations: [subject?.O].flat().filter((organization) => organization !== undefined),
    dnsNames: ofType('dns'),
    ipAddresses: ofType('ip').map(canonicalAddress).sort(),
    uris: ofType('url'),
    usages: (first.keyUsage ?? []).flatMap((oid) => usageOids[oid] ?? []),
    isAuthority: first.ca,
    notBefore: first.validFromDate,
    notAfter: first.validToDate,
    serialNumber: first.serialNumber,
    fingerprint: createHash('sha256').update(first.raw).digest('hex').toUpperCase(),
  };
}

/** Read by the library, because OpenSSL's text form cannot be parsed safely. Few certificates have any. */
function alternativeNames(certificate: X509Certificate) {
  if (certificate.subjectAltName === undefined) {
    return [];
  }
  const parsed = new x509.X509Certificate(certificate.raw);
  return parsed.getExtension(x509.SubjectAlternativeNameExtension)?.names.items ?? [];
}

/** One spelling per IP address, so that `::1` and `0:0:0:0:0:0:0:1` compare equal. */
export function canonicalAddress(address: string): string {
  if (!address.includes(':')) {
    return address;
  }
  return new URL(`http://[${address}]/`).hostname.slice(1, -1);
}

/**
 * Whether one of the authorities signed the first certificate, or an issuing authority between the two whose certificate follows
 * it: the judgement of TLS with `trusting`. Validity periods are not checked.
 */
export function isIssuedBy(chainPem: string, authoritiesPem: string): boolean {
  const [leaf, ...between] = parseCertificates(chainPem);
  if (leaf === undefined) {
    return false;
  }
  const authorities = parseCertificates(authoritiesPem, 'certificate authorities');
  const who = [[leaf, ...between], authorities].map((all) => all.map((one) => one.fingerprint256).join()).join(' by ');
  return verdicts.of(who, () => ({ isIssued: trustPath([leaf, ...between], authorities) !== undefined })).isIssued;
}

/**
 * Whether the private key belongs to the first certificate.
 * @throws PkiError when either does not parse
 */
export function isKeyOf(certificatePem: string, keyPem: string): boolean {
  const [leaf] = parseCertificates(certificatePem);
  return leaf?.checkPrivateKey(parsePrivateKey(keyPem)) ?? false;
}

/** The time to renew a certificate: after two thirds of its life. */
export function renewalTime({ notBefore, notAfter }: { notBefore: Date; notAfter: Date }): Date {
  return new Date(notBefore.getTime() + ((notAfter.getTime() - notBefore.getTime()) * 2) / 3);
}
