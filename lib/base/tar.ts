/** A file of an archive. */
export interface ArchivedFile {
  /** At most 100 bytes. */
  readonly path: string;
  readonly content: string | Uint8Array;
  /** Rights; by default the owner alone reads it. */
  readonly mode?: number;
}

const block = 512;

/** An archive in the form of POSIX ustar. @throws RangeError for a path that does not fit */
export function tarOf(files: readonly ArchivedFile[], at: Date): Buffer {
  const parts = files.flatMap(({ path, content, mode = 0o600 }) => {
    const body = typeof content === 'string' ? Buffer.from(content) : content;
    return [header(path, body.length, mode, at), body, Buffer.alloc((block - (body.length % block)) % block)];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * block)]);
}

function header(path: string, size: number, mode: number, at: Date): Buffer {
  if (Buffer.byteLength(path) > 100) {
    throw new RangeError(`${path} is longer than 100 bytes`);
  }
  const buffer = Buffer.alloc(block);
  const octal = (value: number, length: number) => `${value.toString(8).padStart(length - 1, '0')}\0`;
  buffer.write(path, 0);
  buffer.write(octal(mode, 8), 100);
  buffer.write(octal(0, 8), 108);
  buffer.write(octal(0, 8), 116);
  buffer.write(octal(size, 12), 124);
  buffer.write(octal(Math.floor(at.getTime() / 1_000), 12), 136);
  buffer.write(' '.repeat(8), 148);
  buffer.write('0', 156);
  buffer.write('ustar\x0000', 257);
  const sum = buffer.reduce((total, byte) => total + byte, 0);
  buffer.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return buffer;
}
