import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from 'node:http2';
import { FrameReader, frameMessage } from './frames.ts';
import { decodeMessage, GrpcError, type GrpcStatusCode, grpcStatus, parseStatus, statusOfHttp } from './status.ts';

/** What the user of a call listens to. */
export interface ClientCallListener {
  /** The server took the call. Some servers say so only with their first message. Called at most once. */
  accepted?(): void;
  message(bytes: Uint8Array): void;
  /** The call is over: undefined when it ended with OK. Called once, nothing follows. */
  end(error: GrpcError | undefined): void;
}

/** One gRPC call, on the client's side. */
export class ClientCall {
  readonly #stream: ClientHttp2Stream;
  readonly #gzip: boolean;
  readonly #maxMessageBytes: number;
  #reader: FrameReader;
  #listener: ClientCallListener | undefined;
  #drained: (() => void) | undefined;
  #status: { readonly code: GrpcStatusCode; readonly details: string } | undefined;
  #streamError: Error | undefined;
  #accepted = false;
  #over = false;
  #isConnectionGone = false;

  constructor(stream: ClientHttp2Stream, options: { readonly gzip: boolean; readonly maxMessageBytes: number }) {
    this.#stream = stream;
    this.#gzip = options.gzip;
    this.#maxMessageBytes = options.maxMessageBytes;
    this.#reader = this.#newReader(false);
    stream.on('response', (headers) => this.#response(headers));
    stream.on('trailers', (trailers) => this.#takeStatus(trailers));
    stream.on('drain', () => this.#drained?.());
    stream.on('error', (error) => {
      this.#streamError ??= error;
    });
    stream.on('close', () => this.#closed());
  }

  /** Whether the call has ended. */
  get isOver(): boolean {
    return this.#over;
  }

  /** Starts delivering what the server sends. */
  listen(listener: ClientCallListener): void {
    this.#listener = listener;
    const stream = this.#stream;
    stream.on('data', (chunk: Buffer) => this.#receive(chunk));
    // The server is done: nothing that we might still send matters.
    stream.on('end', () => stream.close());
    if (this.#accepted) listener.accepted?.();
    if (this.#over) listener.end(this.#result());
  }

  /** Sends one message; false when the connection is full, or the call over (then nothing is sent). */
  send(message: Uint8Array): boolean {
    if (this.#over || this.#stream.destroyed || this.#stream.writableEnded) return false;
    return this.#stream.write(frameMessage(message, this.#gzip));
  }

  /** Sets the one listener for "can take more". */
  onDrain(listener: () => void): void {
    this.#drained = listener;
  }

  /** Stops and starts the delivery of messages; the server is slowed down by flow control. */
  pause(): void {
    this.#stream.pause();
  }

  /** See `pause`. */
  resume(): void {
    this.#stream.resume();
  }

  /** Says that nothing more will be sent. */
  halfClose(): void {
    if (!this.#stream.writableEnded) this.#stream.end();
  }

  /** Gives the call up; it ends with `canceled`. */
  cancel(): void {
    if (this.#over) return;
    this.#status ??= { code: grpcStatus.canceled, details: 'the call was given up' };
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  #newReader(gzip: boolean): FrameReader {
    return new FrameReader({ maxBytes: this.#maxMessageBytes, gzip });
  }

  #response(headers: IncomingHttpHeaders): void {
    if (headers['grpc-encoding'] === 'gzip') this.#reader = this.#newReader(true);
    if (headers['grpc-status'] !== undefined) this.#takeStatus(headers);
    else if (Number(headers[':status']) !== 200) {
      const status = Number(headers[':status']);
      this.#status = { code: statusOfHttp(status), details: `the server answered with HTTP status ${status}` };
    } else {
      this.#accepted = true;
      this.#listener?.accepted?.();
    }
  }

  #takeStatus(headers: IncomingHttpHeaders): void {
    const code = headers['grpc-status'];
    const message = headers['grpc-message'];
    if (typeof code !== 'string') return;
    this.#status ??= { code: parseStatus(code), details: typeof message === 'string' ? decodeMessage(message) : '' };
  }

  #receive(chunk: Buffer): void {
    if (this.#over || this.#status?.code === grpcStatus.canceled) return;
    try {
      for (const message of this.#reader.push(chunk)) this.#listener?.message(message);
    } catch (error) {
      const { code, details } =
        error instanceof GrpcError ? error : new GrpcError(grpcStatus.internal, 'receiving a message failed');
      this.#status = { code, details };
      this.#streamError = error instanceof Error ? error : undefined;
      this.#stream.close(constants.NGHTTP2_CANCEL);
    }
  }

  #closed(): void {
    if (this.#over) return;
    this.#over = true;
    const { session } = this.#stream;
    this.#isConnectionGone = session === undefined || session.closed || session.destroyed;
    this.#listener?.end(this.#result());
  }

  #result(): GrpcError | undefined {
    if (this.#status !== undefined) {
      if (this.#status.code === grpcStatus.ok) return undefined;
      return new GrpcError(this.#status.code, this.#status.details, { cause: this.#streamError });
    }
    // A connection that goes down takes its streams along with whatever code.
    const reset = this.#isConnectionGone ? undefined : this.#stream.rstCode;
    const [code, details] = statusOfReset(reset);
    const isConnectionLoss = code === grpcStatus.unavailable;
    return new GrpcError(code, details, { cause: this.#streamError, isConnectionLoss });
  }
}

/** What a stream that ended without a status means, from gRPC's table for HTTP/2 errors. */
function statusOfReset(code: number | undefined): [GrpcStatusCode, string] {
  switch (code) {
    case constants.NGHTTP2_CANCEL:
      return [grpcStatus.canceled, 'the call was canceled'];
    case constants.NGHTTP2_ENHANCE_YOUR_CALM:
      return [grpcStatus.resourceExhausted, 'the server is overloaded'];
    case constants.NGHTTP2_INADEQUATE_SECURITY:
      return [grpcStatus.permissionDenied, 'the server finds the connection not secure enough'];
    default:
      return [grpcStatus.unavailable, 'the connection broke'];
  }
}

/** Runs a unary call to its end. @throws GrpcError */
export function callUnary(call: ClientCall, request: Uint8Array, signal: AbortSignal): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    let response: Uint8Array | undefined;
    const onAbort = () => call.cancel();
    signal.addEventListener('abort', onAbort, { once: true });
    call.listen({
      message(bytes) {
        response ??= bytes;
      },
      end(error) {
        signal.removeEventListener('abort', onAbort);
        if (error !== undefined) reject(error);
        else if (response === undefined) reject(new GrpcError(grpcStatus.internal, 'the server sent no answer'));
        else resolve(response);
      },
    });
    call.send(request);
    call.halfClose();
    if (signal.aborted) onAbort();
  });
}
