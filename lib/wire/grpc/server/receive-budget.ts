import { GunzipQueue } from '../gunzip.ts';
import { GrpcError, grpcStatus } from '../status.ts';

/** An incomplete message up to this size is not counted. */
const freeBytes = 64 * 1024;

/** A call that holds bytes of incomplete messages. */
export interface Receiver {
  /** The budget is exceeded and this call holds most of it: it must end. */
  refuse(error: GrpcError): void;
}

/**
 * Limits the bytes of incomplete messages that a server holds, on all connections together. One message may be large, but
 * not many at a time: above `maxBytes` the call that holds most is ended. Calls with small messages are not affected.
 */
export class ReceiveBudget {
  readonly gunzipQueue = new GunzipQueue();
  readonly #maxBytes: number;
  readonly #held = new Map<Receiver, number>();
  #total = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes of incomplete messages, small ones not counted. */
  get heldBytes(): number {
    return this.#total;
  }

  /** Records how many bytes a call holds now. */
  hold(receiver: Receiver, bytes: number): void {
    this.#total -= this.#held.get(receiver) ?? 0;
    if (bytes <= freeBytes) {
      this.#held.delete(receiver);
      return;
    }
    this.#held.set(receiver, bytes);
    this.#total += bytes;
    while (this.#total > this.#maxBytes) {
      this.#refuseLargest();
    }
  }

  #refuseLargest(): void {
    let largest: Receiver | undefined;
    let most = -1;
    for (const [receiver, bytes] of this.#held) {
      if (bytes <= most) {
        continue;
      }
      largest = receiver;
      most = bytes;
    }
    if (largest === undefined) {
      return;
    }
    this.#held.delete(largest);
    this.#total -= most;
    const message = `of all messages that are under way this is the largest, and together they are more than ${this.#maxBytes} bytes`;
    largest.refuse(new GrpcError(grpcStatus.unavailable, message));
  }
}
