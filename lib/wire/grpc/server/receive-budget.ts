import { GunzipQueue } from '../gunzip.ts';
import { GrpcError, grpcStatus } from '../status.ts';
import { ReceiveTurns } from './receive-turns.ts';

/** Incomplete messages of one peer up to this size are not counted. */
const freeBytes = 64 * 1024;

/** A call that holds bytes of messages that are not delivered. */
export interface Receiver {
  /** The budget is exceeded, and of the peer that holds most this call holds most: it must end. */
  refuse(error: GrpcError): void;
}

/** The incomplete messages of one peer. */
class Holder {
  readonly calls = new Map<Receiver, number>();
  bytes = 0;

  get counted(): number {
    return this.bytes > freeBytes ? this.bytes : 0;
  }
}

/**
 * What the calls of a server share for reading: the bytes of incomplete messages that it holds, and of those that paused calls have,
 * the turns in which messages are processed, and the place where they are decompressed. Peers have equal shares, whatever the number of their calls.
 *
 * Above `maxBytes` a call of the peer that holds most is ended. Others are not affected.
 */
export class ReceiveBudget {
  readonly gunzipQueue = new GunzipQueue();
  readonly turns = new ReceiveTurns();
  /** How long an incomplete message may take. */
  readonly messageMs: number;
  readonly #maxBytes: number;
  readonly #holders = new Map<string, Holder>();
  #total = 0;

  constructor(options: { readonly maxBytes: number; readonly messageMs: number }) {
    this.#maxBytes = options.maxBytes;
    this.messageMs = options.messageMs;
  }

  /** Bytes of incomplete messages, those of peers with little not counted. */
  get heldBytes(): number {
    return this.#total;
  }

  /** Records how many bytes a call of a peer holds now. */
  hold(peer: string, receiver: Receiver, bytes: number): void {
    const holder = this.#holders.get(peer) ?? new Holder();
    this.#total -= holder.counted;
    holder.bytes += bytes - (holder.calls.get(receiver) ?? 0);
    this.#total += holder.counted;
    if (bytes === 0) {
      holder.calls.delete(receiver);
    } else {
      holder.calls.set(receiver, bytes);
      this.#holders.set(peer, holder);
    }
    if (holder.calls.size === 0) {
      this.#holders.delete(peer);
    }
    while (this.#total > this.#maxBytes) {
      this.#refuseLargest();
    }
  }

  #refuseLargest(): void {
    const [peer, holder] = largest(this.#holders, ({ counted }) => counted) ?? [];
    const [receiver] = largest(holder?.calls ?? new Map<Receiver, number>(), (bytes) => bytes) ?? [];
    if (peer === undefined || receiver === undefined) {
      return;
    }
    this.hold(peer, receiver, 0);
    const message = `incomplete messages are more than ${this.#maxBytes} bytes together, and this peer has most of them`;
    receiver.refuse(new GrpcError(grpcStatus.unavailable, message));
  }
}

function largest<K, V>(entries: ReadonlyMap<K, V>, sizeOf: (value: V) => number): [K, V] | undefined {
  let found: [K, V] | undefined;
  for (const entry of entries) {
    if (found === undefined || sizeOf(entry[1]) > sizeOf(found[1])) {
      found = entry;
    }
  }
  return found;
}
