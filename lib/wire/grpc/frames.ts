import { gzipSync } from 'node:zlib';
import { GrpcError, grpcStatus } from './status.ts';

const prefixBytes = 5;
/** Below this gzip only costs. */
const compressFromBytes = 1024;

/** Writes one gRPC message: a flag byte, the length, the bytes; compressed when asked and worth it. */
export function frameMessage(message: Uint8Array, compress: boolean): Buffer {
  const compressed = compress && message.byteLength >= compressFromBytes;
  const payload = compressed ? gzipSync(message, { level: 1 }) : message;
  const frame = Buffer.allocUnsafe(prefixBytes + payload.byteLength);
  frame[0] = compressed ? 1 : 0;
  frame.writeUInt32BE(payload.byteLength, 1);
  frame.set(payload, prefixBytes);
  return frame;
}

/** A message as it came. */
export interface Frame {
  readonly payload: Buffer;
  readonly isCompressed: boolean;
}

/** Cuts a byte stream into gRPC messages. Holds at most one unfinished message, bounded by `maxBytes`. */
export class FrameReader {
  readonly #maxBytes: number;
  /** Whether the peer announced gzip. */
  readonly #gzip: boolean;
  #chunks: Uint8Array[] = [];
  #buffered = 0;
  /** Bytes needed to go on: the prefix, or the prefix and the message. */
  #wanted = prefixBytes;

  constructor(options: { readonly maxBytes: number; readonly gzip: boolean }) {
    this.#maxBytes = options.maxBytes;
    this.#gzip = options.gzip;
  }

  /** Whether a message has begun and not ended. */
  get isMidMessage(): boolean {
    return this.#buffered > 0;
  }

  /** Bytes that wait for more. */
  get bufferedBytes(): number {
    return this.#buffered;
  }

  /**
   * Takes bytes and yields the messages that they complete. Who stops in between goes on with the next bytes, if only none.
   *
   * @throws GrpcError `resourceExhausted` for a message over the limit, `internal` for anything malformed
   */
  *push(chunk: Uint8Array): Generator<Frame> {
    this.#chunks.push(chunk);
    this.#buffered += chunk.byteLength;
    while (this.#buffered >= this.#wanted) {
      const bytes = this.#joined();
      const flag = bytes.readUInt8(0);
      const length = bytes.readUInt32BE(1);
      if (flag > 1) throw new GrpcError(grpcStatus.internal, `a message has the unknown flags ${flag}`);
      if (flag === 1 && !this.#gzip) {
        throw new GrpcError(grpcStatus.internal, 'a message is compressed without grpc-encoding: gzip');
      }
      if (length > this.#maxBytes) throw tooLarge(length, this.#maxBytes);
      const end = prefixBytes + length;
      if (bytes.length < end) {
        this.#wanted = end;
        return;
      }
      this.#chunks = bytes.length > end ? [bytes.subarray(end)] : [];
      this.#buffered = bytes.length - end;
      this.#wanted = prefixBytes;
      yield { payload: bytes.subarray(prefixBytes, end), isCompressed: flag === 1 };
    }
  }

  #joined(): Buffer {
    const [only] = this.#chunks;
    const bytes =
      this.#chunks.length === 1 && only !== undefined
        ? Buffer.from(only.buffer, only.byteOffset, only.byteLength)
        : Buffer.concat(this.#chunks, this.#buffered);
    this.#chunks = [bytes];
    return bytes;
  }
}

function tooLarge(length: number, limit: number): GrpcError {
  return new GrpcError(
    grpcStatus.resourceExhausted,
    `a message has ${length} bytes, more than the limit of ${limit} bytes`,
  );
}
