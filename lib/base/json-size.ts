import { ExactInteger } from './exact-json.ts';

const containerBytes = 48;
const propertyBytes = 16;
const elementBytes = 8;
const scalarBytes = 8;

/**
 * How much a JSON value takes, in bytes: its length as JSON, plus what its parts cost in memory beyond that. Many small parts
 * take far more memory than their text, so a limit on this number limits both.
 */
export function jsonSize(value: unknown): number {
  let size = 0;
  const rest: unknown[] = [value];
  while (rest.length > 0) {
    const next = rest.pop();
    if (typeof next === 'string') {
      size += 2 + textBytes(next);
    } else if (Array.isArray(next)) {
      size += containerBytes + elementBytes * next.length;
      for (const element of next) {
        rest.push(element);
      }
    } else if (next instanceof ExactInteger) {
      size += containerBytes + next.text.length;
    } else if (typeof next === 'object' && next !== null) {
      size += containerBytes;
      for (const [key, item] of Object.entries(next)) {
        size += propertyBytes + textBytes(key);
        rest.push(item);
      }
    } else {
      size += scalarBytes;
    }
  }
  return size;
}

const plain = /^[ !#-%'-;=?-[\]-~]*$/;

/** UTF-8 bytes of a text in JSON. Go, and so an API server, also escapes `<`, `>` and `&`. */
function textBytes(text: string): number {
  if (plain.test(text)) {
    return text.length;
  }
  let bytes = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === 0x22 || code === 0x5c) {
      bytes += 2;
    } else if (code < 0x20 || code === 0x3c || code === 0x3e || code === 0x26) {
      bytes += 6;
    } else {
      bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : 3;
    }
  }
  return bytes;
}
