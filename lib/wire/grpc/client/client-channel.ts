import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from 'node:http2';
import { type GrpcStatusCode, grpcStatus } from '../status.ts';

/** The listener of a channel. */
export interface ClientChannelListener {
  /** The request was sent. */
  opened(): void;
  /** The response has begun. */
  headers(status: number, headers: Readonly<Record<string, unknown>>): void;
  trailers(headers: Readonly<Record<string, unknown>>): void;
  /** Bytes of gRPC frames, cut anywhere; only after `read`. */
  data(chunk: Buffer): void;
  /** A channel that was full can take more. */
  drain(): void;
  /** The channel is closed; nothing follows. */
  closed(end: ChannelEnd): void;
}

/** The status of a call whose channel ended without one. */
export interface ChannelEnd {
  readonly code: GrpcStatusCode;
  readonly details: string;
  readonly cause: Error | undefined;
}

/** What carries one call on the client's side: a stream of HTTP/2, or a WebSocket. */
export interface ClientChannel {
  /** The largest message that can be carried; `Infinity` where the transport sets no limit. */
  readonly maxMessageBytes: number;
  /** Whether nothing can be sent any more. */
  readonly isGone: boolean;
  /** Names the one listener; called at once, by the call. */
  attach(listener: ClientChannelListener): void;
  /** Starts delivering data. */
  read(): void;
  pause(): void;
  resume(): void;
  /** Sends a frame; false when the channel is full. */
  write(frame: Buffer): boolean;
  /** Nothing more will be sent. */
  halfClose(): void;
  /** Gives the call up. */
  cancel(): void;
}

/** A call over a stream of HTTP/2. */
export class Http2ClientChannel implements ClientChannel {
  readonly maxMessageBytes = Number.POSITIVE_INFINITY;
  readonly #stream: ClientHttp2Stream;
  #listener: ClientChannelListener | undefined;

  constructor(stream: ClientHttp2Stream) {
    this.#stream = stream;
  }

  get isGone(): boolean {
    return this.#stream.destroyed || this.#stream.writableEnded;
  }

  attach(listener: ClientChannelListener): void {
    this.#listener = listener;
    listener.opened();
    const stream = this.#stream;
    let cause: Error | undefined;
    stream.on('response', (headers: IncomingHttpHeaders) => listener.headers(Number(headers[':status']), headers));
    stream.on('trailers', (trailers: IncomingHttpHeaders) => listener.trailers(trailers));
    stream.on('drain', () => listener.drain());
    stream.on('error', (error) => {
      cause ??= error;
    });
    stream.on('close', () => {
      const { session } = stream;
      // A connection that goes down takes its streams along with whatever code.
      const isConnectionGone = session === undefined || session.closed || session.destroyed;
      listener.closed({ ...meaningOf(isConnectionGone ? undefined : stream.rstCode), cause });
    });
  }

  read(): void {
    this.#stream.on('data', (chunk: Buffer) => this.#listener?.data(chunk));
    // The server is done: nothing that we might still send matters.
    this.#stream.on('end', () => this.#stream.close());
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  write(frame: Buffer): boolean {
    return this.#stream.write(frame);
  }

  halfClose(): void {
    if (!this.#stream.writableEnded) {
      this.#stream.end();
    }
  }

  cancel(): void {
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }
}

/** The status of a stream that ended without one, from gRPC's table for HTTP/2 errors. */
function meaningOf(code: number | undefined): { code: GrpcStatusCode; details: string } {
  switch (code) {
    case constants.NGHTTP2_CANCEL:
      return { code: grpcStatus.canceled, details: 'the call was canceled' };
    case constants.NGHTTP2_ENHANCE_YOUR_CALM:
      return { code: grpcStatus.resourceExhausted, details: 'the server is overloaded' };
    case constants.NGHTTP2_INADEQUATE_SECURITY:
      return { code: grpcStatus.permissionDenied, details: 'the server finds the connection not secure enough' };
    default:
      return { code: grpcStatus.unavailable, details: 'the connection broke' };
  }
}
