import 'reflect-metadata';
import { createPublicKey, webcrypto as crypto, type KeyObject } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import { PkiError } from './errors.ts';
import { certify, type IssueOptions } from './issue.ts';

/** A certificate signing request whose signature has been checked: who sent it holds the key. */
export interface SigningRequest {
  readonly commonNames: readonly string[];
  readonly organizations: readonly string[];
  /** Types of the other attributes of the subject: `OU`, `C`, …. */
  readonly otherAttributes: readonly string[];
  readonly dnsNames: readonly string[];
  /** Alternative names other than DNS names, as `ip 10.0.0.1`. */
  readonly otherNames: readonly string[];
  /** What is wrong with the key; undefined when it is good enough to be certified. */
  readonly weakness: string | undefined;
  readonly publicKey: x509.PublicKey;
}

/** Makes a request, PKCS #10 in PEM, for a certificate of a P-256 key. */
export async function signingRequestFor(key: KeyObject, commonName: string): Promise<string> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const pkcs8 = new Uint8Array(key.export({ type: 'pkcs8', format: 'der' }));
  const spki = new Uint8Array(createPublicKey(key).export({ type: 'spki', format: 'der' }));
  const keys = {
    privateKey: await crypto.subtle.importKey('pkcs8', pkcs8, algorithm, false, ['sign']),
    publicKey: await crypto.subtle.importKey('spki', spki, algorithm, true, ['verify']),
  };
  const name = [{ CN: [commonName] }];
  const request = await x509.Pkcs10CertificateRequestGenerator.create(
    { name, keys, signingAlgorithm: algorithm },
    crypto,
  );
  return `${request.toString('pem').trimEnd()}\n`;
}

/** Longest request, in characters. One for an RSA key of 16,384 bits has 6,000. */
const maxCharacters = 16 * 1024;

/**
 * Reads a PKCS #10 request in PEM.
 * @throws PkiError BAD_REQUEST when it is too long, does not parse or its signature is not of its key
 */
export async function readSigningRequest(pem: string, what = 'certificate signing request'): Promise<SigningRequest> {
  const unusable = (message: string, cause?: unknown) => new PkiError('BAD_REQUEST', what, message, { cause });
  if (pem.length > maxCharacters) {
    throw unusable(`has ${pem.length} characters; ${maxCharacters} are accepted`);
  }
  let request: x509.Pkcs10CertificateRequest;
  try {
    request = new x509.Pkcs10CertificateRequest(pem);
  } catch (cause) {
    throw unusable('is no PKCS #10 request in PEM', cause);
  }
  const isSigned = await request.verify(crypto).catch(() => false);
  if (!isSigned) {
    throw unusable('is not signed with its own key');
  }
  try {
    return contentOf(request);
  } catch (cause) {
    throw unusable('has a subject, an extension or a key that cannot be read', cause);
  }
}

function contentOf(request: x509.Pkcs10CertificateRequest): SigningRequest {
  const subject = request.subjectName;
  const types = subject.toJSON().flatMap((relative) => Object.keys(relative));
  const names = [...request.extensions]
    .filter((extension) => extension instanceof x509.SubjectAlternativeNameExtension)
    .flatMap((extension) => extension.names.items);
  return {
    commonNames: subject.getField('CN'),
    organizations: subject.getField('O'),
    otherAttributes: types.filter((type) => type !== 'CN' && type !== 'O'),
    dnsNames: names.filter(({ type }) => type === 'dns').map(({ value }) => value),
    otherNames: names.filter(({ type }) => type !== 'dns').map(({ type, value }) => `${type} ${value}`),
    weakness: weaknessOf(request.publicKey),
    publicKey: request.publicKey,
  };
}

/**
 * Issues a client certificate, PEM, for the key of a request. Of the request nothing but the key is taken.
 * @throws PkiError when the authority's material is unusable
 */
export function certifyClient(
  request: SigningRequest,
  subject: { commonName: string; organizations: readonly string[] },
  options: IssueOptions,
): Promise<string> {
  return certify(new Uint8Array(request.publicKey.rawData), { ...subject, usages: ['client'], ...options });
}

function weaknessOf(key: x509.PublicKey): string | undefined {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = createPublicKey({
    key: Buffer.from(key.rawData),
    format: 'der',
    type: 'spki',
  });
  if (type === 'rsa') {
    const bits = details?.modulusLength ?? 0;
    return bits < 2048 ? `an RSA key of ${bits} bits is too short` : undefined;
  }
  if (type === 'ec') {
    const curve = details?.namedCurve ?? '';
    return /^(prime256v1|secp384r1|secp521r1)$/.test(curve) ? undefined : `the curve ${curve} is not supported`;
  }
  return type === 'ed25519' ? undefined : `a key of type ${type} is not supported`;
}
