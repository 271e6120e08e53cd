import { BufferSweep } from '../../lib/live/index.ts';
import {
  grpcStatus,
  type LiveStreamHandlers,
  type LogStreamData,
  LogStreamResponse,
  type ServerLiveStream,
} from '../../lib/wire/index.ts';

/** Who waits for bytes that an agent sends over a live stream of logs: a log, or the body of an answer. */
export interface BodyReader {
  /** The agent has opened the stream. */
  opened?(): void;
  /** @returns false to make the agent wait until `resume` is called */
  data(bytes: Buffer): boolean;
  /** The body is complete, or the agent reported an error. The last call. */
  ended(error?: string): void;
  /** The stream broke off before its end. The agent may open another one as long as the expectation stands. */
  lost(): void;
}

/** Bytes that are expected of an agent. */
export interface ExpectedBody {
  /** The reader can take more. */
  resume(): void;
  /** The rest is not needed: cancels the agent's stream. */
  cancel(): void;
}

interface Expected {
  readonly agent: string;
  readonly reader: BodyReader;
  stream: ServerLiveStream<LogStreamResponse> | undefined;
}

/**
 * Streams of bytes from agents, matched by UUID to their readers. Only the agent that got the request finds the reader; an agent
 * that offers another stream gets `NotFound`, as from argocd-agent's principal.
 */
export class Bodies {
  readonly #expected = new Map<string, Expected>();
  readonly #sweep = new BufferSweep();

  /** Expects a stream of this UUID from this agent, until it has ended or is cancelled. */
  expect(agent: string, uuid: string, reader: BodyReader): ExpectedBody {
    const expected: Expected = { agent, reader, stream: undefined };
    this.#expected.set(uuid, expected);
    return {
      resume: () => expected.stream?.resume(),
      cancel: () => {
        if (this.#expected.get(uuid) !== expected) {
          return;
        }
        this.#expected.delete(uuid);
        const { stream } = expected;
        // `finish` calls `closed` before it returns, here and below: whoever cancels hears nothing more.
        expected.stream = undefined;
        stream?.finish(grpcStatus.canceled, 'client disconnected');
      },
    };
  }

  /** Takes a stream that an agent has opened. */
  serve(stream: ServerLiveStream<LogStreamResponse>): LiveStreamHandlers<LogStreamData> {
    let uuid: string | undefined;
    let expected: Expected | undefined;
    const end = (error?: string) => {
      if (uuid === undefined || expected === undefined) {
        return;
      }
      this.#expected.delete(uuid);
      const { reader } = expected;
      expected = undefined;
      reader.ended(error);
    };
    return {
      message: (message) => {
        if (uuid === undefined) {
          uuid = message.requestUuid;
          const found = this.#expected.get(uuid);
          if (found?.agent === stream.agent) {
            // An agent that comes back may be here before its old stream is known to have broken.
            const former = found.stream;
            found.stream = stream;
            expected = found;
            former?.finish(grpcStatus.canceled, 'replaced by a newer stream');
            expected.reader.opened?.();
          }
        }
        if (expected === undefined || expected.stream !== stream || message.requestUuid !== uuid) {
          stream.finish(grpcStatus.notFound, 'unknown request id');
          return;
        }
        if (message.data.length > 0 && !expected.reader.data(message.data)) {
          stream.pause();
        }
        this.#sweep.passed(message.data.length);
        if (message.error !== '') {
          end(message.error);
          stream.finish(grpcStatus.internal, message.error.slice(0, 1_000));
        } else if (message.eof) {
          stream.send(LogStreamResponse.fromPartial({ requestUuid: uuid, status: 200 }));
          end();
          stream.finish();
        }
      },
      halfClosed: () => stream.finish(),
      closed: () => {
        if (expected?.stream !== stream) {
          return;
        }
        expected.stream = undefined;
        expected.reader.lost();
      },
    };
  }
}
