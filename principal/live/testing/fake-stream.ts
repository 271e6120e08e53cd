import { grpcStatus, type LogStreamResponse, type ServerLiveStream } from '../../../lib/wire/index.ts';

/** An agent's stream that records the principal's calls. */
export class FakeLiveStream<Out> implements ServerLiveStream<Out> {
  readonly agent: string;
  readonly sent: Out[] = [];
  code: number | undefined;
  message: string | undefined;
  isPaused = false;
  /** Whether there is room after each message. */
  hasRoom = true;
  drained: () => void = () => undefined;

  constructor(agent: string) {
    this.agent = agent;
  }

  get ended() {
    return this.code !== undefined;
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
    if (this.code === undefined) {
      this.code = code;
      this.message = message;
    }
  }
}

/** A stream of logs. */
export class FakeStream extends FakeLiveStream<LogStreamResponse> {
  get answers(): number[] {
    return this.sent.map(({ status }) => status);
  }
}
