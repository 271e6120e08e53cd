/** The result of a scan whose text ends too early. */
export const incomplete = -1;

const [quote, backslash, colon, comma] = [34, 92, 58, 44];
const [openObject, closeObject] = [123, 125];
/** The brackets of objects and of arrays differ in one bit, so that one comparison covers both. */
const arrayBit = 32;
/** By these bits the two brackets of a kind differ. */
const pairBits = openObject ^ closeObject;
/** Kubernetes itself reads no JSON that is nested deeper. */
const deepest = 10_000;

/** What {@link JsonScan.object} tells of a member: the bytes of its key within the quotes, and where its value begins. */
export type JsonMember = (keyStart: number, keyEnd: number, valueStart: number, isKeyEscaped: boolean) => number;

/** JSON that was to be scanned is none. */
export class NoJsonError extends RangeError {
  override readonly name = 'NoJsonError';

  constructor() {
    super('the answer of the API server is no JSON');
  }
}

/**
 * Finds the ends of JSON values in UTF-8 without parsing them, which is ten times cheaper. Strings and brackets
 * must be valid, so that a parser finds the same ends; the text between them is not
 * checked.
 */
export class JsonScan {
  /** The open brackets. One below the depth limit is not stored, which is detected at its closing bracket. */
  readonly #open = new Uint8Array(deepest);

  /** Where the object ends that begins here; `member` is asked where each value ends, see {@link value}. @throws NoJsonError */
  object(bytes: Uint8Array, start: number, member: JsonMember): number {
    if (bytes[start] !== openObject) {
      throw new NoJsonError();
    }
    let at = afterSpace(bytes, start + 1);
    if (bytes[at] === closeObject) {
      return at + 1;
    }
    for (;;) {
      if (at >= bytes.length) {
        return incomplete;
      }
      if (bytes[at] !== quote) {
        throw new NoJsonError();
      }
      const keyStart = at + 1;
      at = afterString(bytes, at);
      if (at === incomplete) {
        return incomplete;
      }
      const keyEnd = at - 1;
      at = afterSpace(bytes, at);
      if (at >= bytes.length) {
        return incomplete;
      }
      if (bytes[at] !== colon) {
        throw new NoJsonError();
      }
      at = afterSpace(bytes, at + 1);
      at = member(keyStart, keyEnd, at, hasEscape(bytes, keyStart, keyEnd));
      if (at === incomplete) {
        return incomplete;
      }
      at = afterSpace(bytes, at);
      if (at >= bytes.length) {
        return incomplete;
      }
      if (bytes[at] === closeObject) {
        return at + 1;
      }
      if (bytes[at] !== comma) {
        throw new NoJsonError();
      }
      at = afterSpace(bytes, at + 1);
    }
  }

  /** Where the value ends that begins here. @throws NoJsonError */
  value(bytes: Uint8Array, start: number): number {
    const { length } = bytes;
    const open = this.#open;
    let depth = 0;
    let at = start;
    while (at < length) {
      const byte = bytes[at] as number;
      if (byte === quote) {
        at = afterString(bytes, at);
        if (depth === 0 || at === incomplete) {
          return at;
        }
        continue;
      }
      if ((byte | arrayBit) === openObject) {
        open[depth++] = byte;
      } else if ((byte | arrayBit) === closeObject) {
        // The end of the value that contains a number or a literal.
        if (depth === 0) {
          break;
        }
        depth--;
        if (((open[depth] ?? 0) ^ byte) !== pairBits) {
          throw new NoJsonError();
        }
        if (depth === 0) {
          return at + 1;
        }
      } else if (depth === 0 && (byte === comma || isSpace(byte))) {
        break;
      }
      at++;
    }
    if (at >= length) {
      return incomplete;
    }
    if (at === start) {
      throw new NoJsonError();
    }
    return at;
  }
}

/** Where the string ends whose quote stands here. */
function afterString(bytes: Uint8Array, start: number): number {
  const { length } = bytes;
  let at = start + 1;
  while (at < length) {
    const byte = bytes[at++];
    if (byte === quote) {
      return at;
    }
    if (byte === backslash) {
      at++;
    }
  }
  return incomplete;
}

function hasEscape(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    if (bytes[at] === backslash) {
      return true;
    }
  }
  return false;
}

/** The first byte from here on that is not white space. */
export function afterSpace(bytes: Uint8Array, start: number): number {
  let at = start;
  while (at < bytes.length && isSpace(bytes[at] as number)) {
    at++;
  }
  return at;
}

function isSpace(byte: number): boolean {
  return byte === 32 || byte === 10 || byte === 13 || byte === 9;
}
