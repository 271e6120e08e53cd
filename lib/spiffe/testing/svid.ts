import 'reflect-metadata';
import { createPrivateKey, webcrypto } from 'node:crypto';
import {
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import type { KeyCertificate } from '../../pki/index.ts';

const algorithm = { name: 'ECDSA', namedCurve: 'P-256' };
/** That of the authorities of `createAuthority`. */
const signing = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' };

/** An X.509-SVID: a certificate without a subject whose URI is a SPIFFE ID. */
export async function issueSvid(authority: KeyCertificate, id: string): Promise<KeyCertificate> {
  const issuer = new X509Certificate(authority.certificate);
  const der = createPrivateKey(authority.key).export({ type: 'pkcs8', format: 'der' });
  const signingKey = await webcrypto.subtle.importKey('pkcs8', new Uint8Array(der), signing, false, ['sign']);
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const now = Date.now();
  const certificate = await X509CertificateGenerator.create({
    subject: '',
    issuer: issuer.subject,
    notBefore: new Date(now - 60_000),
    notAfter: new Date(now + 3_600_000),
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: signing,
    extensions: [
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new SubjectAlternativeNameExtension([{ type: 'url', value: id }], true),
    ],
  });
  const key = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  return { certificate: certificate.toString('pem'), key: PemConverter.encode(key, 'PRIVATE KEY') };
}
