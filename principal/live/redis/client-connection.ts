import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Logger } from '../../../lib/base/index.ts';
import {
  bulk,
  CommandReader,
  encodeCommand,
  errorReply,
  noValue,
  pushOf,
  type ReplyPiece,
  ReplySplitter,
  RespError,
} from '../../../lib/live/index.ts';
import type { AgentCache } from './agent-cache.ts';
import { AgentChannel } from './agent-channel.ts';
import { keyFault, unprefixed } from './keys.ts';
import { PacedNews } from './paced-news.ts';
import { isSubscriptionCommand, type SubscriptionCommand, Subscriptions } from './subscriptions.ts';
import { ValueRefusal } from './value-check.ts';

/** Options of a {@link ClientConnection}. */
export interface ClientConnectionOptions {
  readonly client: Socket;
  /** The connection to the principal's own Redis that is this client's alone. */
  readonly upstream: Socket;
  readonly cache: Pick<AgentCache, 'get' | 'subscribe' | 'ping'>;
  /** The agent whose Argo CD has the key or channel; undefined for the principal's own Redis. */
  agentOf(key: string): string | undefined;
  /** Called once, when Redis has accepted the client. */
  accepted?(): void;
  /** What the keys of the hub's Argo CD begin with; its channels do not. */
  readonly keyPrefix: string;
  readonly logger: Logger;
}

const pingIntervalMs = 60_000;
/** Subscriptions that one connection may have; argocd-server uses one connection for each. */
const mostSubscriptions = 1_000;
/** Received bytes that wait while a command is being executed; with more of them the client has to wait. */
const mostWaitingBytes = 64 * 1024;
/** A client that Redis has not accepted by then is disconnected. */
const acceptanceMs = 30_000;
/** A client may take this time to read the last replies after its connection to Redis has ended. */
const lingerMs = 10_000;

/**
 * Commands after which replies could not be matched to commands any more, because Redis sends none or any number of them. RESET
 * would in addition end the authentication, the protocol version and the subscriptions of the connection.
 */
const refusedCommands: ReadonlySet<string> = new Set(['monitor', 'sync', 'psync', 'replconf', 'reset']);

/** A command that Redis is executing. */
interface Outstanding {
  readonly name: string;
  /** Confirmations that are still to come, for a command about subscriptions. */
  confirmations: number;
  /** Whether the client gets the reply; decided when its type is known. */
  isPassed(type: string): boolean;
  /** Called when the reply has ended, before anything that follows it is passed on. */
  ended(reply: Reply): void;
}

/** A reply of Redis that has ended. */
interface Reply {
  readonly type: string;
  /** The code of an error. */
  readonly kind: string;
  /** Redis has executed the command, or queued it in a transaction. */
  readonly isSuccess: boolean;
}

/**
 * One client of the Redis proxy, with a connection to Redis that is this client's alone.
 *
 * Commands are executed one at a time, as Redis does: the next one begins when the reply to the one before has ended. So at most one
 * reply is outstanding, and whatever else Redis sends is a push (RESP3) or a message of a channel (RESP2, only while subscribed).
 *
 * The connection has this state, and nothing else changes it:
 *
 * | State | Changes |
 * |---|---|
 * | accepted: Redis has accepted the password, or needs none | from no to yes, at the first reply that is not an error. `QUIT`, which Redis executes for everybody, does not count. It never changes back: Redis keeps an authentication when a later one fails, and `RESET` is refused |
 * | protocol: RESP2 or RESP3 | by a successful `HELLO`, as its reply shows |
 * | transaction: open or not | opened by a successful `MULTI`; closed by `EXEC`, by a successful `DISCARD` and by `EXECABORT` |
 * | subscriptions | by the confirmations of Redis |
 *
 * - Until the client is accepted, it has the limits that Redis has for such clients, and a limited time.
 * - `GET` of an agent's key is sent to Redis first. Only if Redis replies with a value or with nil, the value of the agent takes the
 *   place of this reply. Errors (`NOAUTH`, `NOPERM`) and `QUEUED` go to the client. So every single value of an agent needs the
 *   consent of Redis, given on this connection, for this key.
 * - `SUBSCRIBE` to an agent's channel is sent to Redis too. Its agent is asked for messages once Redis has confirmed.
 * - In a transaction, commands that change protocol or subscriptions are refused: Redis would execute them within `EXEC`.
 */
