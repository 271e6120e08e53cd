import { timeoutSignal } from '../../lib/base/index.ts';
import {
  agentSource,
  type ClientCall,
  type ClientTls,
  callUnary,
  clientKeepalive,
  connectGrpc,
  decodeEvent,
  defaultMaxMessageBytes,
  encodeEvent,
  type GrpcError,
  type GrpcTransport,
  isAcknowledgement,
  paths,
  sentAt,
  targets,
  type WireEvent,
} from '../../lib/wire/index.ts';
import { AuthRequest, AuthResponse, RefreshTokenRequest } from '../../proto/gen/authapi/auth.ts';
import { Event } from '../../proto/gen/eventstreamapi/eventstream.ts';
import { VersionRequest, VersionResponse } from '../../proto/gen/versionapi/version.ts';
import { Conversation, within } from './conversation.ts';

/** Where the principal is, and who the player is to it. */
export interface PlayerOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: ClientTls | 'plaintext';
  readonly mode: string;
  readonly method: string;
  readonly credentials: Readonly<Record<string, string>>;
  /** The version that a login names; empty: the principal's own, which originals insist on. */
  readonly version: string;
  /** How long to wait for one thing, in milliseconds. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** A deadline of its own for each wait, which also ends with the program. */
const deadline = ({ timeoutMs, signal }: Pick<PlayerOptions, 'timeoutMs' | 'signal'>) =>
  AbortSignal.any([signal, timeoutSignal(timeoutMs)]);

/** Plays an agent at a principal, message by message, also as no agent would. */
export class Player {
  readonly options: PlayerOptions;
  readonly #open = new Set<GrpcTransport>();

  private constructor(options: PlayerOptions) {
    this.options = options;
  }

  /** A player that knows which version to name. @throws the error of the connection, GrpcError */
  static async meet(options: PlayerOptions): Promise<Player> {
    const player = new Player(options);
    if (options.version !== '') {
      return player;
    }
    try {
      const connection = await player.connect();
      const answer = await connection.request(paths.version, VersionRequest.encode({}).finish());
      const { version } = VersionResponse.decode(answer);
      return new Player({ ...options, version: version.replace(/^argocd-agent-/, '') });
    } finally {
      player.close();
    }
  }

  /** A connection of its own. @throws the error of the connection */
  async connect(change: { readonly tls?: ClientTls; readonly compression?: boolean } = {}): Promise<Connection> {
    const { host, port, tls, timeoutMs, signal } = this.options;
    const transport = await connectGrpc({
      host,
      port,
      tls: change.tls ?? tls,
      proxy: undefined,
      timeoutMs,
      maxMessageBytes: defaultMaxMessageBytes,
      compression: change.compression ?? false,
      keepalive: clientKeepalive('grpc', { intervalMs: 0, factor: 1 }),
      signal,
    });
    this.#open.add(transport);
    return new Connection(transport, this.options);
  }

  /** A connection that has logged in, with its tokens. @throws GrpcError when the login is refused */
  async logIn(): Promise<{ connection: Connection; tokens: AuthResponse }> {
    const connection = await this.connect();
    return { connection, tokens: await connection.authenticate() };
  }

  /** A stream on a connection of its own. @throws GrpcError when the login is refused */
  async subscribe(): Promise<PlayedStream> {
    const { connection, tokens } = await this.logIn();
    return connection.subscribe(tokens.accessToken);
  }

  /** Ends everything that is open. */
  close(): void {
    for (const transport of this.#open) {
      transport.destroy();
    }
    this.#open.clear();
  }
}

/** One connection of a {@link Player}. */
export class Connection {
  readonly transport: GrpcTransport;
  readonly #options: PlayerOptions;

  constructor(transport: GrpcTransport, options: PlayerOptions) {
    this.transport = transport;
    this.#options = options;
  }

  /** Logs in, with fields of the request changed. @throws GrpcError */
  async authenticate(change: Partial<AuthRequest> = {}): Promise<AuthResponse> {
    const { method, credentials, mode, version } = this.#options;
    const request = { method, credentials: { ...credentials }, mode, version, agentNamespace: 'argocd', ...change };
    return AuthResponse.decode(await this.request(paths.authenticate, AuthRequest.encode(request).finish()));
  }

  /** Asks for a new access token. @throws GrpcError */
  async refresh(refreshToken: string): Promise<AuthResponse> {
    const request = RefreshTokenRequest.encode({ refreshToken }).finish();
    return AuthResponse.decode(await this.request(paths.refreshToken, request));
  }

  /** One request and its answer. @throws GrpcError, also when there is none in time */
  request(path: string, message: Uint8Array, token?: string): Promise<Uint8Array> {
    const headers = token === undefined ? undefined : { authorization: token };
    return callUnary(this.transport.call(path, headers), message, deadline(this.#options));
  }

  /** Opens a call of messages both ways. */
  stream(path: string, token: string | undefined): ClientCall {
    return this.transport.call(path, token === undefined ? undefined : { authorization: token });
  }

  /** Opens the event stream. */
  subscribe(token: string | undefined): PlayedStream {
    return new PlayedStream(this.stream(paths.subscribe, token), this.#options, this);
  }

  /** How a call ends that is left alone; undefined: with OK. @throws Error when it does not end in time */
  ending(call: ClientCall): Promise<GrpcError | undefined> {
    const ended = Promise.withResolvers<GrpcError | undefined>();
    call.listen({ message: () => undefined, end: ended.resolve });
    return within(ended.promise, this.#options, 'the call does not end');
  }
}

/** The event stream of a {@link Player}. */
export class PlayedStream {
  readonly connection: Connection;
  readonly talk: Conversation;
  readonly #call: ClientCall;

  constructor(call: ClientCall, options: PlayerOptions, connection: Connection) {
    this.#call = call;
    this.connection = connection;
    const { timeoutMs } = options;
    this.talk = new Conversation({ send: (event) => this.#send(event), source: agentSource, timeoutMs });
    call.listen({
      message: (bytes) => this.talk.take(decodeEvent(Event.decode(bytes).event)),
      end: (error) => this.talk.end(error),
    });
  }

  /** Sends any bytes as a message. */
  sendBytes(bytes: Uint8Array): void {
    this.#call.send(bytes);
  }

  /** How the call ends; undefined: with OK. @throws Error when it does not in time */
  async ending(): Promise<GrpcError | undefined> {
    return (await this.talk.ending()) as GrpcError | undefined;
  }

  /** With the time unless it is an event that carries none. */
  #send(event: WireEvent): void {
    const isUntimed = isAcknowledgement(event) || event.target === targets.heartbeat;
    const extensions = isUntimed ? event.extensions : { ...event.extensions, sentat: sentAt(new Date()) };
    this.sendBytes(Event.encode({ event: encodeEvent({ ...event, extensions }) }).finish());
  }
}
