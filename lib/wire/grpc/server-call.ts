import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { FrameReader, frameMessage } from './frames.ts';
import { encodeMessage, GrpcError, type GrpcStatusCode, grpcStatus } from './status.ts';

const contentType = 'application/grpc';
const acceptedEncodings = 'identity,gzip';

/** What the implementation of a method listens to. All are called synchronously while bytes arrive. */
export interface CallListener {
  message(bytes: Uint8Array): void;
  /** The client will send nothing more. */
  halfClose(): void;
  /** The call is over for whatever reason, ours included. Called once, nothing follows. */
  end(): void;
}

/** One gRPC call, on the server's side. */
export class ServerCall {
  /** Full method path, for example `/eventstreamapi.EventStream/Subscribe`. */
  readonly path: string;
  readonly #stream: ServerHttp2Stream;
  readonly #headers: IncomingHttpHeaders;
  readonly #reader: FrameReader;
  readonly #gzip: boolean;
  #listener: CallListener | undefined;
  #drained: (() => void) | undefined;
  #responded = false;
  #finished = false;
  #ended = false;

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, options: { readonly maxMessageBytes: number }) {
    this.path = headers[':path'] ?? '';
    this.#stream = stream;
    this.#headers = headers;
    this.#gzip = headers['grpc-encoding'] === 'gzip';
    this.#reader = new FrameReader({ maxBytes: options.maxMessageBytes, gzip: this.#gzip });
    // A reset by the peer arrives as an error and as `close`; the latter is what ends the call.
    stream.on('error', () => this.#over());
    stream.on('close', () => this.#over());
  }

  /** The first value of a request header. */
  header(name: string): string | undefined {
    const value = this.#headers[name.toLowerCase()];
    return Array.isArray(value) ? value[0] : value;
  }

  /** Whether the call has ended, or its status is on the way. */
  get isOver(): boolean {
    return this.#finished || this.#ended;
  }

  /** Starts delivering what the client sends. */
  listen(listener: CallListener): void {
    this.#listener = listener;
    if (this.#ended) {
      listener.end();
      return;
    }
    const stream = this.#stream;
    stream.on('drain', () => this.#drained?.());
    stream.on('data', (chunk: Buffer) => this.#receive(chunk));
    stream.on('end', () => {
      if (this.isOver) return;
      if (this.#reader.isMidMessage) this.fail(new GrpcError(grpcStatus.internal, 'the request ends amid a message'));
      else listener.halfClose();
    });
  }

  /** Answers with headers now, so that the client knows that the call was accepted. */
  accept(): void {
    if (this.#responded || this.isOver || this.#stream.destroyed) return;
    this.#responded = true;
    this.#stream.respond(
      {
        ':status': 200,
        'content-type': contentType,
        'grpc-accept-encoding': acceptedEncodings,
        ...(this.#gzip ? { 'grpc-encoding': 'gzip' } : undefined),
      },
      { waitForTrailers: true },
    );
  }

  /** Sends one message; false when the connection is full, or the call over (then nothing is sent). */
  send(message: Uint8Array): boolean {
    if (this.isOver || this.#stream.destroyed) return false;
    this.accept();
    return this.#stream.write(frameMessage(message, this.#gzip));
  }

  /** Sets the one listener for "can take more". */
  onDrain(listener: () => void): void {
    this.#drained = listener;
  }

  /** Stops and starts the delivery of messages; the client is slowed down by flow control. */
  pause(): void {
    this.#stream.pause();
  }

  /** See `pause`. */
  resume(): void {
    this.#stream.resume();
  }

  /** Ends the call with a status. Repeating it does nothing. */
  finish(code: GrpcStatusCode = grpcStatus.ok, details = ''): void {
    if (this.isOver) return;
    this.#finished = true;
    const stream = this.#stream;
    if (!stream.destroyed) {
      const trailers = {
        'grpc-status': String(code),
        ...(details === '' ? undefined : { 'grpc-message': encodeMessage(details) }),
      };
      if (this.#responded) {
        stream.once('wantTrailers', () => stream.sendTrailers(trailers));
        stream.end();
      } else {
        stream.respond({ ':status': 200, 'content-type': contentType, ...trailers }, { endStream: true });
      }
      // What the client still sends is discarded, so that the stream can close.
      stream.resume();
    }
    this.#over();
  }

  /** Ends the call with the status of an error; one that is no GrpcError becomes `internal` without its text. */
  fail(error: unknown): void {
    if (error instanceof GrpcError) this.finish(error.code, error.details);
    else this.finish(grpcStatus.internal, 'internal server error');
  }

  #receive(chunk: Buffer): void {
    if (this.isOver) return;
    try {
      for (const message of this.#reader.push(chunk)) {
        if (this.isOver) return;
        this.#listener?.message(message);
      }
    } catch (error) {
      this.fail(error);
    }
  }

  #over(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#listener?.end();
  }
}
