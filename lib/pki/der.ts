/*
 * As much of DER, the encoding of ASN.1 in certificates (X.690), as writing a certificate takes.
 */

const tags = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  oid: 0x06,
  utf8String: 0x0c,
  printableString: 0x13,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

/** One element: its tag, its length, its contents one after the other. */
export function element(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const length = contents.reduce((sum, { byteLength }) => sum + byteLength, 0);
  return Buffer.concat([Buffer.from([tag, ...lengthBytes(length)]), ...contents]);
}

function lengthBytes(length: number): number[] {
  if (length < 0x80) return [length];
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return [0x80 + bytes.length, ...bytes];
}

export const sequence = (...contents: readonly Uint8Array[]) => element(tags.sequence, ...contents);
export const set = (...contents: readonly Uint8Array[]) => element(tags.set, ...contents);
export const octetString = (content: Uint8Array) => element(tags.octetString, content);
export const nothing = element(tags.null);
export const yes = element(tags.boolean, Buffer.from([0xff]));

/** An element that the standard numbers by its place, around another one (`constructed`) or instead of its tag. */
export const numbered = (place: number, content: Uint8Array, { constructed }: { constructed: boolean }) =>
  element((constructed ? 0xa0 : 0x80) + place, content);

/** A positive number: big-endian, the first bit not set. */
export const integer = (bytes: Uint8Array) => element(tags.integer, bytes);

/** Bits; of the last byte the lowest ones may not count. */
export const bitString = (bytes: Uint8Array, unused = 0) => element(tags.bitString, Buffer.from([unused]), bytes);

/** An object identifier from its dotted form. */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second, ...rest].flatMap((number) => {
    const septets = [number % 128];
    for (let left = Math.floor(number / 128); left > 0; left = Math.floor(left / 128)) {
      septets.unshift((left % 128) + 128);
    }
    return septets;
  });
  return element(tags.oid, Buffer.from(bytes));
}

/** A text in the form that Go chooses, too: printable where its characters allow it. */
export function text(value: string): Buffer {
  const isPrintable = /^[A-Za-z0-9 '()+,\-./:=?]*$/.test(value);
  return element(isPrintable ? tags.printableString : tags.utf8String, Buffer.from(value, 'utf8'));
}

/** A time in whole seconds, rounded down; in the form that RFC 5280, 4.1.2.5 demands for its year. */
export function time(date: Date): Buffer {
  const digits = date.toISOString().replace(/\.\d+/, '').replaceAll(/[-:T]/g, '');
  const isNear = date.getUTCFullYear() >= 1950 && date.getUTCFullYear() < 2050;
  return isNear
    ? element(tags.utcTime, Buffer.from(digits.slice(2), 'latin1'))
    : element(tags.generalizedTime, Buffer.from(digits, 'latin1'));
}

/** An element that was read. */
export interface Element {
  readonly tag: number;
  readonly content: Buffer;
  /** With tag and length. */
  readonly whole: Buffer;
}

/**
 * Reads the elements of which some bytes consist, not what is in them.
 * @throws RangeError when one is longer than the bytes
 */
export function elementsOf(bytes: Buffer): Element[] {
  const found: Element[] = [];
  for (let at = 0; at < bytes.length; ) {
    const first = bytes.readUInt8(at + 1);
    const more = first < 0x80 ? 0 : first - 0x80;
    const length = more === 0 ? first : bytes.readUIntBE(at + 2, more);
    const begin = at + 2 + more;
    if (begin + length > bytes.length) throw new RangeError('a DER element is longer than what holds it');
    found.push({
      tag: bytes.readUInt8(at),
      content: bytes.subarray(begin, begin + length),
      whole: bytes.subarray(at, begin + length),
    });
    at = begin + length;
  }
  return found;
}
