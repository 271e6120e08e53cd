import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const day = 86_400_000;
const life = { notBefore: new Date(Date.now() - day), notAfter: new Date(Date.now() + day) };
const pair = () => webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
/** A root, an issuing authority below it, and certificates of that one for 127.0.0.1; `cert` ends with that of the issuing one. */
export async function createChain() {
  const [rootKeys, issuingKeys] = await Promise.all([pair(), pair()]);
  const signing = { ...life, signingAlgorithm: algorithm, signingKey: rootKeys.privateKey };
  const extensions = [new BasicConstraintsExtension(true, undefined, true)];
  const root = await X509CertificateGenerator.createSelfSigned({
    ...signing,
    name: 'CN=root',
    keys: rootKeys,
    extensions,
  });
  const issuing = await X509CertificateGenerator.create({
    ...signing,
    subject: 'CN=issuing',
    issuer: 'CN=root',
    publicKey: issuingKeys.publicKey,
    extensions,
  });
  const issue = async (subject: string, usage: string) => {
    const keys = await pair();
    const leaf = await X509CertificateGenerator.create({
      ...signing,
      signingKey: issuingKeys.privateKey,
      subject,
      issuer: 'CN=issuing',
      publicKey: keys.publicKey,
      extensions: [
        new ExtendedKeyUsageExtension([usage]),
        new SubjectAlternativeNameExtension([{ type: 'ip', value: '127.0.0.1' }]),
      ],
    });
    const key = PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY');
    return { cert: `${leaf.toString('pem')}\n${issuing.toString('pem')}`, leaf: leaf.toString('pem'), key };
  };
  const [server, agent] = await Promise.all([
    issue('CN=principal', ExtendedKeyUsage.serverAuth),
    issue('CN=edge', ExtendedKeyUsage.clientAuth),
  ]);
  return { root: root.toString('pem'), issuing: issuing.toString('pem'), server, agent };
}
