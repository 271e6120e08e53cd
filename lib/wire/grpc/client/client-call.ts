import { onAbort } from '../../../base/index.ts';
import type { CallObserver } from '../call-observer.ts';
import { FrameReader, frameMessage, type MessageBytes } from '../frames.ts';
import { gunzipMessage } from '../gunzip.ts';
import { decodeMessage, GrpcError, type GrpcStatusCode, grpcStatus, parseStatus, statusOfHttp } from '../status.ts';
import type { ChannelEnd, ClientChannel } from './client-channel.ts';

/** The listener of a call. */
export interface ClientCallListener {
  /** The request was sent, which takes time where every call opens a connection. Called at most once, first. */
  opened?(): void;
  /** The server accepted the call. Some servers show this only with their first message. Called at most once. */
  accepted?(): void;
  message(bytes: Uint8Array): void;
  /** The call is over: undefined when it ended with OK. Called once, nothing follows. */
  end(error: GrpcError | undefined): void;
}

/** One gRPC call, on the client's side. */
export class ClientCall {
  /** The largest message that the transport can carry, or `Infinity`. */
  readonly maxMessageBytes: number;
  readonly #channel: ClientChannel;
  readonly #gzip: boolean;
  readonly #maxMessageBytes: number;
  #reader: FrameReader;
  #listener: ClientCallListener | undefined;
  #drained: (() => void) | undefined;
  #observer: CallObserver | undefined;
  #over: ((error: GrpcError | undefined) => void) | undefined;
  #status: { readonly code: GrpcStatusCode; readonly details: string } | undefined;
  #error: Error | undefined;
  #end: ChannelEnd | undefined;
  #opened = false;
  #accepted = false;

  constructor(channel: ClientChannel, options: { readonly gzip: boolean; readonly maxMessageBytes: number }) {
    this.maxMessageBytes = channel.maxMessageBytes;
    this.#channel = channel;
    this.#gzip = options.gzip;
    this.#maxMessageBytes = options.maxMessageBytes;
    this.#reader = this.#newReader(false);
    channel.attach({
      opened: () => {
        this.#opened = true;
        this.#listener?.opened?.();
      },
      headers: (status, headers) => this.#respond(status, headers),
      trailers: (trailers) => this.#takeStatus(trailers),
      data: (chunk) => this.#receive(chunk),
      drain: () => this.#drained?.(),
      closed: (end) => this.#closed(end),
    });
  }

  /** Whether the call has ended. */
  get isOver(): boolean {
    return this.#end !== undefined;
  }

  /** Sets the one observer. */
  observe(observer: CallObserver): void {
    this.#observer = observer;
  }

  /** Sets the one listener for the end besides that of {@link ClientCall.listen}. */
  onOver(listener: (error: GrpcError | undefined) => void): void {
    this.#over = listener;
  }

  /** Starts the delivery of the server's messages. */
  listen(listener: ClientCallListener): void {
    this.#listener = listener;
    this.#channel.read();
    if (this.#opened) {
      listener.opened?.();
    }
    if (this.#accepted) {
      listener.accepted?.();
    }
    if (this.#end !== undefined) {
      listener.end(this.#result(this.#end));
    }
  }

  /** Sends one message; false when the connection is full, or the call over (then nothing is sent). */
  send(message: MessageBytes): boolean {
    if (this.isOver || this.#channel.isGone) {
      return false;
    }
    this.#observer?.sent();
    return this.#channel.write(frameMessage(message, this.#gzip));
  }

  /** Sets the one listener for "can take more". */
  onDrain(listener: () => void): void {
    this.#drained = listener;
  }

  /** Stops and starts the delivery of messages; the server is slowed down by flow control. */
  pause(): void {
    this.#channel.pause();
  }

  /** See `pause`. */
  resume(): void {
    this.#channel.resume();
  }

  /** Ends the client's messages. */
  halfClose(): void {
    this.#channel.halfClose();
  }

  /** Cancels the call; it ends with `canceled`. */
  cancel(): void {
    if (this.isOver) {
      return;
    }
    this.#status ??= { code: grpcStatus.canceled, details: 'the call was given up' };
    this.#channel.cancel();
  }

  #newReader(gzip: boolean): FrameReader {
    return new FrameReader({ maxBytes: this.#maxMessageBytes, gzip });
  }

  #respond(status: number, headers: Readonly<Record<string, unknown>>): void {
    if (headers['grpc-encoding'] === 'gzip') {
      this.#reader = this.#newReader(true);
    }
    if (headers['grpc-status'] !== undefined) {
      this.#takeStatus(headers);
    } else if (status !== 200) {
      this.#status ??= { code: statusOfHttp(status), details: `the server answered with HTTP status ${status}` };
    } else {
      this.#accepted = true;
      this.#listener?.accepted?.();
    }
  }

  #takeStatus(headers: Readonly<Record<string, unknown>>): void {
    const code = headers['grpc-status'];
    const message = headers['grpc-message'];
    if (typeof code !== 'string') {
      return;
    }
    this.#status ??= { code: parseStatus(code), details: typeof message === 'string' ? decodeMessage(message) : '' };
  }

  #receive(chunk: Buffer): void {
    if (this.isOver || this.#status?.code === grpcStatus.canceled) {
      return;
    }
    try {
      this.#reader.push(chunk);
      for (let frame = this.#reader.next(); frame !== undefined; frame = this.#reader.next()) {
        const { payload, isCompressed } = frame;
        this.#observer?.received();
        this.#listener?.message(isCompressed ? gunzipMessage(payload, this.#maxMessageBytes) : payload);
      }
    } catch (error) {
      const { code, details } =
        error instanceof GrpcError ? error : new GrpcError(grpcStatus.internal, 'receiving a message failed');
      this.#status = { code, details };
      this.#error = error instanceof Error ? error : undefined;
      this.#channel.cancel();
    }
  }

  #closed(end: ChannelEnd): void {
    if (this.#end !== undefined) {
      return;
    }
    this.#end = end;
    const result = this.#result(end);
    this.#observer?.over(result?.code ?? grpcStatus.ok);
    this.#over?.(result);
    this.#listener?.end(result);
  }

  #result(end: ChannelEnd): GrpcError | undefined {
    const cause = this.#error ?? end.cause;
    if (this.#status === undefined) {
      return new GrpcError(end.code, end.details, { cause, isConnectionLoss: end.code === grpcStatus.unavailable });
    }
    if (this.#status.code === grpcStatus.ok) {
      return undefined;
    }
    return new GrpcError(this.#status.code, this.#status.details, { cause });
  }
}

/** Runs a unary call to its end. @throws GrpcError */
export async function callUnary(call: ClientCall, request: Uint8Array, signal: AbortSignal): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  let response: Uint8Array | undefined;
  call.listen({
    message(bytes) {
      response ??= bytes;
    },
    end(error) {
      if (error !== undefined) {
        reject(error);
      } else if (response === undefined) {
        reject(new GrpcError(grpcStatus.internal, 'the server sent no answer'));
      } else {
        resolve(response);
      }
    },
  });
  call.send(request);
  call.halfClose();
  const unlisten = onAbort(signal, () => call.cancel());
  try {
    return await promise;
  } finally {
    unlisten();
  }
}
