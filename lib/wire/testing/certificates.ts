import { isIP } from 'node:net';
import 'reflect-metadata';
import { generateKeyPairSync, webcrypto } from 'node:crypto';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

// Certificates and keys for the tests of this package, generated on demand.

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const day = 24 * 60 * 60 * 1000;

/** A certificate and its key, in PEM form. */
export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
}

/** A certificate authority for a test. */
export interface TestCa {
  readonly cert: string;
  issue(options: {
    readonly subject: string;
    readonly names?: readonly string[];
    readonly uri?: string;
    readonly notAfter?: Date;
    readonly usage?: 'client' | 'server';
  }): Promise<TestCertificate>;
}

/** Makes a CA. The empty name: one without a subject. */
export async function createTestCa(name = 'test CA'): Promise<TestCa> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: name === '' ? '' : `CN=${name}`,
    keys,
    notBefore: new Date(Date.now() - 2 * day),
    notAfter: new Date(Date.now() + day),
    signingAlgorithm: algorithm,
    extensions: [new BasicConstraintsExtension(true, undefined, true)],
  });
  return {
    cert: certificate.toString('pem'),
    async issue({ subject, names = [], uri, notAfter, usage = 'client' }) {
      const own = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
      const purpose = usage === 'client' ? ExtendedKeyUsage.clientAuth : ExtendedKeyUsage.serverAuth;
      const alternatives = [
        ...names.map((value) => ({ type: isIP(value) !== 0 ? ('ip' as const) : ('dns' as const), value })),
        ...(uri === undefined ? [] : [{ type: 'url' as const, value: uri }]),
      ];
      const leaf = await X509CertificateGenerator.create({
        subject,
        issuer: certificate.subject,
        publicKey: own.publicKey,
        signingKey: keys.privateKey,
        signingAlgorithm: algorithm,
        notBefore: new Date(Date.now() - 2 * day),
        notAfter: notAfter ?? new Date(Date.now() + day),
        extensions: [
          new ExtendedKeyUsageExtension([purpose]),
          ...(alternatives.length === 0 ? [] : [new SubjectAlternativeNameExtension(alternatives)]),
        ],
      });
      return { cert: pemOf(leaf), key: await pemOfKey(own.privateKey) };
    },
  };
}

/** An RSA key as tokens are signed with, PKCS#8 PEM. */
export function createSigningKey(): string {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

function pemOf(certificate: X509Certificate): string {
  return certificate.toString('pem');
}

async function pemOfKey(key: webcrypto.CryptoKey): Promise<string> {
  return PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');
}
