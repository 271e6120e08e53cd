import { hash } from 'node:crypto';
import { ExactInteger } from './exact-json.ts';

// What Go's encoding/json escapes beyond JSON itself, so that the text may stand in HTML and JavaScript.
const escapes: Readonly<Record<string, string>> = {
  '<': '\\u003c',
  '>': '\\u003e',
  '&': '\\u0026',
  '\u2028': '\\u2028',
  '\u2029': '\\u2029',
};

/**
 * The text that Go's `json.Marshal` makes of a JSON value: keys sorted bytewise, no white space, `<`, `>`, `&`, U+2028
 * and U+2029 escaped. Keys whose value is undefined are left out. Equal values give equal text.
 */
export function canonicalJson(value: unknown): string {
  if (typeof value === 'string') {
    return canonicalString(value);
  }
  if (value === null || value === undefined) {
    return 'null';
  }
  if (typeof value !== 'object') {
    return typeof value === 'number' && Object.is(value, -0) ? '-0' : String(value);
  }
  if (Array.isArray(value)) {
    return `[${value.map(canonicalJson).join(',')}]`;
  }
  if (value instanceof ExactInteger) {
    return value.text;
  }
  const object = value as Record<string, unknown>;
  let text = '';
  for (const key of Object.keys(object).sort(byBytes)) {
    const item = object[key];
    if (item !== undefined) {
      text += `${text === '' ? '' : ','}${canonicalString(key)}:${canonicalJson(item)}`;
    }
  }
  return `{${text}}`;
}

/** A short text that is equal for values with equal JSON (SHA-256 of the canonical text, base64). */
export function digestOf(value: unknown): string {
  return hash('sha256', canonicalJson(value), 'base64');
}

function canonicalString(text: string): string {
  const json = JSON.stringify(text.isWellFormed() ? text : text.toWellFormed());
  return /[<>&\u2028\u2029]/.test(json) ? json.replace(/[<>&\u2028\u2029]/g, (c) => escapes[c] ?? c) : json;
}

// UTF-16 order, which is JavaScript's, and UTF-8 order differ only where surrogates meet characters above them.
function byBytes(a: string, b: string): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) {
      return x >= 0xd800 && y >= 0xd800 ? Buffer.compare(Buffer.from(a), Buffer.from(b)) : x - y;
    }
  }
  return a.length - b.length;
}