export class ClientConnection {
  readonly uuid = randomUUID();
  readonly #options: ClientConnectionOptions;
  readonly #reader = new CommandReader();
  readonly #splitter = new ReplySplitter();
  readonly #gone = new AbortController();
  /** Resolved when something has changed that {@link #serve} may wait for. */
  #change = Promise.withResolvers<void>();

  #isAccepted = false;
  #protocol: 2 | 3 = 2;
  #isInTransaction = false;
  readonly #subscriptions = new Subscriptions();

  /** Whether a command is being executed. */
  #isBusy = false;
  #outstanding: Outstanding | undefined;
  /** Whether output of Redis has begun and not ended: a reply, a push or a message. */
  #isAmid = false;
  /** Whether that output answers the outstanding command. */
  #isAnswer = false;
  /** Whether that output goes to the client. */
  #isPassed = true;

  readonly #channels = new Map<string, AgentChannel>();
  /** Channels of agents with a message for the client: one for each, however many there were. */
  readonly #news = new Set<string>();
  readonly #paced = new PacedNews((name) => this.#publish(name));
  #pinging: NodeJS.Timeout | undefined;
  readonly #acceptance: NodeJS.Timeout;

  constructor(options: ClientConnectionOptions) {
    this.#options = options;
    const { client, upstream, logger } = options;
    client.on('data', (chunk) => {
      this.#reader.push(chunk);
      this.#changed();
    });
    client.on('drain', () => this.#changed());
    upstream.on('data', (chunk) => this.#fromRedis(chunk));
    for (const socket of [client, upstream]) {
      socket.on('error', () => this.close());
      socket.on('close', () => this.close());
      socket.on('end', () => this.close());
    }
    this.#acceptance = setTimeout(() => {
      logger.debug({}, 'a client of the Redis proxy has not authenticated in time');
      this.close();
    }, acceptanceMs).unref();
    this.#serve().catch((error: unknown) => this.#failed(error));
  }

  /** Ends both sides. Replies that were written before still reach the client. */
  close(): void {
    if (this.#gone.signal.aborted) {
      return;
    }
    const { client, upstream } = this.#options;
    this.#gone.abort(new Error('the client of the Redis proxy has left'));
    clearInterval(this.#pinging);
    clearTimeout(this.#acceptance);
    this.#paced.close();
    for (const channel of this.#channels.values()) {
      channel.leave();
    }
    upstream.destroy();
    client.destroySoon();
    const linger = setTimeout(() => client.destroy(), lingerMs).unref();
    client.once('close', () => clearTimeout(linger));
  }

  /** A channel of an agent has a message; it is ignored unless the client subscribes to that channel of that agent. Paced. */
  news(agent: string, name: string): void {
    if (this.#channels.get(name)?.agent === agent) {
      this.#paced.news(name);
    }
  }

  /** The agent is back. */
  agentConnected(agent: string): void {
    for (const channel of this.#channels.values()) {
      if (channel.agent === agent) {
        void channel.follow();
      }
    }
  }

  /** Executes commands until the connection ends. A wait that the end leaves behind is never resolved. */
  async #serve(): Promise<void> {
    const { client } = this.#options;
    // A Redis without a password accepts everybody.
    await this.#forward('ping', [Buffer.from('ping')], { isPassed: () => false });
    for (;;) {
      const words = client.writableNeedDrain ? undefined : this.#reader.next();
      this.#isBusy = words !== undefined;
      this.#regulate();
      if (words === undefined) {
        await this.#change.promise;
      } else {
        await this.#execute(words);
      }
      this.#gone.signal.throwIfAborted();
    }
  }

  async #execute(words: Buffer[]): Promise<void> {
    const [first, ...others] = words;
    const name = commandName(first);
    const args = others.map((word) => word.toString());
    // Without replies, outputs cannot be matched to commands.
    if (refusedCommands.has(name) || (name === 'client' && commandName(others[0]) === 'reply')) {
      await this.#send(errorReply(`${name.toUpperCase()} is not served by the Redis proxy`));
    } else if (this.#isInTransaction && (name === 'hello' || isSubscriptionCommand(name))) {
      await this.#send(errorReply(`${name.toUpperCase()} is not served by the Redis proxy in a transaction`));
    } else if (isSubscriptionCommand(name)) {
      await this.#subscribe(name, words, args);
    } else {
      const key = unprefixed(args[0] ?? '', this.#options.keyPrefix);
      const agent = name === 'get' && args.length === 1 ? this.#options.agentOf(key) : undefined;
      if (agent === undefined) {
        await this.#forward(name, words, { ended: (reply) => this.#follows(name, args, reply) });
      } else {
        await this.#get(agent, key, words);
      }
    }
  }

  /** Takes over the state that a command has changed in Redis. */
  #follows(name: string, args: readonly string[], { type, kind, isSuccess }: Reply): void {
    if (name === 'hello' && isSuccess) {
      this.#protocol = type === '%' ? 3 : 2;
    } else if (name === 'multi' && isSuccess) {
      this.#isInTransaction = true;
    } else if (name === 'discard' && isSuccess) {
      this.#isInTransaction = false;
    } else if (name === 'exec' && (args.length === 0 || kind === 'EXECABORT')) {
      // Also when it fails. With arguments newer versions of Redis abort the transaction, older ones leave it open.
      this.#isInTransaction = false;
    } else if (name === 'quit' && isSuccess) {
      this.close();
    }
  }

