import type { KubeObject, Secret } from '../../lib/kube/index.ts';
import { decodeSecret } from '../../lib/ops/index.ts';
import { inspectCertificate } from '../../lib/pki/index.ts';
import { shownAnnotations, shownFields, shownMaps } from './shown-fields.ts';

/** `https://user:password@host`: the part before the host. */
const inUrl = /(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@"']+@/gi;
/** The query and the fragment of a URL. */
const afterUrl = /(\b[a-z][a-z0-9+.-]*:\/\/[^\s?#"']+)[?#][^\s"']+/gi;
const pem = /-----BEGIN ([A-Z ]*PRIVATE KEY)-----[\s\S]*?-----END \1-----/g;
const bearer = /\b(bearer\s+|eyJ[\w-]+\.)[\w.-]{8,}/gi;
/** What a program may say of a setting. */
const setting =
  /\b([\w.-]*(?:pass|secret|token|pwd|apikey|api_key|credential)[\w.-]*["']?\s*[:=]\s*)("[^"\n]*"|'[^'\n]*'|[^\s,;}"']+)/gi;
const gone = '<redacted>';

/**
 * A text of a program without the credentials that it may hold: private keys, tokens, passwords in URLs and after their names.
 * Texts are judged by how they look; what objects hold is not, see {@link redacted}.
 */
export function redactText(text: string): string {
  return text
    .replace(pem, gone)
    .replace(inUrl, `$1${gone}@`)
    .replace(afterUrl, `$1?${gone}`)
    .replace(bearer, gone)
    .replace(setting, `$1${gone}`);
}

/**
 * An object without what nobody else may see. Only fields stay that hold names, addresses, states and messages
 * ({@link shownFields}); of everything else only what it is. Of a Secret only names and sizes of its values, and its
 * certificates, stay; of a ConfigMap names and sizes.
 */
export function redacted(object: KubeObject): unknown {
  const { data, binaryData, stringData, ...rest } = object as KubeObject & Partial<Record<string, unknown>>;
  const shown = shownOf(rest) as object;
  if (object.kind === 'Secret') {
    return { ...shown, ...contentOf(object as Secret) };
  }
  return { ...shown, ...sizesOf({ data, binaryData, stringData }) };
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
  return { data: Object.fromEntries(sizes), certificates: Object.fromEntries(certificates) };
}

/** Maps whose names are settings and whose values may be anything. */
function sizesOf(maps: Readonly<Record<string, unknown>>): object {
  const given = Object.entries(maps).filter((entry): entry is [string, object] => isObject(entry[1]));
  return Object.fromEntries(
    given.map(([name, map]) => [
      name,
      Object.fromEntries(Object.entries(map).map(([key, value]) => [key, isSwitch(value) ? value : summaryOf(value)])),
    ]),
  );
}

function isSwitch(value: unknown): boolean {
  return value === 'true' || value === 'false' || value === '';
}

function shownOf(value: unknown): unknown {
  if (typeof value === 'string') {
    return redactText(value);
  }
  if (Array.isArray(value)) {
    return value.map(shownOf);
  }
  if (!isObject(value)) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== 'managedFields')
      .map(([key, each]) => [key, fieldOf(key, each)]),
  );
}

function fieldOf(key: string, value: unknown): unknown {
  if (key === 'annotations' && isObject(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([name, text]) => [name, shownAnnotations.has(name) ? text : summaryOf(text)]),
    );
  }
  if (shownMaps.has(key) && isObject(value)) {
    return value;
  }
  return shownFields.has(key) ? shownOf(value) : summaryOf(value);
}

/** What a value is, and how large, without the value. Numbers and switches hold nothing. */
function summaryOf(value: unknown): unknown {
  if (typeof value === 'string') {
    return `${gone} ${value.length} characters`;
  }
  if (Array.isArray(value)) {
    return `${gone} ${value.length} items`;
  }
  return isObject(value) ? `${gone} ${Object.keys(value).length} fields` : value;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
