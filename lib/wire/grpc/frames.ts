import { gzipSync } from 'node:zlib';
import { GrpcError, grpcStatus } from './status.ts';

const prefixBytes = 5;
/** Below this gzip only costs. */
const compressFromBytes = 1024;

/** The bytes of a message, whole or in the parts that follow each other. */
export type MessageBytes = Uint8Array | readonly Uint8Array[];

/** Writes one gRPC message: a flag byte, the length, the bytes; compressed when asked and worth it. */
export function frameMessage(message: MessageBytes, compress: boolean): Buffer {
  const parts = message instanceof Uint8Array ? [message] : message;
  let length = 0;
  for (const part of parts) {
    length += part.byteLength;
  }
  if (!compress || length < compressFromBytes) {
    return frame(0, parts, length);
  }
  const compressed = gzipSync(message instanceof Uint8Array ? message : Buffer.concat(parts, length), { level: 1 });
  return frame(1, [compressed], compressed.byteLength);
}

function frame(flag: 0 | 1, parts: readonly Uint8Array[], length: number): Buffer {
  const bytes = Buffer.allocUnsafe(prefixBytes + length);
  bytes[0] = flag;
  bytes.writeUInt32BE(length, 1);
  let at = prefixBytes;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.byteLength;
  }
  return bytes;
}

/** A message as it came. */
export interface Frame {
  readonly payload: Buffer;
  readonly isCompressed: boolean;
}

/** Smaller pieces of an unfinished message are copied together: each that is kept costs some 100 bytes beside its own. */
const blockBytes = 4 * 1024;
/** Pieces that an unfinished message may come in, beside one for every 64 bytes. Each costs the time of an event. */
const anyPieces = 1_024;
const leastPieceBytes = 64;

/** Cuts a byte stream into gRPC messages. An unfinished message is bounded by `maxBytes`, and so is the memory for it. */
export class FrameReader {
  readonly #maxBytes: number;
  /** Whether the peer announced gzip. */
  readonly #gzip: boolean;
  #chunks: Uint8Array[] = [];
  #buffered = 0;
  /** Pieces since the last message. */
  #pieces = 0;
  /** The last of the chunks is a part of this block, if there is one: its first `#filled` bytes. */
  #block: Buffer | undefined;
  #filled = 0;
  /** Bytes needed to go on: the prefix, or the prefix and the message. */
  #wanted = prefixBytes;

  constructor(options: { readonly maxBytes: number; readonly gzip: boolean }) {
    this.#maxBytes = options.maxBytes;
    this.#gzip = options.gzip;
  }

  /** Whether bytes are left: a message has begun and not ended, if `next` was called until it had none. */
  get isMidMessage(): boolean {
    return this.#buffered > 0;
  }

  /** Bytes that wait for more. */
  get bufferedBytes(): number {
    return this.#buffered;
  }

  /** Takes bytes. */
  push(chunk: Uint8Array): void {
    this.#buffered += chunk.byteLength;
    this.#pieces++;
    if (this.#chunks.length === 0 || chunk.byteLength >= blockBytes) {
      this.#chunks.push(chunk);
      this.#block = undefined;
      return;
    }
    if (this.#block === undefined || this.#filled + chunk.byteLength > blockBytes) {
      this.#block = Buffer.allocUnsafeSlow(blockBytes);
      this.#filled = 0;
      this.#chunks.push(this.#block);
    }
    this.#block.set(chunk, this.#filled);
    this.#filled += chunk.byteLength;
    this.#chunks[this.#chunks.length - 1] = this.#block.subarray(0, this.#filled);
  }

  /**
   * The next message that is complete; undefined when more bytes are needed.
   *
   * @throws GrpcError `resourceExhausted` for a message over the limit, `internal` for anything malformed,
   *   `invalidArgument` for one in pieces of a few bytes
   */
  next(): Frame | undefined {
    if (this.#pieces > anyPieces + this.#buffered / leastPieceBytes) {
      throw new GrpcError(grpcStatus.invalidArgument, `a message comes in ${this.#pieces} pieces of a few bytes`);
    }
    if (this.#buffered < this.#wanted) {
      return undefined;
    }
    const bytes = this.#joined();
    const flag = bytes.readUInt8(0);
    const length = bytes.readUInt32BE(1);
    if (flag > 1) {
      throw new GrpcError(grpcStatus.internal, `a message has the unknown flags ${flag}`);
    }
    if (flag === 1 && !this.#gzip) {
      throw new GrpcError(grpcStatus.internal, 'a message is compressed without grpc-encoding: gzip');
    }
    if (length > this.#maxBytes) {
      throw tooLarge(length, this.#maxBytes);
    }
    const end = prefixBytes + length;
    if (bytes.length < end) {
      this.#wanted = end;
      return undefined;
    }
    this.#chunks = bytes.length > end ? [bytes.subarray(end)] : [];
    this.#buffered = bytes.length - end;
    this.#pieces = 0;
    this.#wanted = prefixBytes;
    return { payload: bytes.subarray(prefixBytes, end), isCompressed: flag === 1 };
  }

  #joined(): Buffer {
    const [only] = this.#chunks;
    const bytes =
      this.#chunks.length === 1 && only !== undefined
        ? Buffer.from(only.buffer, only.byteOffset, only.byteLength)
        : Buffer.concat(this.#chunks, this.#buffered);
    this.#chunks = [bytes];
    this.#block = undefined;
    return bytes;
  }
}

function tooLarge(length: number, limit: number): GrpcError {
  return new GrpcError(
    grpcStatus.resourceExhausted,
    `a message has ${length} bytes, more than the limit of ${limit} bytes`,
  );
}
