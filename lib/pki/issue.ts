import 'reflect-metadata';
import { createPublicKey, type KeyObject, randomBytes, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import * as x509 from '@peculiar/x509';
import { PkiError } from './errors.ts';
import {
  type CertificateInfo,
  type CertificateUsage,
  canonicalAddress,
  inspectCertificate,
  isIssuedBy,
  isKeyOf,
  parseCertificates,
  renewalTime,
} from './inspect.ts';
import { generatePrivateKey, type KeyAlgorithm, parsePrivateKey, privateKeyPem } from './keys.ts';
import { certificatePem, type Issuer, issuerOf, signLeaf, signOwn } from './leaf.ts';

const crypto = webcrypto;

/** A certificate and its private key, both PEM. `certificate` may be a chain, leaf first. */
export interface KeyCertificate {
  readonly certificate: string;
  readonly key: string;
}

/** The content of a leaf certificate. */
export interface CertificateRequest {
  readonly commonName: string;
  readonly organizations?: readonly string[];
  /** DNS names and IP addresses, mixed. */
  readonly hosts?: readonly string[];
  readonly usages: readonly CertificateUsage[];
}

const minute = 60_000;
const day = 24 * 60 * minute;

/** How far in the past a new certificate's life starts, so that peers with a slow clock accept it at once. */
export const clockSkewMs = 5 * minute;

/** Lifetimes of the originals; `requestedMs` is that of OCM's signer for certificates that a cluster requests. */
export const lifetimes = { authorityMs: 365 * day, leafMs: 30 * day, requestedMs: day } as const;

/** How WebCrypto names what an authority signs with, by the algorithm of its key. */
function signingAlgorithm(algorithm: KeyAlgorithm): { name: string; hash?: string; namedCurve?: string } {
  if (algorithm === 'ed25519') {
    return { name: 'Ed25519' };
  }
  return algorithm.startsWith('rsa')
    ? { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
    : { name: 'ECDSA', hash: 'SHA-256', namedCurve: `P-${algorithm.slice(1)}` };
}

/**
 * Makes a self-signed certificate authority, with an RSA key unless another is asked for: OCM's signer takes no other.
 * @param options.commonName the original's is `argocd-agent-ca@<unix seconds>`
 */
export async function createAuthority(options: {
  commonName: string;
  organizations?: readonly string[];
  algorithm?: KeyAlgorithm;
  lifetimeMs?: number;
  now?: Date;
}): Promise<KeyCertificate> {
  const now = options.now ?? new Date();
  const { algorithm = 'rsa2048', organizations = [] } = options;
  const key = await generatePrivateKey(algorithm);
  const publicKey = new x509.PublicKey(publicKeyOf(key));
  const name: x509.JsonName = [...organizations.map((O) => ({ O: [O] })), { CN: [options.commonName] }];
  const certificate = await x509.X509CertificateGenerator.create(
    {
      serialNumber: serialNumber(),
      subject: name,
      issuer: name,
      notBefore: new Date(now.getTime() - clockSkewMs),
      notAfter: new Date(now.getTime() + (options.lifetimeMs ?? lifetimes.authorityMs)),
      publicKey,
      signingKey: await crypto.subtle.importKey(
        'pkcs8',
        new Uint8Array(key.export({ type: 'pkcs8', format: 'der' })),
        signingAlgorithm(algorithm),
        false,
        ['sign'],
      ),
      signingAlgorithm: signingAlgorithm(algorithm),
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
  return { certificate: certificatePem(new Uint8Array(certificate.rawData)), key: privateKeyPem(key) };
}

/** Options of issuing. */
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
  return { certificate: await certify(publicKeyOf(key), request), key: privateKeyPem(key) };
}

/**
 * Issues a leaf certificate, PEM, for the public key of another party. It never outlives the authority.
 * @param publicKey DER, as SubjectPublicKeyInfo
 * @throws PkiError when the authority's material is unusable
 */
export async function certify(publicKey: Uint8Array, request: CertificateRequest & IssueOptions): Promise<string> {
  const now = request.now ?? new Date();
  const { issuer, life } = signerOf(request.authority);
  const end = Math.min(now.getTime() + (request.lifetimeMs ?? lifetimes.leafMs), life.notAfter.getTime());
  const leaf = {
    commonName: request.commonName,
    organizations: request.organizations ?? [],
    hosts: [...new Set((request.hosts ?? []).map((host) => (isIP(host) ? canonicalAddress(host) : host)))].sort(),
    usages: request.usages,
    notBefore: new Date(Math.max(now.getTime() - clockSkewMs, life.notBefore.getTime())),
    notAfter: new Date(end),
    publicKey,
  };
  return certificatePem(await signLeaf(leaf, issuer));
}

/**
 * Makes a certificate that its own key (P-256) signs, for both ends of TLS. Nobody can verify it by an authority: who trusts it knows
 * its fingerprint. Its validity counts for nothing then; it is ten years.
 */
export async function selfSignedCertificate(commonName: string): Promise<KeyCertificate> {
  const key = await generatePrivateKey('p256');
  const now = Date.now();
  const leaf = {
    commonName,
    organizations: [],
    hosts: [],
    usages: ['server', 'client'],
    notBefore: new Date(now - day),
    notAfter: new Date(now + 3_650 * day),
    publicKey: publicKeyOf(key),
  } as const;
  return { certificate: certificatePem(await signOwn(leaf, key)), key: privateKeyPem(key) };
}

interface Signer {
  readonly issuer: Issuer;
  readonly life: Pick<CertificateInfo, 'notBefore' | 'notAfter'>;
}

/** One authority signs for hundreds of clusters in a row; its parsed form is cached with the object. */
const signers = new WeakMap<KeyCertificate, Signer>();

function signerOf(authority: KeyCertificate): Signer {
  const known = signers.get(authority);
  if (known) {
    return known;
  }
  const what = 'certificate authority';
  const life = inspectCertificate(authority.certificate, what);
  if (!life.isAuthority) {
    throw new PkiError('NOT_AN_AUTHORITY', what, `${life.commonName} may not sign certificates`);
  }
  if (!isKeyOf(authority.certificate, authority.key)) {
    throw new PkiError('KEY_MISMATCH', what, 'the private key belongs to another certificate');
  }
  const [certificate] = parseCertificates(authority.certificate, what);
  if (certificate === undefined) {
    throw new PkiError('BAD_CERTIFICATE', what, 'holds no certificate in PEM form');
  }
  const signer = { issuer: issuerOf(certificate, parsePrivateKey(authority.key, `key of the ${what}`)), life };
  signers.set(authority, signer);
  return signer;
}

/**
 * Why a certificate must be issued again, as a clause for a log line; undefined while it is valid and its renewal time has
 * not come.
 * @param trusted PEM certificates of the authorities that may have signed it
 */
export function reasonToReissue(
  current: Partial<KeyCertificate> | undefined,
  wanted: CertificateRequest,
  trusted: string,
  now: Date = new Date(),
): string | undefined {
  if (!current?.certificate || !current.key) {
    return 'there is none';
  }
  try {
    const info = inspectCertificate(current.certificate);
    if (!isKeyOf(current.certificate, current.key)) {
      return 'its key belongs to another certificate';
    }
    if (!isIssuedBy(current.certificate, trusted)) {
      return 'another authority signed it';
    }
    if (info.commonName !== wanted.commonName) {
      return `it is for ${info.commonName}`;
    }
    if (!sameSet(info.organizations, wanted.organizations ?? [])) {
      return 'its organizations differ';
    }
    const hosts = new Set((wanted.hosts ?? []).map((host) => (isIP(host) ? canonicalAddress(host) : host)));
    if (!sameSet([...info.dnsNames, ...info.ipAddresses], [...hosts])) {
      return 'its host names differ';
    }
    if (wanted.usages.some((usage) => !info.usages.includes(usage))) {
      return 'it lacks a usage';
    }
    if (info.notBefore > now) {
      return 'its life has not begun: a clock was ahead when it was made';
    }
    if (info.notAfter <= now) {
      return 'it has expired';
    }
    if (renewalTime(info) <= now) {
      return 'two thirds of its life are over';
    }
    return undefined;
  } catch (error) {
    if (error instanceof PkiError) {
      return error.message;
    }
    throw error;
  }
}

function sameSet(a: readonly string[], b: readonly string[]): boolean {
  const set = new Set(a);
  return set.size === new Set(b).size && b.every((value) => set.has(value));
}

/** A random positive number of 120 bits in hex. */
function serialNumber(): string {
  return `01${randomBytes(15).toString('hex')}`;
}

function publicKeyOf(key: KeyObject): Uint8Array<ArrayBuffer> {
  return new Uint8Array(createPublicKey(key).export({ type: 'spki', format: 'der' }));
}
