import type { GoCall, GoCallListener } from './go-calls.ts';
import { readEvent, writeEvent } from './go-event.ts';
import type { GoPeer, GoServer, GoTls } from './go-peer.ts';
import { type GoSpeech, type GoStream, goStream } from './go-side.ts';
import { type Fields, readMessage, writeMessage } from './protobuf.ts';
import { recordedAnswer } from './recorded-calls.ts';
import { authRequest, authResponse, methods, refreshTokenRequest, versionResponse } from './schemas.ts';

/** The version of the recorded principal, which takes no other. */
export const recordedVersion = '99.9.9-unreleased';

/** How a principal of the original is made. */
export interface GoListenerOptions extends GoSpeech {
  readonly go: GoPeer;
  readonly tls: GoTls;
  /** Whoever logs in is this agent. */
  readonly agent: string;
  readonly mode: 'managed' | 'autonomous';
  /** Says what is said on a new stream. `isFirst`: since the process started. */
  greet(isFirst: boolean): void;
}

/** What an agent meets at a principal of the original: version insistence, tokens, and its event stream. */
export class GoListener {
  /** The event stream of the principal's process. */
  stream: GoStream;
  /** The logins that came. */
  readonly logins: Fields[] = [];
  readonly #options: GoListenerOptions;
  #server: GoServer | undefined;
  #call: GoCall | undefined;
  #isFirst = true;

  constructor(options: GoListenerOptions) {
    this.#options = options;
    this.stream = goStream('', options);
  }

  /** Whether the agent has an event stream. */
  get isConnected(): boolean {
    return this.#call !== undefined;
  }

  /** Where it listens, `host:port`. */
  get address(): string {
    return this.#server?.address ?? '';
  }

  /** Listens; after `stop` on the same port. */
  async start(): Promise<void> {
    const { go, tls } = this.#options;
    const address = this.address === '' ? {} : { address: this.address };
    this.#server = await go.listen({ tls, ...address, accept: (call) => this.#accept(call) });
  }

  /** The process ends: queues and what it knew of agents are gone. */
  async stop(): Promise<void> {
    this.stream.writer.stop();
    this.#call = undefined;
    await this.#server?.stop();
    this.#isFirst = true;
    this.forgetQueue();
  }

  /** Cuts the agent's stream; queues stay. */
  disconnect(): void {
    this.stream.writer.stop();
    this.#call?.finish('Unavailable', 'transport is closing');
    this.#call = undefined;
  }

  /** Everything that waits to be sent is lost, as the oldest entries are when a queue of the original is full. */
  forgetQueue(): void {
    this.stream = goStream('', this.#options);
  }

  #accept(call: GoCall): GoCallListener {
    return call.method === methods.subscribe
      ? this.#subscribed(call)
      : { message: (bytes) => this.#answer(call, bytes) };
  }

  #subscribed(call: GoCall): GoCallListener {
    const { stream } = this;
    this.#call = call;
    stream.start((event) => call.send(writeEvent(event)));
    void call.ended.then(() => {
      if (this.#call === call) {
        stream.writer.stop();
        this.#call = undefined;
      }
    });
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    this.#options.greet(isFirst);
    return {
      message: (bytes) => {
        if (this.stream === stream) {
          stream.take(readEvent(bytes));
        }
      },
      halfClose: () => call.finish(),
    };
  }

  #answer(call: GoCall, bytes: Buffer): void {
    const { agent, mode } = this.#options;
    const answer = recordedAnswer(agent, new Date(), mode);
    if (call.method === methods.version) {
      call.send(writeMessage(versionResponse, { version: `argocd-agent-${recordedVersion}` }));
    } else if (call.method === methods.authenticate) {
      const request = readMessage(authRequest, bytes);
      this.logins.push(request);
      if (request.version !== recordedVersion) {
        call.finish('FailedPrecondition', 'version mismatch');
        return;
      }
      call.send(writeMessage(authResponse, answer));
    } else {
      readMessage(refreshTokenRequest, bytes);
      call.send(writeMessage(authResponse, { accessToken: answer.accessToken }));
    }
    call.finish();
  }
}
