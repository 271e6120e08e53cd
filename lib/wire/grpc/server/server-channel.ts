import type { GrpcError } from '../status.ts';

/** The listener of a channel. It is not called before `ServerChannel.read`. */
export interface ChannelListener {
  /** Bytes of gRPC frames, cut anywhere. */
  data(chunk: Buffer): void;
  /** The client will send nothing more. */
  end(): void;
  /** The bytes are not gRPC; nothing more is delivered. */
  unreadable(error: GrpcError): void;
  /** The number of received bytes that the channel holds; 0 after their delivery. */
  partial(bytes: number): void;
  /** A channel that was full can take more. */
  drain(): void;
}

/** What carries one call on the server's side: a stream of HTTP/2, a request of HTTP/1.1, or a WebSocket. */
export interface ServerChannel {
  /** The request's path, without a query. */
  readonly path: string;
  /** The largest message that can be carried; `Infinity` where the transport sets no limit. */
  readonly maxMessageBytes: number;
  /** Whether nothing can be written any more. */
  readonly isGone: boolean;
  /** The first value of a request header; `name` in lower case. */
  header(name: string): string | undefined;
  /** Sets the one listener for "the channel has broken or closed"; it may be called several times. */
  onGone(listener: () => void): void;
  /** Starts delivering, unless the channel is paused. Messages above `maxMessageBytes` need not be gathered: they will be refused. */
  read(listener: ChannelListener, maxMessageBytes: number): void;
  pause(): void;
  resume(): void;
  /** Sends the response headers; called at most once, before anything else is sent. */
  respond(headers: Readonly<Record<string, string>>): void;
  /** Sends a frame; false when the channel is full. */
  write(frame: Buffer): boolean;
  /**
   * Ends the response; `headers` are those of a response that has not begun. Later data of the client is discarded,
   * and one that does not stop is cut off after a while.
   */
  finish(trailers: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>> | undefined): void;
}
