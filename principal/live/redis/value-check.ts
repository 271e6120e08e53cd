import { createGunzip } from 'node:zlib';

/** Most bytes of a value, unpacked: those of an Application with some thousand resources have a tenth. */
const mostBytes = 64 * 1024 * 1024;
/** As for messages of agents: what unpacks to more than this many times its size carries nothing. */
const mostRatio = 128;
const anyRatioBytes = 1024 * 1024;
/** Most JSON values. A resource in a tree has about 30; argocd-server takes hundreds of bytes for an empty one. */
const mostValues = 512 * 1024;
/** Deepest nesting. */
const mostDepth = 1_000;

/** A value of an agent's cache that Argo CD must not get. */
export class ValueRefusal extends Error {}

/**
 * Checks a value of an agent's cache before Argo CD reads it: it unpacks and parses it whole. It is unpacked piece by piece, and never
 * held.
 * @param sought what is looked for on the way
 * @returns whether the value, unpacked, contains it
 * @throws ValueRefusal
 */
export async function checkValue(key: string, value: Buffer, signal: AbortSignal, sought?: Buffer): Promise<boolean> {
  const content = new ContentCheck(value.length, key.endsWith('.gz'));
  let isFound = false;
  let before = Buffer.alloc(0);
  for await (const piece of key.endsWith('.gz') ? unpacked(value) : [value]) {
    signal.throwIfAborted();
    content.add(piece);
    if (sought !== undefined && !isFound) {
      const length = sought.length - 1;
      // It may begin in one piece and end in the next.
      isFound = piece.includes(sought) || Buffer.concat([before, piece.subarray(0, length)]).includes(sought);
      before = Buffer.concat([before, piece.subarray(-length)]).subarray(-length);
    }
  }
  return isFound;
}

/** @throws ValueRefusal for what is damaged */
async function* unpacked(value: Buffer): AsyncGenerator<Buffer> {
  const gunzip = createGunzip();
  gunzip.end(value);
  try {
    yield* gunzip as AsyncIterable<Buffer>;
  } catch (error) {
    throw new ValueRefusal('it is damaged', { cause: error });
  } finally {
    gunzip.destroy();
  }
}

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];

/** Counts what JSON holds, without a copy of it. Of bytes that are no JSON the result is arbitrary. */
class ContentCheck {
  readonly #most: number;
  readonly #packed: number;
  #bytes = 0;
  #values = 1;
  #depth = 0;
  #isText = false;
  #isEscape = false;

  constructor(packed: number, isCompressed: boolean) {
    this.#packed = packed;
    this.#most = isCompressed ? Math.min(mostBytes, Math.max(anyRatioBytes, mostRatio * packed)) : mostBytes;
  }

  add(piece: Buffer): void {
    this.#bytes += piece.length;
    if (this.#bytes > this.#most) {
      const times = `${mostRatio} times its ${this.#packed} bytes`;
      throw new ValueRefusal(`it unpacks to more than ${this.#most < mostBytes ? times : `${mostBytes} bytes`}`);
    }
    for (let at = 0; at < piece.length; at++) {
      const byte = piece[at];
      if (this.#isText) {
        at = this.#textFrom(piece, at);
      } else if (byte === quote) {
        this.#isText = true;
      } else if (byte === comma) {
        this.#values++;
      }
      // { and [ are 0x7b and 0x5b, } and ] are 0x7d and 0x5d.
      else if (byte === 0x7b || byte === 0x5b) {
        this.#values++;
        this.#depth++;
      } else if (byte === 0x7d || byte === 0x5d) {
        this.#depth--;
      }
      if (this.#values > mostValues) {
        throw new ValueRefusal(`it has more than ${mostValues} JSON values`);
      }
      if (this.#depth > mostDepth) {
        throw new ValueRefusal(`it is nested more than ${mostDepth} deep`);
      }
    }
  }

  /** Goes on in a text; returns the position of the byte that was looked at last. */
  #textFrom(piece: Buffer, from: number): number {
    for (let at = from; at < piece.length; at++) {
      const byte = piece[at];
      if (this.#isEscape) {
        this.#isEscape = false;
      } else if (byte === backslash) {
        this.#isEscape = true;
      } else if (byte === quote) {
        this.#isText = false;
        return at;
      }
    }
    return piece.length;
  }
}
