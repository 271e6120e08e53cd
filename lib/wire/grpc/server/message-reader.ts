import { FrameReader } from '../frames.ts';
import { gunzipIfSmall } from '../gunzip.ts';
import { GrpcError, grpcStatus } from '../status.ts';
import type { ReceiveBudget, Receiver } from './receive-budget.ts';

/** Receives the results of a {@link MessageReader}. */
export interface MessageListener {
  message(bytes: Uint8Array): void;
  /** The bytes are not a gRPC message or exceed a limit, or `message` threw; nothing follows. */
  unreadable(error: unknown): void;
  /** The client will send nothing more. */
  halfClose(): void;
  /** `isBusy` has changed. */
  flow(): void;
  /** Whether the call has ended. */
  isOver(): boolean;
}

/**
 * Reads the messages of one call, in order. A message that decompresses to much is decompressed in the thread pool; the
 * reader is busy meanwhile: further bytes wait, and the channel should be paused.
 */
export class MessageReader implements Receiver {
  readonly #listener: MessageListener;
  readonly #maxBytes: number;
  readonly #budget: ReceiveBudget;
  readonly #frames: FrameReader;
  readonly #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #hasEnded = false;
  #isBusy = false;
  #isClosed = false;
  /** Bytes of the message that is being decompressed, and those that the channel holds. */
  #decompressingBytes = 0;
  #channelBytes = 0;

  constructor(
    listener: MessageListener,
    options: { readonly maxBytes: number; readonly gzip: boolean; readonly budget: ReceiveBudget },
  ) {
    this.#listener = listener;
    this.#maxBytes = options.maxBytes;
    this.#budget = options.budget;
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

  /** The channel itself holds so many bytes of an incomplete message. */
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

  /** Releases all bytes. */
  close(): void {
    this.#isClosed = true;
    this.#waiting.length = 0;
    this.#budget.hold(this, 0);
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
        const message = isCompressed ? gunzipIfSmall(payload, this.#maxBytes) : payload;
        if (message === undefined) {
          this.#decompress(payload);
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

  #decompress(payload: Buffer): void {
    this.#isBusy = true;
    this.#decompressingBytes = payload.length;
    this.#listener.flow();
    this.#budget.gunzipQueue
      .run(payload, this.#maxBytes, () => !this.#isDone)
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
      .finally(() => this.#decompressed());
  }

  #decompressed(): void {
    this.#isBusy = false;
    this.#decompressingBytes = 0;
    if (this.#isDone) {
      return;
    }
    // First the rest of the frame reader's bytes; it may make the reader busy again.
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
    const held = this.#frames.bufferedBytes + this.#waitingBytes + this.#decompressingBytes;
    this.#budget.hold(this, held + this.#channelBytes);
  }
}
