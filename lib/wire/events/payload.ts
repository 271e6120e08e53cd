import { randomInt } from 'node:crypto';
import type { ZodType } from 'zod';
import { parseJson } from '../../base/index.ts';
import { WireError } from '../errors.ts';
import type { WireEvent } from './event.ts';
import { limitOf, type PayloadLimit } from './limits.ts';

/** Longest part of a payload in an error message. */
const quotedCharacters = 200;

/**
 * The payload, checked against the limits of its target and type, and then against a schema. Empty data reads as the empty
 * object, as it does for Go peers.
 *
 * @throws WireError `too-large` or `invalid-data`, naming the event and the invalid field. It quotes keys, never values,
 *   which may be secret
 */
export function dataOf<T>(event: WireEvent, schema: ZodType<T>): T {
  const what = `The payload of ${event.target} event ${event.type} ${event.eventId}`;
  const result = schema.safeParse(parseLimited(event.data, limitOf(event), what));
  if (result.success) {
    return result.data;
  }
  const [issue] = result.error.issues;
  const where = issue === undefined ? '' : `: ${issue.path.join('.') || '(root)'}: ${issue.message}`;
  const quoted = where.length > quotedCharacters ? `${where.slice(0, quotedCharacters)}…` : where;
  throw new WireError('invalid-data', `${what} does not have the expected form${quoted}`);
}

/** Deepest nesting of a payload. Recursive functions can handle several times this depth. */
const maxDepth = 1_000;
/**
 * Most different names of members. An Application has some hundreds, and those of its Helm values; each further one costs
 * the engine a hundred times as much as a value.
 */
const maxNames = 8 * 1024;
/** Most escapes in texts. An object of 1.5 MiB that is itself a text in JSON has half of them. */
const maxEscapes = 512 * 1024;
/** Most bytes for each of the accepted values, without the bytes of texts: numbers and punctuation, and no long spaces. */
const bytesPerValue = 16;

/**
 * Parses JSON from a peer. What it holds is counted before, in one pass over the bytes, so that parsing takes less than
 * 100 ms and a bounded amount of memory. Empty data reads as the empty object, as it does for Go peers.
 *
 * @param what names the JSON in errors
 * @throws WireError `too-large` or `invalid-data`
 */
export function parseLimited(json: Uint8Array, limit: PayloadLimit, what: string): unknown {
  if (json.byteLength > limit.bytes) {
    throw tooLarge(what, `${json.byteLength} bytes; ${limit.bytes} are accepted`);
  }
  if (json.byteLength === 0) {
    return {};
  }
  const bytes = Buffer.from(json.buffer, json.byteOffset, json.byteLength);
  new Structure(bytes, limit.values, what).check();
  try {
    return parseJson(bytes.toString('utf8'));
  } catch {
    throw new WireError('invalid-data', `${what} is not JSON`);
  }
}

function tooLarge(what: string, has: string): WireError {
  return new WireError('too-large', `${what} has ${has}`);
}

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const backslash = 0x5c;
/** A text of at least this length is searched for its end by native code. */
const longText = 64;
/** A peer that knew it could choose names that count as one. */
const hashSeed = randomInt(2 ** 31);

/** Counts what a JSON text holds. Of bytes that are no JSON the result is arbitrary. */
class Structure {
  readonly #json: Buffer;
  readonly #mostValues: number;
  readonly #what: string;
  readonly #names = new Set<number>();
  #escapes = 0;
  /** The position of a quote that was searched for once: a text may have an escape every few bytes. */
  #nextQuote = -1;

  constructor(json: Buffer, mostValues: number, what: string) {
    this.#json = json;
    this.#mostValues = mostValues;
    this.#what = what;
  }

  /** @throws WireError when a limit is exceeded */
  check(): void {
    const json = this.#json;
    const mostOther = bytesPerValue * this.#mostValues;
    let depth = 0;
    // Each value but the outermost follows a bracket or a comma.
    let values = 1;
    let other = 0;
    let [textStart, textEnd] = [0, 0];
    for (let at = 0; at < json.length; at++) {
      const byte = json[at];
      other++;
      if (byte === quote) {
        textStart = at + 1;
        textEnd = this.#endOfText(textStart);
        at = textEnd;
      } else if (byte === colon) {
        this.#addName(textStart, textEnd);
      } else if (byte === comma) {
        values++;
      }
      // { and [ are 0x7b and 0x5b, } and ] are 0x7d and 0x5d.
      else if (byte === 0x7b || byte === 0x5b) {
        values++;
        depth++;
        if (depth > maxDepth) {
          throw new WireError('invalid-data', `${this.#what} is nested more than ${maxDepth} deep`);
        }
      } else if (byte === 0x7d || byte === 0x5d) {
        depth--;
      }
      if (values > this.#mostValues) {
        throw tooLarge(this.#what, `more than ${this.#mostValues} values`);
      }
      if (other > mostOther) {
        throw tooLarge(this.#what, `more than ${mostOther} bytes beside its texts`);
      }
    }
  }

  #addName(start: number, end: number): void {
    let hash = hashSeed;
    for (let at = start; at < end; at++) {
      hash = Math.imul(hash ^ (this.#json[at] ?? 0), 0x01000193);
      hash ^= hash >>> 15;
    }
    this.#names.add(hash);
    if (this.#names.size > maxNames) {
      throw tooLarge(this.#what, `more than ${maxNames} different names`);
    }
  }

  /** The position of the quote that ends a text, or the end of the bytes. */
  #endOfText(start: number): number {
    const json = this.#json;
    let at = start;
    for (;;) {
      for (const pause = at + longText; at < pause; at++) {
        const byte = json[at];
        if (byte === backslash) {
          at++;
          this.#escapes++;
        } else if (byte === quote || byte === undefined) {
          return at;
        }
      }
      if (this.#escapes > maxEscapes) {
        throw tooLarge(this.#what, `more than ${maxEscapes} escapes`);
      }
      if (this.#nextQuote < at) {
        this.#nextQuote = json.indexOf(quote, at);
      }
      if (this.#nextQuote === -1) {
        return json.length;
      }
      const nextEscape = json.subarray(at, this.#nextQuote).indexOf(backslash);
      if (nextEscape === -1) {
        return this.#nextQuote;
      }
      at += nextEscape;
    }
  }
}
