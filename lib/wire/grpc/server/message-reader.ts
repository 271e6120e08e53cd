import { FrameReader } from '../frames.ts';
import { unpackLittle } from '../gunzip.ts';
import { GrpcError, grpcStatus } from '../status.ts';
import type { Receiver, Reception } from './receive-budget.ts';

/** What a {@link MessageReader} tells. */
export interface MessageListener {
  message(bytes: Uint8Array): void;
  /** What came is no gRPC message, is over a limit, or was not taken well; nothing follows. */
  unreadable(error: unknown): void;
  /** Nothing more will come. */
  halfClose(): void;
  /** `isBusy` has changed. */
  flow(): void;
  /** Whether nobody listens any more. */
  isOver(): boolean;
}

/**
 * Reads the messages of one call from the bytes that come, in their order. What unpacks to much is unpacked on another
 * thread, during which the reader is busy: what comes meanwhile waits, and the channel should be paused.
 */
export class MessageReader implements Receiver {
  readonly #listener: MessageListener;
  readonly #maxBytes: number;
  readonly #reception: Reception;
  readonly #frames: FrameReader;
  readonly #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #hasEnded = false;
  #isBusy = false;
  #isClosed = false;
  /** Bytes of the message that is being unpacked, and those that the channel holds. */
  #unpackingBytes = 0;
  #channelBytes = 0;

  constructor(
    listener: MessageListener,
    options: { readonly maxBytes: number; readonly gzip: boolean; readonly reception: Reception },
  ) {
    this.#listener = listener;
    this.#maxBytes = options.maxBytes;
    this.#reception = options.reception;
    this.#frames = new FrameReader(options);
  }

  /** Whether it cannot take more for the moment. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Takes bytes. */
  push(chunk: Buffer): void {
    if (this.#isDone) {
      return;
    }
    this.#take(chunk);
    this.#account();
  }

  /** So many bytes of a message are with the channel. */
  partial(bytes: number): void {
    if (this.#isDone) {
      return;
    }
    this.#channelBytes = bytes;
    this.#account();
  }

  /** No more bytes will come. */
  end(): void {
    this.#hasEnded = true;
    if (!this.#isBusy) {
      this.#finish();
    }
  }

  refuse(error: GrpcError): void {
    if (this.#isDone) {
      return;
    }
    this.#listener.unreadable(error);
    this.close();
  }

  /** Lets go of everything. */
  close(): void {
    this.#isClosed = true;
    this.#waiting.length = 0;
    this.#reception.hold(this, 0);
  }

  get #isDone(): boolean {
    return this.#isClosed || this.#listener.isOver();
  }

  #take(chunk: Buffer): void {
    if (this.#isBusy) {
      this.#waiting.push(chunk);
      this.#waitingBytes += chunk.length;
    } else {
      this.#read(chunk);
    }
  }

  #read(chunk: Buffer): void {
    try {
      for (const { payload, isCompressed } of this.#frames.push(chunk)) {
        if (this.#isDone) {
          return;
        }
        const message = isCompressed ? unpackLittle(payload, this.#maxBytes) : payload;
        if (message === undefined) {
          this.#unpack(payload);
          return;
        }
        this.#listener.message(message);
      }
    } catch (error) {
      if (!this.#isDone) {
        this.#listener.unreadable(error);
      }
    }
  }

  #unpack(payload: Buffer): void {
    this.#isBusy = true;
    this.#unpackingBytes = payload.length;
    this.#listener.flow();
    this.#reception.unpacker
      .unpack(payload, this.#maxBytes, () => !this.#isDone)
      .then((message) => {
        if (!this.#isDone) {
          this.#listener.message(message);
        }
      })
      .catch((error: unknown) => {
        if (!this.#isDone) {
          this.#listener.unreadable(error);
        }
      })
      .finally(() => this.#unpacked());
  }

  #unpacked(): void {
    this.#isBusy = false;
    this.#unpackingBytes = 0;
    if (this.#isDone) {
      return;
    }
    // What follows in the same bytes first; it may make the reader busy again.
    const waiting = [Buffer.alloc(0), ...this.#waiting.splice(0)];
    this.#waitingBytes = 0;
    for (const chunk of waiting) {
      this.#take(chunk);
    }
    this.#account();
    if (this.#isBusy || this.#isDone) {
      return;
    }
    if (this.#hasEnded) {
      this.#finish();
    } else {
      this.#listener.flow();
    }
  }

  #finish(): void {
    if (this.#isDone) {
      return;
    }
    if (!this.#frames.isMidMessage) {
      this.#listener.halfClose();
    } else {
      this.#listener.unreadable(new GrpcError(grpcStatus.internal, 'the request ends amid a message'));
    }
  }

  #account(): void {
    if (this.#isDone) {
      return;
    }
    const held = this.#frames.bufferedBytes + this.#waitingBytes + this.#unpackingBytes;
    this.#reception.hold(this, held + this.#channelBytes);
  }
}
