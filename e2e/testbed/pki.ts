import 'reflect-metadata';
import { generateKeyPairSync, randomBytes, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import * as x509 from '@peculiar/x509';

/** A certificate and its private key (PKCS #8), both PEM. */
export interface ClusterKeyPair {
  readonly certificate: string;
  readonly key: string;
}

/** What a certificate of a cluster's authority shall say. It serves for TLS clients and servers both. */
export interface CertificateSubject {
  readonly commonName: string;
  /** For a client: its groups. */
  readonly organizations?: readonly string[];
  /** For a server: its DNS names and IP addresses. */
  readonly hosts?: readonly string[];
}

const ecdsa = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const day = 24 * 60 * 60_000;

/** A cluster's certificate authority: whom it certifies, the cluster's API server knows by name and groups. */
export class Authority {
  readonly certificate: string;
  /** The authority's private key, PEM. */
  readonly key: string;
  readonly #certificate: x509.X509Certificate;
  readonly #signingKey: webcrypto.CryptoKey;

  private constructor(certificate: x509.X509Certificate, signingKey: webcrypto.CryptoKey, key: string) {
    this.#certificate = certificate;
    this.#signingKey = signingKey;
    this.certificate = `${certificate.toString('pem')}\n`;
    this.key = key;
  }

  /** Makes a new one with a P-256 key, valid for a year. */
  static async create(commonName: string): Promise<Authority> {
    const keys = await webcrypto.subtle.generateKey(ecdsa, true, ['sign', 'verify']);
    const certificate = await x509.X509CertificateGenerator.createSelfSigned({
      serialNumber: serialNumber(),
      name: [{ CN: [commonName] }],
      ...validity(),
      signingAlgorithm: ecdsa,
      keys,
      extensions: [
        new x509.BasicConstraintsExtension(true, undefined, true),
        new x509.KeyUsagesExtension(
          x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign | x509.KeyUsageFlags.digitalSignature,
          true,
        ),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    });
    return new Authority(certificate, keys.privateKey, await privateKeyPem(keys.privateKey));
  }

  /** The authority of this certificate and key. */
  static async load({ certificate, key }: ClusterKeyPair): Promise<Authority> {
    const der = x509.PemConverter.decodeFirst(key);
    const signingKey = await webcrypto.subtle.importKey('pkcs8', der, ecdsa, false, ['sign']);
    return new Authority(new x509.X509Certificate(certificate), signingKey, key);
  }

  /** Makes a key and certifies it. */
  async issue(subject: CertificateSubject): Promise<ClusterKeyPair> {
    const keys = await webcrypto.subtle.generateKey(ecdsa, true, ['sign', 'verify']);
    const hosts = (subject.hosts ?? []).map((host): x509.JsonGeneralName => {
      return { type: isIP(host) ? 'ip' : 'dns', value: host };
    });
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: serialNumber(),
      subject: [{ O: [...(subject.organizations ?? [])] }, { CN: [subject.commonName] }].filter(
        (part) => Object.values(part).flat().length > 0,
      ),
      issuer: this.#certificate.subjectName,
      ...validity(),
      signingAlgorithm: ecdsa,
      publicKey: keys.publicKey,
      signingKey: this.#signingKey,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth, x509.ExtendedKeyUsage.serverAuth]),
        await x509.AuthorityKeyIdentifierExtension.create(this.#certificate),
        ...(hosts.length > 0 ? [new x509.SubjectAlternativeNameExtension(hosts)] : []),
      ],
    });
    return { certificate: `${certificate.toString('pem')}\n`, key: await privateKeyPem(keys.privateKey) };
  }
}

/** A key pair for signing service account tokens, PEM. RSA: that is what verifiers of such tokens expect. */
export function serviceAccountKeys(): { publicKey: string; privateKey: string } {
  return generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
}

async function privateKeyPem(key: webcrypto.CryptoKey): Promise<string> {
  return `${x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY')}\n`;
}

const validity = () => ({ notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 365 * day) });

// The first byte is set: a number that is positive and has no leading zeros.
const serialNumber = () => `01${randomBytes(15).toString('hex')}`;
