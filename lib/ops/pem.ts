import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import type { TextFields } from './reloadable.ts';

/** A certificate chain and its key, PEM. */
export interface TlsKeyPair {
  readonly cert: string;
  readonly key: string;
}

/**
 * The key pair in `tls.crt` and `tls.key`, checked: both parse, belong together, and the certificate has not expired.
 * @throws Error that says what is wrong
 */
export function parseKeyPair(fields: TextFields): TlsKeyPair {
  const cert = required(fields, 'tls.crt');
  const key = required(fields, 'tls.key');
  const leaf = certificatesOf('tls.crt', cert)[0];
  let matches = false;
  try {
    matches = leaf?.checkPrivateKey(createPrivateKey(key)) ?? false;
  } catch (error) {
    throw new Error(`tls.key is not a private key in PEM: ${(error as Error).message}`);
  }
  if (!matches) {
    throw new Error('tls.key is not the key of the certificate in tls.crt');
  }
  if (leaf !== undefined && leaf.validToDate.getTime() < Date.now()) {
    throw new Error(`the certificate in tls.crt expired at ${leaf.validToDate.toISOString()}`);
  }
  return { cert, key };
}

/**
 * The certificates to trust: those of all the named fields that exist, or of all fields when no names are given.
 * @throws Error when there is none or one does not parse
 */
export function parseTrust(fields: TextFields, names?: readonly string[]): string {
  const present = (names ?? Object.keys(fields)).filter((name) => fields[name] !== undefined);
  if (present.length === 0) {
    throw new Error(`has none of the fields ${(names ?? ['ca.crt']).join(', ')}`);
  }
  return present
    .map((name) => {
      const pem = required(fields, name);
      certificatesOf(name, pem);
      return pem.trim();
    })
    .join('\n');
}

/**
 * The RSA key in `jwt.key`: PKCS#8 PEM.
 * @throws Error that says what is wrong
 */
export function parseSigningKey(fields: TextFields): string {
  const pem = required(fields, 'jwt.key');
  if (!pem.includes('-----BEGIN PRIVATE KEY-----')) {
    throw new Error('jwt.key is not a private key in PKCS#8 PEM');
  }
  let type: string | undefined;
  try {
    type = createPublicKey(createPrivateKey(pem)).asymmetricKeyType;
  } catch (error) {
    throw new Error(`jwt.key cannot be read: ${(error as Error).message}`);
  }
  if (type !== 'rsa') {
    throw new Error(`jwt.key is a key of type ${type}, tokens are signed with RSA`);
  }
  return pem;
}

/**
 * The former signing key's public half in `jwt.previous.pub`, if there is one: what it signed still counts.
 * @throws Error that says what is wrong
 */
export function parseFormerKeys(fields: TextFields): string[] {
  const pem = fields['jwt.previous.pub'];
  if (pem === undefined || pem.trim() === '') {
    return [];
  }
  try {
    const { asymmetricKeyType: type } = createPublicKey(pem);
    if (type !== 'rsa') {
      throw new Error(`it is a key of type ${type}`);
    }
  } catch (error) {
    throw new Error(`jwt.previous.pub is no public RSA key in PEM: ${(error as Error).message}`);
  }
  return [pem];
}

function required(fields: TextFields, name: string): string {
  const value = fields[name];
  if (value === undefined || value.trim() === '') {
    throw new Error(`has no field ${name}`);
  }
  return value;
}

/**
 * The certificates in a PEM text, in order.
 * @throws Error that names `name` when there is none or one does not parse
 */
export function certificatesOf(name: string, pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) {
    throw new Error(`${name} holds no certificate in PEM`);
  }
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch (error) {
    throw new Error(`${name} holds a certificate that cannot be read: ${(error as Error).message}`);
  }
}
