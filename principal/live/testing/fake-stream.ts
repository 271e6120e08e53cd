import { grpcStatus, type LogStreamResponse, type ServerLiveStream } from '../../../lib/wire/index.ts';

/** An agent's stream, of which is remembered what the principal did with it. */
export class FakeStream implements ServerLiveStream<LogStreamResponse> {
  readonly agent: string;
  readonly answers: number[] = [];
  code: number | undefined;
  isPaused = false;

  constructor(agent: string) {
    this.agent = agent;
  }

  get ended() {
    return this.code !== undefined;
  }

  send(message: LogStreamResponse) {
    this.answers.push(message.status);
    return true;
  }

  onDrain() {
    return undefined;
  }

  pause() {
    this.isPaused = true;
  }

  resume() {
    this.isPaused = false;
  }

  finish(code: number = grpcStatus.ok) {
    this.code ??= code;
  }
}
