import type { KubeObject, Secret } from '../../lib/kube/index.ts';
import { decodeSecret } from '../../lib/ops/index.ts';
import { inspectCertificate } from '../../lib/pki/index.ts';

const secretName = /passw|passphrase|token|secret|credential|private|apikey|api-key|\bauth\b/i;
/** `https://user:password@host`: the part before the host. */
const inUrl = /(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@"']+@/gi;
const pem = /-----BEGIN ([A-Z ]*PRIVATE KEY)-----[\s\S]*?-----END \1-----/g;
const bearer = /\b(bearer\s+|eyJ[\w-]+\.)[\w.-]{8,}/gi;
const gone = '<redacted>';

/** A text without the credentials that it may hold: private keys, tokens, passwords in URLs. */
export function redactText(text: string): string {
  return text.replace(pem, gone).replace(inUrl, `$1${gone}@`).replace(bearer, gone);
}

/** An object without what nobody else may see. Of a Secret only names and sizes of its values, and its certificates, stay. */
export function redacted(object: KubeObject): unknown {
  const { managedFields: _, ...metadata } = object.metadata;
  const { 'kubectl.kubernetes.io/last-applied-configuration': __, ...annotations } = metadata.annotations ?? {};
  const slim = { ...object, metadata: { ...metadata, annotations } };
  if (object.kind === 'Secret') {
    return { ...slim, ...contentOf(object as Secret) };
  }
  return withoutSecrets(slim);
}

function contentOf(secret: Secret): object {
  const sizes = Object.entries(secret.data ?? {}).map(([key, value]) => [
    key,
    `${gone} ${Buffer.byteLength(value, 'base64')} bytes`,
  ]);
  const certificates = Object.entries(decodeSecret(secret)).flatMap(([key, text]) => {
    try {
      return text.includes('BEGIN CERTIFICATE') ? [[key, inspectCertificate(text)]] : [];
    } catch {
      return [[key, 'cannot be read']];
    }
  });
  return { data: Object.fromEntries(sizes), stringData: undefined, certificates: Object.fromEntries(certificates) };
}

/** Values whose key, or whose `name` beside them, says that they are secret are taken out, at any depth. */
function withoutSecrets(value: unknown): unknown {
  if (typeof value === 'string') {
    return redactText(value);
  }
  if (Array.isArray(value)) {
    return value.map(withoutSecrets);
  }
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  const { name } = value as { name?: unknown };
  const isNamed = typeof name === 'string' && secretName.test(name);
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => {
      const isSecret = typeof each === 'string' && ((isNamed && key === 'value') || secretName.test(key));
      // Names of Secrets are no secrets, and a supporter needs them.
      return [key, isSecret && !/name$|ref$/i.test(key) ? gone : withoutSecrets(each)];
    }),
  );
}
