import type { GoCall, GoConnection } from './go-calls.ts';
import { readEvent, writeEvent } from './go-event.ts';
import type { GoPeer, GoTls } from './go-peer.ts';
import { type GoSpeech, type GoStream, goStream } from './go-side.ts';
import { type Fields, readMessage, writeMessage } from './protobuf.ts';
import { recordedLogin } from './recorded-calls.ts';
import { authRequest, authResponse, methods } from './schemas.ts';

/** What both modes of the original write. */
const agentSource = 'agent://agent-managed';

/** How an agent of the original gets its event stream: login, version, stream, with the recorded request. */
export class GoDialer {
  /** The event stream of the agent's process. */
  stream: GoStream;
  readonly #options: GoSpeech & { readonly go: GoPeer; readonly address: string; readonly tls: GoTls };
  readonly #request: Fields;
  #connection: GoConnection | undefined;
  #call: GoCall | undefined;
  #isNew = true;
  /** What the principal answered to the last login. */
  answer: Fields = {};

  /** @param options.namespace where the agent says that it is installed */
  constructor(
    options: GoSpeech & {
      readonly go: GoPeer;
      readonly address: string;
      readonly tls: GoTls;
      readonly mode: 'managed' | 'autonomous';
      readonly namespace: string;
    },
  ) {
    this.#options = options;
    const { mode, namespace: agentNamespace } = options;
    this.#request = { ...readMessage(authRequest, recordedLogin(mode)), agentNamespace };
    this.stream = goStream(agentSource, options);
  }

  /** The open event stream. */
  get call(): GoCall {
    if (this.#call === undefined) {
      throw new Error('there was no stream');
    }
    return this.#call;
  }

  /** Logs in and opens the stream. True: the first one of this process. @throws Error when the principal refuses */
  async open(): Promise<boolean> {
    const { stream } = this;
    const { go, address, tls } = this.#options;
    const connection = go.dial({ address, tls });
    const answer = await connection.unary(methods.authenticate, writeMessage(authRequest, this.#request));
    if (answer.code !== 'OK') {
      connection.close();
      throw new Error(`login: ${answer.code}: ${answer.message}`);
    }
    this.answer = readMessage(authResponse, answer.bytes);
    const authorization = String(this.answer.accessToken);
    const version = await connection.unary(methods.version, Buffer.alloc(0), { authorization });
    if (version.code !== 'OK') {
      throw new Error(`version: ${version.code}: ${version.message}`);
    }
    this.#connection = connection;
    const call = connection.open(
      methods.subscribe,
      { authorization },
      {
        message: (bytes) => stream.take(readEvent(bytes)),
      },
    );
    this.#call = call;
    stream.start((event) => call.send(writeEvent(event)));
    const isNew = this.#isNew;
    this.#isNew = false;
    return isNew;
  }

  /** The connection breaks, or the process ends: without a word on the stream. */
  close(): void {
    this.stream.writer.stop();
    this.#connection?.close();
    this.#connection = undefined;
  }

  /** A new process: what was in memory is gone. */
  restart(): void {
    this.close();
    this.#isNew = true;
    this.stream = goStream(agentSource, this.#options);
  }
}
