import {
  grpcStatus,
  type LiveStreamHandlers,
  type LogStreamResponse,
  type ServerLiveStream,
} from '../../../lib/wire/index.ts';

/** The agent's end of a {@link FakeLiveStream}. */
export interface FakeAgentEnd<In> {
  message(message: In): void;
  /** The connection breaks. */
  closed(): void;
}

/** An agent's stream that records the principal's calls, and ends as a real one does. */
export class FakeLiveStream<Out> implements ServerLiveStream<Out> {
  readonly agent: string;
  readonly sent: Out[] = [];
  code: number | undefined;
  message: string | undefined;
  isPaused = false;
  /** Whether there is room after each message. */
  hasRoom = true;
  drained: () => void = () => undefined;
  #isOver = false;
  #over: () => void = () => undefined;

  constructor(agent: string) {
    this.agent = agent;
  }

  get ended() {
    return this.#isOver;
  }

  /** Serves it, as `serveLiveStream` does: `closed` is called once, by `finish` before it returns, and nothing follows it. */
  servedBy<In>(serve: (stream: ServerLiveStream<Out>) => LiveStreamHandlers<In>): FakeAgentEnd<In> {
    const handlers = serve(this);
    if (this.#isOver) {
      handlers.closed();
    }
    this.#over = () => handlers.closed();
    return {
      message: (message) => {
        if (!this.#isOver) {
          handlers.message(message);
        }
      },
      closed: () => this.#end(),
    };
  }

  send(message: Out) {
    if (this.ended) {
      return false;
    }
    this.sent.push(message);
    return this.hasRoom;
  }

  onDrain(listener: () => void) {
    this.drained = listener;
  }

  pause() {
    this.isPaused = true;
  }

  resume() {
    this.isPaused = false;
  }

  finish(code: number = grpcStatus.ok, message?: string) {
    if (!this.#isOver) {
      this.code = code;
      this.message = message;
      this.#end();
    }
  }

  #end() {
    if (!this.#isOver) {
      this.#isOver = true;
      this.#over();
    }
  }
}

/** A stream of logs. */
export class FakeStream extends FakeLiveStream<LogStreamResponse> {
  get answers(): number[] {
    return this.sent.map(({ status }) => status);
  }
}
