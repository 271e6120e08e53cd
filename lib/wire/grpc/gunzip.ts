import { promisify } from 'node:util';
import { gunzip, gunzipSync } from 'node:zlib';
import { GrpcError, grpcStatus } from './status.ts';

/** What is unpacked at once, in a millisecond or so; more is left to another thread. */
const atOnceBytes = 512 * 1024;
/** Memory for what is unpacked is taken in pieces of this. */
const pieceBytes = 1024 * 1024;
const gunzipElsewhere = promisify(gunzip);

/**
 * Unpacks a gzip message, here and now.
 *
 * @throws GrpcError `resourceExhausted` when there is more in it than `maxBytes`, `internal` when it is damaged
 */
export function unpack(payload: Buffer, maxBytes: number): Buffer {
  try {
    return gunzipSync(payload, { maxOutputLength: Math.max(1, maxBytes) });
  } catch (error) {
    throw explained(error, maxBytes);
  }
}

/**
 * Unpacks a gzip message if there is little in it, whatever it says of itself; undefined when there is more.
 *
 * @throws GrpcError see {@link unpack}
 */
export function unpackLittle(payload: Buffer, maxBytes: number): Buffer | undefined {
  if (maxBytes <= atOnceBytes) {
    return unpack(payload, maxBytes);
  }
  // The last field of gzip is the size of what is in it: what claims to be large need not be tried.
  if (payload.length >= 4 && payload.readUInt32LE(payload.length - 4) > atOnceBytes) {
    return undefined;
  }
  try {
    return unpack(payload, atOnceBytes);
  } catch (error) {
    if (error instanceof GrpcError && error.code === grpcStatus.resourceExhausted) {
      return undefined;
    }
    throw error;
  }
}

/**
 * Unpacks gzip messages on another thread, one at a time: so many bytes are made of so few that several at once might take
 * all memory.
 */
export class Unpacker {
  #last: Promise<unknown> = Promise.resolve();

  /** `isWanted` is asked when its turn has come. @throws GrpcError see {@link unpack}; `canceled` when it is not wanted */
  unpack(payload: Buffer, maxBytes: number, isWanted: () => boolean): Promise<Buffer> {
    const turn = this.#last.then(async () => {
      if (!isWanted()) {
        throw new GrpcError(grpcStatus.canceled, 'nobody waits for the message');
      }
      try {
        return await gunzipElsewhere(payload, { maxOutputLength: Math.max(1, maxBytes), chunkSize: pieceBytes });
      } catch (error) {
        throw explained(error, maxBytes);
      }
    });
    // How one ends is told to whoever asked; the next is not concerned.
    this.#last = turn.catch(() => undefined);
    return turn;
  }
}

function explained(error: unknown, maxBytes: number): GrpcError {
  if (error instanceof RangeError) {
    const message = `a compressed message unpacks to more than the limit of ${maxBytes} bytes`;
    return new GrpcError(grpcStatus.resourceExhausted, message);
  }
  return new GrpcError(grpcStatus.internal, 'a compressed message is damaged', { cause: error });
}
