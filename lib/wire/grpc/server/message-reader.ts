import { type Frame, FrameReader } from '../frames.ts';
import { gunzipIfSmall } from '../gunzip.ts';
import { GrpcError, grpcStatus } from '../status.ts';
import { MessageDeadline } from './message-deadline.ts';
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
  /** Whether no message may be delivered for the moment. Call `proceed` when this has changed. */
  isPaused(): boolean;
  /** Whether the call has ended. */
  isOver(): boolean;
}

/**
 * Reads the messages of one call, in order. A peer that has used up its turn waits for the next, and a message that
 * decompresses to much is decompressed in the thread pool. The reader is busy meanwhile: further bytes wait, and the channel
 * should be paused.
 */
export class MessageReader implements Receiver {
  readonly #listener: MessageListener;
  readonly #maxBytes: number;
  readonly #peer: string;
  readonly #budget: ReceiveBudget;
  readonly #frames: FrameReader;
  /** The next message, complete. */
  #next: Frame | undefined;
  /** A message that was decompressed while none may be delivered. It is before the next one. */
  #unpacked: Buffer | undefined;
  #hasEnded = false;
  #isClosed = false;
  #isReading = false;
  #isWaiting = false;
  #wasBusy = false;
  /** Bytes of the message that is being decompressed, and those that the channel holds. */
  #decompressingBytes = 0;
  #channelBytes = 0;
  readonly #deadline: MessageDeadline;

  /** @param options.peer whose call it is: calls of one peer share its turns and its part of the budget */
  constructor(
    listener: MessageListener,
    options: {
      readonly maxBytes: number;
      readonly gzip: boolean;
      readonly peer: string;
      readonly budget: ReceiveBudget;
    },
  ) {
    this.#listener = listener;
    this.#maxBytes = options.maxBytes;
    this.#peer = options.peer;
    this.#budget = options.budget;
    this.#frames = new FrameReader(options);
    this.#deadline = new MessageDeadline(this.#budget.messageMs, () => this.#expire());
  }

  /** Whether it cannot take more for the moment. */
  get isBusy(): boolean {
    return this.#isWaiting || this.#decompressingBytes > 0;
  }

  /** Takes bytes. */
  push(chunk: Buffer): void {
    if (this.#isDone) {
      return;
    }
    this.#frames.push(chunk);
    this.proceed();
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
    this.proceed();
  }

  refuse(error: GrpcError): void {
    if (this.#isDone) {
      return;
    }
    this.#listener.unreadable(error);
    this.close();
  }

  /** Releases everything. */
  close(): void {
    this.#isClosed = true;
    this.#unpacked = undefined;
    this.#deadline.reset();
    this.#budget.turns.withdraw(this.#resume);
    this.#budget.hold(this.#peer, this, 0);
  }

  /** Delivers the messages that are complete, as far as they may be delivered now. */
  proceed(): void {
    // A message may have been delivered just now, and its receiver pauses or resumes.
    if (this.#isReading || this.#isDone) {
      return;
    }
    this.#isReading = true;
    const isDrained = this.#deliverAll();
    this.#isReading = false;
    if (this.#isDone) {
      return;
    }
    this.#account();
    if (this.#isDone) {
      return;
    }
    if (isDrained && this.#hasEnded) {
      this.#finish();
    } else if (this.#wasBusy !== this.isBusy) {
      this.#wasBusy = this.isBusy;
      this.#listener.flow();
    }
  }

  get #isDone(): boolean {
    return this.#isClosed || this.#listener.isOver();
  }

  get #isStopped(): boolean {
    return this.isBusy || this.#listener.isPaused();
  }

  readonly #resume = (): void => {
    this.#isWaiting = false;
    this.proceed();
  };

  /** Returns whether every complete message was delivered. */
  #deliverAll(): boolean {
    while (!this.#isDone && !this.#isStopped) {
      if (this.#unpacked !== undefined) {
        const message = this.#unpacked;
        this.#unpacked = undefined;
        this.#deliverUnpacked(message);
        continue;
      }
      try {
        this.#next ??= this.#frames.next();
      } catch (error) {
        this.#listener.unreadable(error);
        return false;
      }
      if (this.#next === undefined) {
        return true;
      }
      if (!this.#budget.turns.tryAcquire(this.#peer, this.#resume)) {
        this.#isWaiting = true;
        return false;
      }
      const frame = this.#next;
      this.#next = undefined;
      this.#deadline.reset();
      this.#deliver(frame);
    }
    return false;
  }

  #deliver({ payload, isCompressed }: Frame): void {
    this.#inTurn(payload.length, () => {
      const message = isCompressed ? gunzipIfSmall(payload, this.#maxBytes) : payload;
      if (message === undefined) {
        this.#decompress(payload);
        return 0;
      }
      this.#listener.message(message);
      return message.length;
    });
  }

  #decompress(payload: Buffer): void {
    this.#decompressingBytes = payload.length;
    this.#budget.gunzipQueue
      .run(this.#peer, payload, {
        maxBytes: this.#maxBytes,
        isWanted: () => !this.#isDone,
        deliver: (message) => {
          if (this.#isDone) {
            return;
          }
          if (this.#listener.isPaused()) {
            this.#unpacked = message;
          } else {
            this.#deliverUnpacked(message);
          }
        },
      })
      .catch((error: unknown) => {
        if (!this.#isDone) {
          this.#listener.unreadable(error);
        }
      })
      .finally(() => {
        this.#decompressingBytes = 0;
        this.proceed();
      });
  }

  #deliverUnpacked(message: Buffer): void {
    this.#inTurn(message.length, () => {
      this.#listener.message(message);
      return message.length;
    });
  }

  /** Does work for the peer, which counts whether it succeeds or not. `work` returns the number of processed bytes. */
  #inTurn(bytes: number, work: () => number): void {
    const began = performance.now();
    let processed = bytes;
    try {
      processed = work();
    } catch (error) {
      if (!this.#isDone) {
        this.#listener.unreadable(error);
      }
    } finally {
      this.#budget.turns.used(this.#peer, processed, performance.now() - began);
    }
  }

  #finish(): void {
    if (!this.#frames.isMidMessage) {
      this.#listener.halfClose();
    } else {
      this.#listener.unreadable(new GrpcError(grpcStatus.internal, 'the request ends amid a message'));
    }
  }

  /**
   * The bytes of a message that has begun count whoever is waited for, its time only while that is the client. A paused call may hold
   * complete messages for as long as it likes; those that wait for a turn have it soon.
   */
  #account(): void {
    const incomplete = this.#frames.bufferedBytes + this.#channelBytes;
    if (incomplete === 0) {
      this.#deadline.reset();
    } else if (this.#isStopped) {
      this.#deadline.suspend();
    } else {
      this.#deadline.run();
    }
    const complete = this.#listener.isPaused() ? (this.#next?.payload.length ?? 0) + (this.#unpacked?.length ?? 0) : 0;
    this.#budget.hold(this.#peer, this, incomplete + complete + this.#decompressingBytes);
  }

  #expire(): void {
    const seconds = this.#budget.messageMs / 1000;
    this.refuse(new GrpcError(grpcStatus.deadlineExceeded, `a message is not complete after ${seconds} s`));
  }
}
