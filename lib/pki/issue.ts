import 'reflect-metadata';
import { createPublicKey, type KeyObject, randomBytes, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import * as x509 from '@peculiar/x509';
import { PkiError } from './errors.ts';
import {
  type CertificateUsage,
  canonicalAddress,
  inspectCertificate,
  isIssuedBy,
  isKeyOf,
  renewalTime,
} from './inspect.ts';
import { generatePrivateKey, type KeyAlgorithm, parsePrivateKey, privateKeyPem } from './keys.ts';

const crypto = webcrypto;

/** A certificate and its private key, both PEM. `certificate` may be a chain, leaf first. */
export interface KeyCertificate {
  readonly certificate: string;
  readonly key: string;
}

/** What a leaf certificate shall say. */
export interface CertificateRequest {
  readonly commonName: string;
  readonly organizations?: readonly string[];
  /** DNS names and IP addresses, mixed. */
  readonly hosts?: readonly string[];
  readonly usages: readonly CertificateUsage[];
}

const minute = 60_000;
const day = 24 * 60 * minute;

/** How far back a new certificate's life starts: peers whose clock runs late accept it at once. */
export const clockSkewMs = 5 * minute;

/** Lifetimes of the originals; `requestedMs` is that of OCM's signer for certificates that a cluster asks for. */
export const lifetimes = { authorityMs: 365 * day, leafMs: 30 * day, requestedMs: day } as const;

/**
 * Makes a self-signed certificate authority with an RSA key (OCM's signer takes no other).
 * @param options.commonName upstream's is `argocd-agent-ca@<unix seconds>`
 */
export async function createAuthority(options: {
  commonName: string;
  lifetimeMs?: number;
  now?: Date;
}): Promise<KeyCertificate> {
  const now = options.now ?? new Date();
  const key = await generatePrivateKey('rsa2048');
  const publicKey = x509PublicKey(key);
  const name = nameOf({ commonName: options.commonName });
  const certificate = await x509.X509CertificateGenerator.create(
    {
      serialNumber: serialNumber(),
      subject: name,
      issuer: name,
      notBefore: new Date(now.getTime() - clockSkewMs),
      notAfter: new Date(now.getTime() + (options.lifetimeMs ?? lifetimes.authorityMs)),
      publicKey,
      signingKey: await signingKey(key),
      extensions: [
        new x509.BasicConstraintsExtension(true, undefined, true),
        new x509.KeyUsagesExtension(
          x509.KeyUsageFlags.digitalSignature |
            x509.KeyUsageFlags.keyEncipherment |
            x509.KeyUsageFlags.keyCertSign |
            x509.KeyUsageFlags.cRLSign,
          true,
        ),
        await x509.SubjectKeyIdentifierExtension.create(publicKey, false, crypto),
      ],
    },
    crypto,
  );
  return { certificate: pem(certificate), key: privateKeyPem(key) };
}

/** What issuing takes besides the request. */
export interface IssueOptions {
  readonly authority: KeyCertificate;
  /** Default: `lifetimes.leafMs`. */
  readonly lifetimeMs?: number;
  readonly now?: Date;
}

/**
 * Issues a leaf certificate with a fresh key. It never outlives the authority.
 * @throws PkiError when the authority's material is unusable
 */
export async function issueCertificate(
  request: CertificateRequest & IssueOptions & { algorithm?: KeyAlgorithm },
): Promise<KeyCertificate> {
  const key = await generatePrivateKey(request.algorithm ?? 'rsa2048');
  return { certificate: await certify(x509PublicKey(key), request), key: privateKeyPem(key) };
}

/**
 * Issues a leaf certificate, PEM, for a key that somebody else holds. It never outlives the authority.
 * @throws PkiError when the authority's material is unusable
 */
export async function certify(publicKey: x509.PublicKey, request: CertificateRequest & IssueOptions): Promise<string> {
  const now = request.now ?? new Date();
  const issuer = inspectCertificate(request.authority.certificate, 'certificate authority');
  if (!issuer.isAuthority) {
    throw new PkiError('NOT_AN_AUTHORITY', 'certificate authority', `${issuer.commonName} may not sign certificates`);
  }
  if (!isKeyOf(request.authority.certificate, request.authority.key)) {
    throw new PkiError('KEY_MISMATCH', 'certificate authority', 'the private key belongs to another certificate');
  }
  const authorityCertificate = new x509.X509Certificate(firstBlock(request.authority.certificate));
  const authorityKey = parsePrivateKey(request.authority.key, 'key of the certificate authority');
  const end = Math.min(now.getTime() + (request.lifetimeMs ?? lifetimes.leafMs), issuer.notAfter.getTime());
  const hosts = [...new Set((request.hosts ?? []).map((host) => (isIP(host) ? canonicalAddress(host) : host)))].sort();
  const names = hosts.map((host) => ({ type: isIP(host) ? ('ip' as const) : ('dns' as const), value: host }));
  const usages = request.usages.map((usage) =>
    usage === 'server' ? x509.ExtendedKeyUsage.serverAuth : x509.ExtendedKeyUsage.clientAuth,
  );
  const certificate = await x509.X509CertificateGenerator.create(
    {
      serialNumber: serialNumber(),
      subject: nameOf(request),
      issuer: authorityCertificate.subjectName,
      notBefore: new Date(Math.max(now.getTime() - clockSkewMs, issuer.notBefore.getTime())),
      notAfter: new Date(end),
      publicKey,
      signingKey: await signingKey(authorityKey),
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyEncipherment, true),
        new x509.ExtendedKeyUsageExtension(usages),
        await x509.AuthorityKeyIdentifierExtension.create(authorityCertificate.publicKey, false, crypto),
        await x509.SubjectKeyIdentifierExtension.create(publicKey, false, crypto),
        ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : []),
      ],
    },
    crypto,
  );
  return pem(certificate);
}