  /** Serves the value of an agent's key, if Redis would serve one of its own. */
  async #get(agent: string, key: string, words: Buffer[]): Promise<void> {
    const isValue = (type: string) => type === '$' || type === '_';
    const { type } = await this.#forward('get', words, { isPassed: (type) => !isValue(type) });
    if (!isValue(type)) {
      return;
    }
    const fault = keyFault(key);
    if (fault !== undefined) {
      await this.#send(errorReply(fault));
      return;
    }
    await this.#send(await this.#agentReply(agent, key));
  }

  async #agentReply(agent: string, key: string): Promise<Buffer> {
    try {
      const value = await this.#options.cache.get(agent, this.uuid, key, this.#gone.signal);
      return value === undefined ? noValue : bulk(value);
    } catch (error) {
      if (error instanceof ValueRefusal) {
        return errorReply(`the value of agent ${agent} is not passed on: ${error.message}`);
      }
      throw error;
    }
  }

  async #subscribe(name: SubscriptionCommand, words: Buffer[], args: readonly string[]): Promise<void> {
    const names = words.slice(1).map((word) => word.toString('latin1'));
    if (this.#subscriptions.sizeAfter(name, names) > mostSubscriptions) {
      await this.#send(errorReply(`a connection to the Redis proxy may have ${mostSubscriptions} subscriptions`));
      return;
    }
    await this.#forward(name, words, {
      confirmations: this.#subscriptions.confirmations(name, names),
      ended: ({ isSuccess }) => {
        if (!isSuccess) {
          return;
        }
        this.#subscriptions.confirmed(name, names);
        if (name === 'subscribe') {
          this.#follow(args);
        } else if (name === 'unsubscribe') {
          this.#leave(args.length === 0 ? [...this.#channels.keys()] : args);
        }
      },
    });
  }

  #follow(names: readonly string[]): void {
    const { cache } = this.#options;
    for (const name of names) {
      const agent = this.#options.agentOf(name);
      if (agent !== undefined && keyFault(name) === undefined && !this.#channels.has(name)) {
        const channel = new AgentChannel({
          agent,
          ask: (signal) => cache.subscribe(agent, this.uuid, name, signal),
          publish: () => this.#paced.news(name),
        });
        this.#channels.set(name, channel);
        this.#pinging ??= setInterval(() => this.#ping(), pingIntervalMs).unref();
        void channel.follow();
      }
    }
  }

  #leave(names: readonly string[]): void {
    for (const name of names) {
      this.#channels.get(name)?.leave();
      this.#channels.delete(name);
      this.#news.delete(name);
      this.#paced.forget(name);
    }
  }

  /** Lets Redis execute a command. Resolves with its reply, when that has ended. */
  #forward(
    name: string,
    words: Buffer[],
    options: { confirmations?: number; isPassed?(type: string): boolean; ended?(reply: Reply): void } = {},
  ): Promise<Reply> {
    const { confirmations = 0, isPassed = () => true, ended } = options;
    const { promise, resolve } = Promise.withResolvers<Reply>();
    this.#outstanding = {
      name,
      confirmations,
      isPassed,
      ended: (reply) => {
        ended?.(reply);
        resolve(reply);
      },
    };
    this.#options.upstream.write(encodeCommand(words));
    return promise;
  }

  #fromRedis(chunk: Buffer): void {
    let pieces: ReplyPiece[];
    try {
      pieces = this.#splitter.push(chunk);
    } catch (error) {
      this.#options.logger.warn({ error }, 'a reply of Redis cannot be read');
      this.close();
      return;
    }
    for (const piece of pieces) {
      this.#relay(piece);
    }
    this.#changed();
  }

  #relay(piece: ReplyPiece): void {
    if (!this.#isAmid) {
      this.#isAnswer = this.#answersCommand(piece);
      this.#isPassed = !this.#isAnswer || this.#outstanding?.isPassed(piece.type) === true;
    }
    this.#isAmid = !piece.isEnd;
    if (this.#isPassed) {
      this.#options.client.write(piece.bytes);
    }
    if (piece.isEnd && this.#isAnswer) {
      this.#answered(piece);
    }
  }

  /** Whether a reply of Redis answers the outstanding command. */
  #answersCommand({ type, kind }: ReplyPiece): boolean {
    if (this.#outstanding === undefined) {
      return false;
    }
    if (isConfirmation(this.#outstanding, kind)) {
      return true;
    }
    const isMessage = type === '*' && this.#protocol === 2 && this.#subscriptions.isMessage(kind);
    return type !== '>' && !isMessage;
  }

  #answered({ type, kind }: ReplyPiece): void {
    const outstanding = this.#outstanding;
    if (outstanding === undefined || (isConfirmation(outstanding, kind) && --outstanding.confirmations > 0)) {
      return;
    }
    this.#outstanding = undefined;
    const isSuccess = type !== '-' && type !== '!';
    if (isSuccess && !this.#isAccepted && outstanding.name !== 'quit') {
      this.#isAccepted = true;
      this.#reader.accept();
      clearTimeout(this.#acceptance);
      this.#options.accepted?.();
    }
    outstanding.ended({ type, kind, isSuccess });
  }

  /** Sends a reply that is made here, not within output of Redis. */
  async #send(bytes: Buffer): Promise<void> {
    while (this.#isWithinOutput) {
      await this.#change.promise;
    }
    this.#options.client.write(bytes);
  }

  get #isWithinOutput(): boolean {
    return this.#isAmid && this.#isPassed;
  }

  /** Sends a message on a channel of an agent as soon as the client can take it. */
  #publish(name: string): void {
    this.#news.add(name);
    this.#sendNews();
  }

  #sendNews(): void {
    const { client } = this.#options;
    for (const name of this.#news) {
      if (this.#isWithinOutput || client.writableNeedDrain || this.#gone.signal.aborted) {
        return;
      }
      this.#news.delete(name);
      client.write(pushOf(this.#protocol, ['message', name, '']));
    }
  }

  #changed(): void {
    this.#sendNews();
    this.#regulate();
    const { resolve } = this.#change;
    this.#change = Promise.withResolvers();
    resolve();
  }

  #regulate(): void {
    const { client, upstream } = this.#options;
    if ((this.#isBusy || client.writableNeedDrain) && this.#reader.size >= mostWaitingBytes) {
      client.pause();
    } else {
      client.resume();
    }
    if (client.writableNeedDrain) {
      upstream.pause();
    } else {
      upstream.resume();
    }
  }

  #ping(): void {
    const { cache, logger } = this.#options;
    for (const agent of new Set([...this.#channels.values()].map((channel) => channel.agent))) {
      cache.ping(agent, this.uuid, this.#gone.signal).catch((error: unknown) => {
        // Away or busy: when it is back it is asked again.
        logger.debug({ agent, error }, 'an agent does not answer a ping of the Redis proxy');
      });
    }
  }

  #failed(error: unknown): void {
    const { client, logger } = this.#options;
    if (this.#gone.signal.aborted) {
      return;
    }
    if (error instanceof RespError) {
      // As Redis does.
      client.write(errorReply(`Protocol error: ${error.message}`));
      logger.debug({ error }, "a client of the Redis proxy does not keep to Redis' protocol or its limits");
    } else {
      logger.error({ error }, 'serving a client of the Redis proxy failed');
    }
    this.close();
  }
}

/** The command that Redis takes a word for: it ignores case, and often what follows a NUL, as C does. */
function commandName(word: Buffer | undefined): string {
  const [name = ''] = (word ?? Buffer.alloc(0)).toString('latin1').toLowerCase().split('\0');
  return name;
}

function isConfirmation({ name, confirmations }: Outstanding, kind: string): boolean {
  return confirmations > 0 && kind === name;
}
