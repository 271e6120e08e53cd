import { LogStreamData, LogStreamResponse } from '../../../proto/gen/logstreamapi/logstream.ts';
import { TerminalStreamData } from '../../../proto/gen/terminalstreamapi/terminalstream.ts';
import type { Logger } from '../../base/index.ts';
import { forEachField } from '../fields.ts';
import type { ClientCall } from '../grpc/client/client-call.ts';
import type { MessageBytes } from '../grpc/frames.ts';
import type { ServerCall } from '../grpc/server/server-call.ts';
import { GrpcError, type GrpcStatusCode, grpcStatus } from '../grpc/status.ts';

export { LogStreamData, LogStreamResponse, TerminalStreamData };

/** A stream of live data that an agent has opened beside its event stream, seen from either side. */
export interface LiveStream<Out> {
  /** @returns false when the stream is full (further messages should wait for `onDrain`) or over (nothing is sent) */
  send(message: Out): boolean;
  /** Sets the one listener that is called when a stream that was full can take more. */
  onDrain(listener: () => void): void;
  /** Stops reading: flow control makes the peer wait. */
  pause(): void;
  /** Goes on reading. */
  resume(): void;
  /** Whether the stream has ended. */
  readonly ended: boolean;
}

/** The principal's side. */
export interface ServerLiveStream<Out> extends LiveStream<Out> {
  /** Whose stream it is, from its token. */
  readonly agent: string;
  /** Ends the stream: in order, or with a status that the agent sees. Repeating it does nothing. */
  finish(code?: GrpcStatusCode, details?: string): void;
}

/** The agent's side. */
export interface ClientLiveStream<Out> extends LiveStream<Out> {
  /** Ends this side's messages; the principal may still send. */
  halfClose(): void;
  /** Gives the stream up. */
  cancel(): void;
}

/** The handlers of a live stream's user. */
export interface LiveStreamHandlers<In> {
  message(message: In): void;
  /** The agent has ended its messages. Called for principals only. */
  halfClosed?(): void;
  /** The stream has ended; nothing follows. Without an error it ended in order; on the principal's side always. */
  closed(error?: GrpcError): void;
}

/** A principal's handlers of agents' live streams. */
export interface LiveStreamService {
  /** Logs of a container, or the body of an answer. */
  logs(stream: ServerLiveStream<LogStreamResponse>): LiveStreamHandlers<LogStreamData>;
  /** The input and output of a terminal. */
  terminal(stream: ServerLiveStream<TerminalStreamData>): LiveStreamHandlers<TerminalStreamData>;
}

/** The live streams that an agent can open while its event stream is open; they end with the connection. */
export interface LiveCalls {
  /** @throws GrpcError when the connection is gone */
  logs(handlers: LiveStreamHandlers<LogStreamResponse>): Promise<ClientLiveStream<LogStreamData>>;
  /** @throws GrpcError when the connection is gone */
  terminal(handlers: LiveStreamHandlers<TerminalStreamData>): Promise<ClientLiveStream<TerminalStreamData>>;
}

/**
 * The largest message of a live stream that is read. The originals send up to 64 KiB of a log at a time and less of a
 * terminal, agents of this project up to 128 KiB.
 */
const maxLiveMessageBytes = 1024 * 1024;
/** Most fields of a message of a terminal, unknown ones included. There are eight. */
const maxTerminalFields = 32;

/** The bytes of {@link TerminalStreamData}. */
export const terminalStreamCodec = {
  encode: (message: TerminalStreamData) => TerminalStreamData.encode(message),

  /** @throws Error for an invalid message, or one with too many fields */
  decode(bytes: Uint8Array): TerminalStreamData {
    forEachField(bytes, maxTerminalFields, () => undefined);
    return TerminalStreamData.decode(bytes);
  },
};

interface Encoder<T, Bytes extends MessageBytes> {
  encode(message: T): { finish(): Bytes };
}

interface Decoder<T> {
  decode(bytes: Uint8Array): T;
}

/** Serves a call of an agent as a live stream. */
export function serveLiveStream<In, Out>(
  call: ServerCall,
  agent: string,
  codecs: { readonly incoming: Decoder<In>; readonly outgoing: Encoder<Out, Uint8Array> },
  logger: Logger,
  start: (stream: ServerLiveStream<Out>) => LiveStreamHandlers<In>,
): void {
  const stream: ServerLiveStream<Out> = {
    agent,
    get ended() {
      return call.isOver;
    },
    send: (message) => call.send(codecs.outgoing.encode(message).finish()),
    onDrain: (listener) => call.onDrain(listener),
    pause: () => call.pause(),
    resume: () => call.resume(),
    finish: (code, details) => call.finish(code, details),
  };
  call.accept();
  const handlers = start(stream);
  call.listen(
    {
      message: (bytes) => {
        try {
          handlers.message(codecs.incoming.decode(bytes));
        } catch (error) {
          logger.warn({ agent, call: call.path, error }, 'A message of a live stream is refused');
          call.finish(grpcStatus.invalidArgument, 'the message cannot be read');
        }
      },
      unreadable: (error) => call.fail(error),
      halfClose: () => handlers.halfClosed?.(),
      end: () => handlers.closed(),
    },
    { maxMessageBytes: maxLiveMessageBytes, peer: agent },
  );
}

/** Uses a call to the principal as a live stream. */
export function openLiveStream<In, Out>(
  call: ClientCall,
  codecs: { readonly incoming: Decoder<In>; readonly outgoing: Encoder<Out, MessageBytes> },
  handlers: LiveStreamHandlers<In>,
): ClientLiveStream<Out> {
  let isBroken = false;
  call.listen({
    message: (bytes) => {
      if (isBroken) {
        return;
      }
      try {
        handlers.message(codecs.incoming.decode(bytes));
      } catch {
        isBroken = true;
        call.cancel();
      }
    },
    end: (error) => {
      handlers.closed(
        isBroken ? new GrpcError(grpcStatus.internal, 'a message of the principal is unreadable') : error,
      );
    },
  });
  return {
    get ended() {
      return call.isOver;
    },
    send: (message) => call.send(codecs.outgoing.encode(message).finish()),
    onDrain: (listener) => call.onDrain(listener),
    pause: () => call.pause(),
    resume: () => call.resume(),
    halfClose: () => call.halfClose(),
    cancel: () => call.cancel(),
  };
}