/**
 * Why a certificate must be issued again, as a clause for a log line; undefined when it is good until its renewal time.
 * @param trusted PEM certificates of the authorities that may have signed it
 */
export function reasonToReissue(
  current: Partial<KeyCertificate> | undefined,
  wanted: CertificateRequest,
  trusted: string,
  now: Date = new Date(),
): string | undefined {
  if (!current?.certificate || !current.key) return 'there is none';
  try {
    const info = inspectCertificate(current.certificate);
    if (!isKeyOf(current.certificate, current.key)) return 'its key belongs to another certificate';
    if (!isIssuedBy(current.certificate, trusted)) return 'another authority signed it';
    if (info.commonName !== wanted.commonName) return `it is for ${info.commonName}`;
    if (!sameSet(info.organizations, wanted.organizations ?? [])) return 'its organizations differ';
    const hosts = new Set((wanted.hosts ?? []).map((host) => (isIP(host) ? canonicalAddress(host) : host)));
    if (!sameSet([...info.dnsNames, ...info.ipAddresses], [...hosts])) return 'its host names differ';
    if (wanted.usages.some((usage) => !info.usages.includes(usage))) return 'it lacks a usage';
    if (info.notAfter <= now) return 'it has expired';
    if (renewalTime(info) <= now) return 'two thirds of its life are over';
    return undefined;
  } catch (error) {
    if (error instanceof PkiError) return error.message;
    throw error;
  }
}

function sameSet(a: readonly string[], b: readonly string[]): boolean {
  const set = new Set(a);
  return set.size === new Set(b).size && b.every((value) => set.has(value));
}

function nameOf(subject: { commonName: string; organizations?: readonly string[] }): x509.JsonName {
  return [
    ...(subject.organizations ?? []).map((organization) => ({ O: [organization] })),
    { CN: [subject.commonName] },
  ];
}

/** A random positive number of 120 bits in hex. */
function serialNumber(): string {
  return `01${randomBytes(15).toString('hex')}`;
}

function x509PublicKey(key: KeyObject): x509.PublicKey {
  return new x509.PublicKey(new Uint8Array(createPublicKey(key).export({ type: 'spki', format: 'der' })));
}

async function signingKey(key: KeyObject): Promise<webcrypto.CryptoKey> {
  const algorithm =
    key.asymmetricKeyType === 'ec'
      ? { name: 'ECDSA', namedCurve: curveName(key), hash: 'SHA-256' }
      : { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' };
  return crypto.subtle.importKey(
    'pkcs8',
    new Uint8Array(key.export({ type: 'pkcs8', format: 'der' })),
    algorithm,
    false,
    ['sign'],
  );
}

function curveName(key: KeyObject): string {
  const curves: Readonly<Record<string, string>> = { prime256v1: 'P-256', secp384r1: 'P-384', secp521r1: 'P-521' };
  return curves[key.asymmetricKeyDetails?.namedCurve ?? ''] ?? 'P-256';
}

function firstBlock(text: string): string {
  const end = '-----END CERTIFICATE-----';
  return text.slice(0, text.indexOf(end) + end.length);
}

function pem(certificate: x509.X509Certificate): string {
  return `${certificate.toString('pem').trimEnd()}\n`;
}
