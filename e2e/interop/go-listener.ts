import { messageBytes, recordedLines } from '../recordings/index.ts';
import type { GoCall, GoCallListener } from './go-calls.ts';
import type { GoPeer, GoServer, GoTls } from './go-peer.ts';
import { type Fields, readMessage, writeMessage } from './protobuf.ts';
import { authRequest, authResponse, methods, refreshTokenRequest, versionResponse } from './schemas.ts';
import { movedToken } from './tokens.ts';

/** The version of the recorded principal, which takes no other. */
export const recordedVersion = '99.9.9-unreleased';

/** What an agent meets at a principal of the original: version insistence, tokens, and its event stream. */
export class GoListener {
  /** The calls that came, in order. */
  readonly calls: GoCall[] = [];
  /** The logins that came. */
  readonly logins: Fields[] = [];
  readonly #options: {
    readonly go: GoPeer;
    readonly tls: GoTls;
    readonly agent: string;
    readonly mode: 'managed' | 'autonomous';
    subscribed(call: GoCall): GoCallListener;
  };
  #server: GoServer | undefined;

  constructor(options: {
    readonly go: GoPeer;
    readonly tls: GoTls;
    /** Whoever logs in is this agent. */
    readonly agent: string;
    readonly mode: 'managed' | 'autonomous';
    subscribed(call: GoCall): GoCallListener;
  }) {
    this.#options = options;
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

  /** Ends all streams. */
  async stop(): Promise<void> {
    await this.#server?.stop();
  }

  #accept(call: GoCall): GoCallListener {
    this.calls.push(call);
    if (call.method === methods.subscribe) {
      return this.#options.subscribed(call);
    }
    return { message: (bytes) => this.#answer(call, bytes) };
  }

  #answer(call: GoCall, bytes: Buffer): void {
    if (call.method === methods.version) {
      call.send(writeMessage(versionResponse, { version: `argocd-agent-${recordedVersion}` }));
    } else if (call.method === methods.authenticate) {
      const request = readMessage(authRequest, bytes);
      this.logins.push(request);
      if (request.version !== recordedVersion) {
        call.finish('FailedPrecondition', 'version mismatch');
        return;
      }
      call.send(writeMessage(authResponse, this.#tokens()));
    } else {
      readMessage(refreshTokenRequest, bytes);
      call.send(writeMessage(authResponse, { accessToken: this.#tokens().accessToken }));
    }
    call.finish();
  }

  /** The recorded answer to a login, for this agent and as good as new. */
  #tokens(): Fields {
    const recorded = recordedLines('connect').find(
      ({ rpc, dir, bytes }) => rpc === methods.authenticate && dir === 'principal->agent' && bytes !== undefined,
    );
    if (recorded === undefined) {
      throw new Error('there is no recorded answer to a login');
    }
    const answer = readMessage(authResponse, messageBytes(recorded));
    const identity = { clientID: this.#options.agent, mode: this.#options.mode };
    const moved = (token: unknown) => movedToken(String(token), new Date(), identity);
    return { ...answer, accessToken: moved(answer.accessToken), refreshToken: moved(answer.refreshToken) };
  }
}
