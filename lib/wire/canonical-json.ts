import { createHash } from 'node:crypto';

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const escaped = /[\u0000-\u001f"\\<>&\u2028\u2029]|\p{Surrogate}/gu;

const shortEscapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
};

/**
 * JSON exactly as Go's `encoding/json` writes a decoded value: keys sorted by their bytes, no white space, `<`, `>`, `&`
 * and the two Unicode line ends escaped, numbers in Go's shortest form. Undefined properties are left out.
 */
export function canonicalJson(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (typeof value === 'string') return quote(value);
  if (typeof value === 'number') return formatNumber(value);
  if (typeof value === 'boolean' || typeof value === 'bigint') return String(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => compareBytes(a, b))
    .map(([key, member]) => `${quote(key)}:${canonicalJson(member)}`);
  return `{${members.join(',')}}`;
}

function quote(text: string): string {
  return `"${text.replace(escaped, escapeCharacter)}"`;
}

function escapeCharacter(character: string): string {
  const short = shortEscapes[character];
  if (short !== undefined) return short;
  const code = character.charCodeAt(0);
  // Half a surrogate pair is no text; Go replaces it.
  if (code >= 0xd800 && code <= 0xdfff) return '\\ufffd';
  return `\\u${code.toString(16).padStart(4, '0')}`;
}

/** JavaScript's shortest form is Go's: the same digits, an exponent below 1e-6 and from 1e21. */
function formatNumber(value: number): string {
  if (!Number.isFinite(value)) throw new TypeError('JSON has no number for infinity or NaN');
  return String(value);
}

/** Order of the UTF-8 bytes; JavaScript's own order of strings differs for characters beyond the basic plane. */
function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a, 'utf8'), Buffer.from(b, 'utf8'));
}

/** What identifies a resource in the checksum of a list. */
export interface ListedResource {
  /** `Application`, `AppProject`, `Repository` or `GPGKey`. */
  readonly kind: string;
  readonly name: string;
  /** The uid on the side where the resource originates. */
  readonly uid: string;
}

/**
 * The checksum over a set of resources in `request-synced-resource-list`; undefined for none (`null` in JSON).
 * Namespaces are left out, because they differ between the two sides.
 */
export function resourceListChecksum(resources: Iterable<ListedResource>): Buffer | undefined {
  const keys = Array.from(resources, ({ kind, name, uid }) => `${kind}/${name}/${uid}`).sort(compareBytes);
  return keys.length === 0 ? undefined : sha256(keys.join(''));
}

/** An object as its API server stores it, as far as its checksum needs it. */
export interface ChecksummedObject {
  readonly spec?: unknown;
  readonly data?: unknown;
}

/**
 * The checksum of a resource in `request-update`: over `spec` for Application and AppProject, over `data` for the
 * Secret of a Repository and the ConfigMap of GPGKey; without a top-level key `destination`, which is rewritten.
 *
 * @throws TypeError when the object has no such part (a GPGKey without data counts as empty)
 */
export function specChecksum(kind: string, object: ChecksummedObject): Buffer {
  const isData = kind === 'Repository' || kind === 'GPGKey';
  const part = isData ? object.data : object.spec;
  if (part === undefined && kind === 'GPGKey') return sha256('{}');
  if (typeof part !== 'object' || part === null || Array.isArray(part)) {
    throw new TypeError(`The ${kind} has no ${isData ? 'data' : 'spec'} to compute a checksum of`);
  }
  return sha256(canonicalJson({ ...part, destination: undefined }));
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest();
}
