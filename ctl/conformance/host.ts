import { randomUUID } from 'node:crypto';
import {
  type AgentIdentity,
  type AuthMethod,
  type AuthRequest,
  authenticateWith,
  checkToken,
  TokenAuthority,
} from '../../lib/auth/index.ts';
import { abortable } from '../../lib/base/index.ts';
import { generateJwtKey } from '../../lib/pki/index.ts';
import { type EventStream, principalSource, type ServerTls, serveWire, type WireServer } from '../../lib/wire/index.ts';
import { Conversation, within } from './conversation.ts';

/** Where the principal of the suite listens, and how agents log in. */
export interface HostOptions {
  readonly address: string;
  /** 0 takes a free port. */
  readonly port: number;
  readonly tls: ServerTls | 'plaintext';
  readonly method: AuthMethod;
  /** The version that it says it has: agents of argocd-agent take any. */
  readonly version: string;
  readonly webSocket: boolean;
  /** How long to wait for one thing, in milliseconds. */
  readonly timeoutMs: number;
  /** An answer that does not come for so long counts as none. */
  readonly silenceMs: number;
}

/** A session of the agent: what it says, and the end of its stream in the principal's hand. */
export interface HostedSession {
  readonly agent: AgentIdentity;
  readonly talk: Conversation;
  /** Ends the stream as a principal does that stops. */
  end(): void;
}

/** What an agent has said when it logged in, and under which name it was known. */
export interface SeenLogin extends AuthRequest {
  readonly agent: string;
}

/** A principal that has nothing but cases: it takes one agent, and says to it what the cases say. */
export class AgentHost {
  readonly options: HostOptions;
  /** The principal's identity, on everything about objects. */
  readonly origin = { source: principalSource, principalUid: randomUUID() };
  /** The logins that it has taken, in order. */
  readonly logins: SeenLogin[] = [];
  readonly #sessions: HostedSession[] = [];
  #server: WireServer | undefined;
  #opened = Promise.withResolvers<void>();

  private constructor(options: HostOptions) {
    this.options = options;
  }

  /** Listens. @throws Error when it cannot */
  static async start(options: HostOptions): Promise<AgentHost> {
    const host = new AgentHost(options);
    const { address, port, tls, method, version, webSocket } = options;
    host.#server = await serveWire({
      address,
      port,
      tls,
      version,
      webSocket,
      principalNamespace: 'argocd',
      tokens: TokenAuthority.fromPem(await generateJwtKey(2048)),
      authenticate: (request, peer) => authenticateWith(method, request, peer),
      authenticated: ({ agent }, request) => {
        host.logins.push({ ...request, agent });
      },
      authorize: (identity, peer) => checkToken(method, identity, peer),
      subscribe: (session) => host.#take(session, session.stream),
      logger: { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined },
    });
    return host;
  }

  /** Where it listens. */
  get port(): number {
    return this.#server?.port ?? 0;
  }

  /** How many sessions there were. */
  get count(): number {
    return this.#sessions.length;
  }

  /** The open session, or the next one. @throws Error when none comes in time */
  async session(
    options: { readonly after?: number; readonly timeoutMs?: number; readonly signal?: AbortSignal } = {},
  ): Promise<HostedSession> {
    const { after = 0, timeoutMs = this.options.timeoutMs, signal } = options;
    const found = async () => {
      for (;;) {
        const open = this.#sessions.slice(after).findLast(({ talk }) => !talk.isOver);
        if (open !== undefined) {
          return open;
        }
        await this.#opened.promise;
      }
    };
    return within(abortable(found(), signal), { timeoutMs }, 'no agent has a stream');
  }

  /** Ends everything. */
  async close(): Promise<void> {
    await this.#server?.close();
  }

  #take(agent: AgentIdentity, stream: EventStream) {
    const { timeoutMs } = this.options;
    const talk = new Conversation({ send: (event) => stream.send(event), source: principalSource, timeoutMs });
    this.#sessions.push({ agent, talk, end: () => stream.close('conformance') });
    this.#opened.resolve();
    this.#opened = Promise.withResolvers();
    return {
      event: talk.take.bind(talk),
      closed: talk.end.bind(talk),
    };
  }
}
