import { promisify } from 'node:util';
import { gunzip, gunzipSync } from 'node:zlib';
import { GrpcError, grpcStatus } from './status.ts';

/** Decompressed synchronously up to this size, which takes about a millisecond; larger messages use the thread pool. */
const synchronousBytes = 512 * 1024;
/** The output is allocated in chunks of this size. */
const chunkBytes = 1024 * 1024;
const gunzipInThreadPool = promisify(gunzip);

/**
 * Decompresses a gzip message synchronously.
 *
 * @throws GrpcError `resourceExhausted` when it decompresses to more than `maxBytes`, `internal` when it is damaged
 */
export function gunzipMessage(payload: Buffer, maxBytes: number): Buffer {
  try {
    return gunzipSync(payload, { maxOutputLength: Math.max(1, maxBytes) });
  } catch (error) {
    throw explained(error, maxBytes);
  }
}

/**
 * Decompresses a gzip message synchronously if its content is small, whatever size it claims; undefined when it is larger.
 *
 * @throws GrpcError see {@link gunzipMessage}
 */
export function gunzipIfSmall(payload: Buffer, maxBytes: number): Buffer | undefined {
  if (maxBytes <= synchronousBytes) {
    return gunzipMessage(payload, maxBytes);
  }
  // The last field of gzip is the size of the content: what claims to be large need not be tried.
  if (payload.length >= 4 && payload.readUInt32LE(payload.length - 4) > synchronousBytes) {
    return undefined;
  }
  try {
    return gunzipMessage(payload, synchronousBytes);
  } catch (error) {
    if (error instanceof GrpcError && error.code === grpcStatus.resourceExhausted) {
      return undefined;
    }
    throw error;
  }
}

/**
 * Decompresses gzip messages in the thread pool, one at a time: small messages can expand so far that several at once might
 * take all memory.
 */
export class GunzipQueue {
  #last: Promise<unknown> = Promise.resolve();

  /** `isWanted` is called when the message is next. @throws GrpcError see {@link gunzipMessage}; `canceled` when it is not wanted */
  run(payload: Buffer, maxBytes: number, isWanted: () => boolean): Promise<Buffer> {
    const turn = this.#last.then(async () => {
      if (!isWanted()) {
        throw new GrpcError(grpcStatus.canceled, 'nobody waits for the message');
      }
      try {
        return await gunzipInThreadPool(payload, { maxOutputLength: Math.max(1, maxBytes), chunkSize: chunkBytes });
      } catch (error) {
        throw explained(error, maxBytes);
      }
    });
    // The caller gets the error; the next message is processed regardless.
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
