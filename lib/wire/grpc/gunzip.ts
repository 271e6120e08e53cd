import { promisify } from 'node:util';
import { gunzip, gunzipSync } from 'node:zlib';
import { KeyedMutex, Semaphore } from '../../base/index.ts';
import { GrpcError, grpcStatus } from './status.ts';

/** Decompressed synchronously up to this size, which takes about a millisecond; larger messages use the thread pool. */
const synchronousBytes = 512 * 1024;
/**
 * Most bytes that one byte may decompress to, of content above `anyRatioBytes`. An Application with 7,500 resources
 * that differ in nothing but their names reaches 50; what reaches gzip's 1,030 carries nothing.
 */
const maxRatio = 128;
const anyRatioBytes = 1024 * 1024;
/** The output is allocated in chunks of this size. */
const chunkBytes = 1024 * 1024;
const gunzipInThreadPool = promisify(gunzip);

/**
 * Decompresses a gzip message synchronously.
 *
 * @throws GrpcError `resourceExhausted` when it decompresses to more than `maxBytes`, `invalidArgument` when to far more than
 *   its own size, `internal` when it is damaged
 */
export function gunzipMessage(payload: Buffer, maxBytes: number): Buffer {
  try {
    return gunzipSync(payload, { maxOutputLength: acceptedBytes(payload, maxBytes) });
  } catch (error) {
    throw explained(error, payload, maxBytes);
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
 * take all memory. Peers take turns.
 */
export class GunzipQueue {
  readonly #byPeer = new KeyedMutex();
  readonly #place = new Semaphore(1);

  /**
   * Calls `deliver` with the message, before the next one is decompressed. Nothing happens unless `isWanted` says so when the
   * message is next.
   * @throws GrpcError see {@link gunzipMessage}
   */
  run(
    peer: string,
    payload: Buffer,
    options: { readonly maxBytes: number; isWanted(): boolean; deliver(message: Buffer): void },
  ): Promise<void> {
    const { maxBytes } = options;
    const decompress = async () => {
      if (!options.isWanted()) {
        return;
      }
      let message: Buffer;
      try {
        const maxOutputLength = acceptedBytes(payload, maxBytes);
        message = await gunzipInThreadPool(payload, { maxOutputLength, chunkSize: chunkBytes });
      } catch (error) {
        throw explained(error, payload, maxBytes);
      }
      options.deliver(message);
    };
    return this.#byPeer.run(peer, () => this.#place.run(decompress));
  }
}

/** The most that a message may decompress to. */
function acceptedBytes(payload: Buffer, maxBytes: number): number {
  return Math.max(1, Math.min(maxBytes, Math.max(anyRatioBytes, maxRatio * payload.length)));
}

function explained(error: unknown, payload: Buffer, maxBytes: number): GrpcError {
  if (!(error instanceof RangeError)) {
    return new GrpcError(grpcStatus.internal, 'a compressed message is damaged', { cause: error });
  }
  const accepted = acceptedBytes(payload, maxBytes);
  if (accepted < maxBytes) {
    const message = `a compressed message of ${payload.length} bytes unpacks to more than ${maxRatio} times its size`;
    return new GrpcError(grpcStatus.invalidArgument, message);
  }
  const message = `a compressed message unpacks to more than the limit of ${maxBytes} bytes`;
  return new GrpcError(grpcStatus.resourceExhausted, message);
}
