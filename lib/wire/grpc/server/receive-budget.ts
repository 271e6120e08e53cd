import { Unpacker } from '../gunzip.ts';
import { GrpcError, grpcStatus } from '../status.ts';

/** Up to here a message that has not all come counts for nothing. */
const freeBytes = 64 * 1024;

/** A call that receives. */
export interface Receiver {
  /** What it holds is too much and must go. */
  refuse(error: GrpcError): void;
}

/**
 * What a server holds of messages that are under way to it, on all connections together. One message may be large, but not
 * many at a time: when there is more than `maxBytes`, whoever holds most of it has to go. The others, whose messages are
 * small, notice nothing.
 */
export class Reception {
  readonly unpacker = new Unpacker();
  readonly #maxBytes: number;
  readonly #held = new Map<Receiver, number>();
  #total = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** How much of unfinished messages there is, small ones not counted. */
  get heldBytes(): number {
    return this.#total;
  }

  /** Says how much a call holds now. */
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
