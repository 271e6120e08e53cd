/**
 * Splits DER values that stand one after the other.
 * @throws Error when the bytes are not such values
 */
export function splitDer(bytes: Uint8Array): Uint8Array[] {
  const values: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + lengthAt(bytes, at);
    if (end > bytes.length) {
      throw new Error('a certificate is cut off');
    }
    values.push(bytes.subarray(at, end));
    at = end;
  }
  return values;
}

/** The whole length of the value that begins here, with its tag and its length field. */
function lengthAt(bytes: Uint8Array, at: number): number {
  const first = bytes[at + 1];
  if (bytes[at] !== 0x30 || first === undefined) {
    throw new Error('these are no certificates');
  }
  if (first < 0x80) {
    return 2 + first;
  }
  const size = first & 0x7f;
  if (size === 0 || size > 3 || at + 2 + size > bytes.length) {
    throw new Error('a certificate has a length that cannot be');
  }
  return 2 + size + bytes.subarray(at + 2, at + 2 + size).reduce((sum, byte) => sum * 256 + byte, 0);
}

/** A DER value as PEM. */
export function pemOf(label: 'CERTIFICATE' | 'PRIVATE KEY', der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}
