import type { KubeObject, Secret } from '../../lib/kube/index.ts';
import { decodeSecret } from '../../lib/ops/index.ts';
import { inspectCertificate } from '../../lib/pki/index.ts';
import { shownAnnotations, shownFields, shownMaps } from './shown-fields.ts';

const gone = '<redacted>';

// Objects and programs have texts of anybody, so each of these takes time in proportion to the text: what may begin a match is never
// searched from again.
const keyBegins = /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----/g;
const keyEnds = /-----END [A-Z ]{0,40}PRIVATE KEY-----/g;
/** What a key that is cut off consists of. */
const keyBody = /[\w+/=\s\\]*/y;
/** `https://user:password@host`: the part before the host. */
const inUrl = /(?<=[a-z0-9+.-]:\/\/)[^\s/"']+@/gi;
const unquoted = /[^\s"']+/g;
const url = /[a-z0-9+.-]:\/\/[^?#]/i;
const bearer = /\bbearer\s+[\w.-]{8,}/gi;
const word = /[\w.-]+/g;
/** What a program may say of a setting. The name is looked at from its beginning alone. */
const setting =
  /(?<![\w.-])((?=[\w.-]*(?:pass|secret|token|pwd|apikey|api_key|credential))[\w.-]+(?:\\?["'])?\s*[:=]\s*)(\\?"[^"\n]*"?|\\?'[^'\n]*'?|[^\s,;}"']+)/gi;

/**
 * A text of a program without the credentials that it may hold: private keys, tokens, passwords in URLs and after their names.
 * Texts are judged by how they look; what objects hold is not, see {@link redacted}.
 */
export function redactText(text: string): string {
  return withoutKeys(text)
    .replace(inUrl, `${gone}@`)
    .replace(unquoted, withoutQuery)
    .replace(bearer, gone)
    .replace(word, withoutToken)
    .replace(setting, `$1${gone}`);
}

/** Private keys, up to their end; one without an end as far as it looks like a key. */
function withoutKeys(text: string): string {
  const ends = [...text.matchAll(keyEnds)].map((end) => end.index + end[0].length);
  let [shown, after, next] = ['', 0, 0];
  for (const { index, 0: begin } of text.matchAll(keyBegins)) {
    if (index < after) {
      continue;
    }
    while (ends[next] !== undefined && (ends[next] ?? 0) < index) {
      next += 1;
    }
    keyBody.lastIndex = index + begin.length;
    keyBody.test(text);
    shown += text.slice(after, index) + gone;
    after = ends[next] ?? keyBody.lastIndex;
  }
  return shown + text.slice(after);
}

/** A text without blanks and quotes: of a URL in it the query and the fragment are left out. */
function withoutQuery(text: string): string {
  const start = text.search(url);
  const query = start < 0 ? -1 : text.slice(start).search(/[?#]./);
  return query < 0 ? text : `${text.slice(0, start + query)}?${gone}`;
}

/** A word: from the first part of a JSON Web Token on it is left out. */
function withoutToken(text: string): string {
  const parts = text.split('.');
  let before = 0;
  for (const part of parts.slice(0, -1)) {
    const start = part.search(/(?:^|-)eyJ[\w-]/i);
    if (start >= 0) {
      const end = before + part.length + 1;
      return text.length - end < 8 ? text : text.slice(0, before + start + (part[start] === '-' ? 1 : 0)) + gone;
    }
    before += part.length + 1;
  }
  return text;
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
