import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { FrameReader, frameMessage } from './frames.ts';
import { encodeMessage, GrpcError, type GrpcStatusCode, grpcStatus } from './status.ts';

const contentType = 'application/grpc';
const acceptedEncodings = 'identity,gzip';
/** How long a client may go on sending after its call has ended. */
const lingerMs = 1000;

/** What the implementation of a method listens to. All are called synchronously while bytes arrive. */
export interface CallListener {
  message(bytes: Uint8Array): void;
  /** The client sent what is no gRPC message, or a message over the limit. The listener ends the call, as fits its method. */
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
  readonly #stream: ServerHttp2Stream;
  readonly #headers: IncomingHttpHeaders;
  readonly #gzip: boolean;
  #listener: CallListener | undefined;
  #drained: (() => void) | undefined;
  #responded = false;
  #finished = false;
  #ended = false;

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders) {
    this.path = headers[':path'] ?? '';
    this.#stream = stream;
    this.#headers = headers;
    this.#gzip = headers['grpc-encoding'] === 'gzip';
    // A reset by the peer arrives as one or more of these; a paused stream does not close before it is read to its end.
    stream.on('aborted', () => this.#over());
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

  /** Starts delivering what the client sends. At most `maxMessageBytes` of it, and a little, are kept in memory. */
  listen(listener: CallListener, options: { readonly maxMessageBytes: number }): void {
    this.#listener = listener;
    if (this.#ended) {
      listener.end();
      return;
    }
    const reader = new FrameReader({ maxBytes: options.maxMessageBytes, gzip: this.#gzip });
    const stream = this.#stream;
    stream.on('drain', () => this.#drained?.());
    stream.on('data', (chunk: Buffer) => this.#receive(reader, listener, chunk));
    stream.on('end', () => {
      if (this.isOver) return;
      if (!reader.isMidMessage) listener.halfClose();
      else listener.unreadable(new GrpcError(grpcStatus.internal, 'the request ends amid a message'));
    });
  }

  /** Answers with headers now, so that the client knows that the call was accepted. */
  accept(): void {
    if (this.#responded || this.isOver || this.#isGone) return;
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
    if (this.isOver || this.#isGone) return false;
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

  /** Answers a request that is not for gRPC, with the HTTP status that gRPC asks for. */
  refuseContent(): void {
    this.#finished = true;
    if (!this.#isGone) this.#stream.respond({ ':status': 415 }, { endStream: true });
  }

  /** Ends the call with a status. Repeating it does nothing. */
  finish(code: GrpcStatusCode = grpcStatus.ok, details = ''): void {
    if (this.isOver) return;
    this.#finished = true;
    const stream = this.#stream;
    if (!this.#isGone) {
      const trailers = {
        'grpc-status': String(code),
        ...(details === '' ? undefined : { 'grpc-message': encodeMessage(details) }),
      };
      if (this.#responded) {
        stream.once('wantTrailers', () => {
          if (!this.#isGone) stream.sendTrailers(trailers);
        });
        stream.end();
      } else {
        stream.respond({ ':status': 200, 'content-type': contentType, ...trailers }, { endStream: true });
      }
      // What the client still sends is discarded, so that the stream can close; one that does not stop is cut off.
      stream.resume();
      const linger = setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), lingerMs).unref();
      stream.once('close', () => clearTimeout(linger));
    }
    this.#over();
  }

  /** Ends the call with the status of an error; one that is no GrpcError becomes `internal` without its text. */
  fail(error: unknown): void {
    if (error instanceof GrpcError) this.finish(error.code, error.details);
    else this.finish(grpcStatus.internal, 'internal server error');
  }

  /** Whether the stream cannot be written to any more; Node throws then. A stream is closed before it is destroyed. */
  get #isGone(): boolean {
    return this.#stream.closed || this.#stream.destroyed;
  }

  #receive(reader: FrameReader, listener: CallListener, chunk: Buffer): void {
    if (this.isOver) return;
    try {
      for (const message of reader.push(chunk)) {
        if (this.isOver) return;
        listener.message(message);
      }
    } catch (error) {
      if (error instanceof GrpcError) listener.unreadable(error);
      else this.fail(error);
    }
  }

  #over(): void {
    if (this.#ended) return;
    this.#ended = true;
    // A paused stream would keep what it holds for ever.
    this.#stream.resume();
    this.#listener?.end();
  }
}
