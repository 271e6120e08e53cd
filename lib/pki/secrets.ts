import { PkiError } from './errors.ts';
import { isKeyOf, parseCertificates } from './inspect.ts';
import type { KeyCertificate } from './issue.ts';
import { parsePrivateKey } from './keys.ts';
import { joinCertificates, splitCertificates } from './trust.ts';

/** The `data` of a Secret: base64 by key. */
export type SecretData = Readonly<Record<string, string>>;

const encode = (text: string) => Buffer.from(text).toString('base64');
const decode = (text: string) => Buffer.from(text, 'base64').toString('utf8');

/** `data` of a Secret of type `kubernetes.io/tls`. */
export function tlsSecretData(material: KeyCertificate): { 'tls.crt': string; 'tls.key': string } {
  return { 'tls.crt': encode(material.certificate), 'tls.key': encode(material.key) };
}

/**
 * The key pair of a Secret of type `kubernetes.io/tls`; undefined when a key is missing.
 * @throws PkiError when the pair does not parse or does not belong together
 */
export function tlsOfSecret(data: SecretData | undefined, what = 'Secret'): KeyCertificate | undefined {
  const certificate = secretText(data, 'tls.crt');
  const key = secretText(data, 'tls.key');
  if (!certificate || !key) {
    return undefined;
  }
  parseCertificates(certificate, `${what}, key tls.crt`);
  parsePrivateKey(key, `${what}, key tls.key`);
  if (!isKeyOf(certificate, key)) {
    throw new PkiError('KEY_MISMATCH', what, 'tls.key is not the private key of tls.crt');
  }
  return { certificate, key };
}

/** A key of a Secret as text. */
export function secretText(data: SecretData | undefined, key: string): string | undefined {
  const value = data?.[key];
  return value === undefined ? undefined : decode(value);
}

/**
 * The authorities that a Secret names, as one PEM text.
 *
 * `principal`: keys `tls.crt` and `ca.crt`, each may hold several, at least one must exist. `agent`: every key must hold
 * certificates. Both as argocd-agent's two sides read `argocd-agent-ca`.
 * @throws PkiError BAD_CERTIFICATE
 */
export function authoritiesOfSecret(
  data: SecretData | undefined,
  reader: 'principal' | 'agent',
  what = 'Secret',
): string {
  const keys = reader === 'agent' ? Object.keys(data ?? {}).sort() : ['tls.crt', 'ca.crt'].filter((key) => data?.[key]);
  if (keys.length === 0) {
    const wanted = reader === 'agent' ? 'a key with certificates' : 'tls.crt or ca.crt';
    throw new PkiError('BAD_CERTIFICATE', what, `has no ${wanted}`);
  }
  return joinCertificates(
    ...keys.flatMap((key) => splitCertificates(secretText(data, key) ?? '', `${what}, key ${key}`)),
  );
}
