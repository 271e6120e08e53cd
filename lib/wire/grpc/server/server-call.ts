import type { CallObserver } from '../call-observer.ts';
import { frameMessage } from '../frames.ts';
import { encodeMessage, GrpcError, type GrpcStatusCode, grpcStatus } from '../status.ts';
import { MessageReader } from './message-reader.ts';
import type { ReceiveBudget } from './receive-budget.ts';
import type { ServerChannel } from './server-channel.ts';

const contentType = 'application/grpc';
const acceptedEncodings = 'identity,gzip';

/** The listener of a method's implementation. All are called synchronously while bytes arrive. */
export interface CallListener {
  message(bytes: Uint8Array): void;
  /** The client sent an invalid gRPC message, or one over the limit. The listener must end the call. */
  unreadable(error: GrpcError): void;
  /** The client will send nothing more. */
  halfClose(): void;
  /** The call is over for whatever reason, ours included. Called once, nothing follows. */
  end(): void;
}

/** One gRPC call, on the server's side. */
export class ServerCall {
  /** Full method path, for example `/eventstreamapi.EventStream/Subscribe`. */
  readonly path: string;
  /** The largest message that the transport can carry, or `Infinity`. */
  readonly maxMessageBytes: number;
  readonly #channel: ServerChannel;
  readonly #budget: ReceiveBudget;
  readonly #gzip: boolean;
  #reader: MessageReader | undefined;
  #isPaused = false;
  #listener: CallListener | undefined;
  #drained: (() => void) | undefined;
  #responded = false;
  #finished = false;
  #ended = false;
  #code: GrpcStatusCode = grpcStatus.canceled;
  #observer: CallObserver | undefined;
  readonly #endings: (() => void)[] = [];

  constructor(channel: ServerChannel, budget: ReceiveBudget) {
    this.path = channel.path;
    this.maxMessageBytes = channel.maxMessageBytes;
    this.#channel = channel;
    this.#budget = budget;
    this.#gzip = channel.header('grpc-encoding') === 'gzip';
    // A paused channel does not close before it is read to its end.
    channel.onGone(() => this.#over());
  }

  /** The first value of a request header. */
  header(name: string): string | undefined {
    return this.#channel.header(name.toLowerCase());
  }

  /** Calls back once, when the call is over; at once if it is already. */
  onOver(listener: () => void): void {
    if (this.#ended) {
      listener();
    } else {
      this.#endings.push(listener);
    }
  }

  /** Whether the call has ended, or its status is on the way. */
  get isOver(): boolean {
    return this.#finished || this.#ended;
  }

  /**
   * Starts the delivery of the client's messages, unless the call is paused. About `maxMessageBytes` of them are kept in memory
   * at most. Calls of the same `peer` share its part of the server's time and memory.
   */
  listen(listener: CallListener, options: { readonly maxMessageBytes: number; readonly peer: string }): void {
    this.#listener = listener;
    if (this.#ended) {
      listener.end();
      return;
    }
    const reader = new MessageReader(
      {
        message: (bytes) => {
          this.#observer?.received();
          listener.message(bytes);
        },
        unreadable: (error) => {
          if (error instanceof GrpcError) {
            listener.unreadable(error);
          } else {
            this.fail(error);
          }
        },
        halfClose: () => listener.halfClose(),
        flow: () => this.#flow(),
        isPaused: () => this.#isPaused,
        isOver: () => this.isOver,
      },
      { maxBytes: options.maxMessageBytes, gzip: this.#gzip, peer: options.peer, budget: this.#budget },
    );
    this.#reader = reader;
    this.#channel.read(
      {
        data: (chunk) => reader.push(chunk),
        end: () => reader.end(),
        unreadable: (error) => reader.refuse(error),
        partial: (bytes) => reader.partial(bytes),
        drain: () => this.#drained?.(),
      },
      options.maxMessageBytes,
    );
  }

  /** Answers with headers now, so that the client knows that the call was accepted. */
  accept(): void {
    if (this.#responded || this.isOver || this.#channel.isGone) {
      return;
    }
    this.#responded = true;
    this.#channel.respond(this.#headers());
  }

  /** Sends one message; false when the connection is full, or the call over (then nothing is sent). */
  send(message: Uint8Array): boolean {
    if (this.isOver || this.#channel.isGone) {
      return false;
    }
    this.accept();
    this.#observer?.sent();
    return this.#channel.write(frameMessage(message, this.#gzip));
  }

  /** Sets the one listener for "can take more". */
  onDrain(listener: () => void): void {
    this.#drained = listener;
  }

  /** Sets the one observer. */
  observe(observer: CallObserver): void {
    this.#observer = observer;
  }

  /**
   * Stops the delivery of messages, also of those that have arrived; the client is slowed down by flow control. It holds when it is
   * called before `listen`, too.
   */
  pause(): void {
    this.#isPaused = true;
    this.#reader?.proceed();
    this.#flow();
  }

  /** Goes on with the delivery of messages. */
  resume(): void {
    this.#isPaused = false;
    this.#reader?.proceed();
    this.#flow();
  }

  /** Ends the call with a status. Repeating it does nothing. */
  finish(code: GrpcStatusCode = grpcStatus.ok, details = ''): void {
    if (this.isOver) {
      return;
    }
    this.#finished = true;
    this.#code = code;
    if (!this.#channel.isGone) {
      const trailers = {
        'grpc-status': String(code),
        ...(details === '' ? undefined : { 'grpc-message': encodeMessage(details) }),
      };
      this.#channel.finish(trailers, this.#responded ? undefined : { 'content-type': contentType });
    }
    this.#over();
  }

  /** Ends the call with the status of an error; one that is not a GrpcError becomes `internal` without its text. */
  fail(error: unknown): void {
    if (error instanceof GrpcError) {
      this.finish(error.code, error.details);
    } else {
      this.finish(grpcStatus.internal, 'internal server error');
    }
  }

  #headers(): Record<string, string> {
    return {
      'content-type': contentType,
      'grpc-accept-encoding': acceptedEncodings,
      ...(this.#gzip ? { 'grpc-encoding': 'gzip' } : undefined),
    };
  }

  #flow(): void {
    if (this.#isPaused || this.#reader?.isBusy) {
      this.#channel.pause();
    } else {
      this.#channel.resume();
    }
  }

  #over(): void {
    if (this.#ended) {
      return;
    }
    this.#ended = true;
    this.#reader?.close();
    // A paused channel would never release its data.
    this.#channel.resume();
    this.#listener?.end();
    this.#observer?.over(this.#code);
    for (const listener of this.#endings.splice(0)) {
      listener();
    }
  }
}
