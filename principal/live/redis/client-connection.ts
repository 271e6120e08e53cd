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
} from '../../../lib/live/index.ts';
import type { AgentCache } from './agent-cache.ts';
import { AgentChannel } from './agent-channel.ts';

/** Options of a {@link ClientConnection}. */
export interface ClientConnectionOptions {
  readonly client: Socket;
  /** The connection to the principal's own Redis that is this client's alone. */
  readonly upstream: Socket;
  readonly cache: Pick<AgentCache, 'get' | 'subscribe' | 'ping'>;
  /** The agent whose Argo CD has the key or channel; undefined for the principal's own Redis. */
  agentOf(key: string): string | undefined;
  readonly logger: Logger;
}

/** Commands that wait for their replies; a client that sends more is made to wait. */
const mostWaiting = 1_000;
const pingIntervalMs = 60_000;
/** Channels of agents that one connection may follow; argocd-server uses one connection for each. */
const mostChannels = 1_000;

/** The outstanding replies to the client, in the order of its commands. */
type Owed =
  /** The next reply of Redis: passed on, or looked at first. */
  | { readonly from: 'redis'; readonly heard?: (isError: boolean) => 'pass' | 'drop' }
  /** Made here; empty until it is known. */
  | { readonly from: 'here'; bytes: Buffer | undefined; readonly sent?: () => void };

/**
 * One client of the Redis proxy. Commands are answered in their order, whether Redis or an agent answers. Agents' values are given
 * only to a client that Redis itself would answer: before the first one, Redis is asked for the same key.
 */
export class ClientConnection {
  readonly uuid = randomUUID();
  readonly #options: ClientConnectionOptions;
  readonly #reader = new CommandReader();
  readonly #splitter = new ReplySplitter();
  readonly #owed: Owed[] = [];
  readonly #gone = new AbortController();
  readonly #channels = new Map<string, AgentChannel>();
  #pushes: Buffer[] = [];
  #protocol: 2 | 3 = 2;
  #isAdmitted = false;
  #isDropping = false;
  /** Output of Redis that is not passed on yet. */
  readonly #incoming: ReplyPiece[] = [];
  /** Whether a reply of Redis has been passed on in part. */
  #isAmid = false;
  #pinging: NodeJS.Timeout | undefined;

  constructor(options: ClientConnectionOptions) {
    this.#options = options;
    const { client, upstream } = options;
    client.on('data', (chunk) => this.#fromClient(chunk));
    upstream.on('data', (chunk) => this.#fromRedis(chunk));
    for (const socket of [client, upstream]) {
      socket.on('drain', () => this.#regulate());
    }
    for (const socket of [client, upstream]) {
      socket.on('error', () => this.close());
      socket.on('close', () => this.close());
      socket.on('end', () => this.close());
    }
  }

  /** Ends both sides. */
  close(): void {
    if (this.#gone.signal.aborted) {
      return;
    }
    this.#gone.abort(new Error('the client of the Redis proxy has left'));
    clearInterval(this.#pinging);
    for (const channel of this.#channels.values()) {
      channel.leave();
    }
    this.#options.client.destroy();
    this.#options.upstream.destroy();
  }

  /** A channel of an agent has a message; it is ignored unless the client subscribes to that channel of that agent. */
  news(agent: string, name: string): void {
    const channel = this.#channels.get(name);
    if (channel?.agent === agent) {
      channel.news();
    }
  }

  /** The agent is back. */
  agentConnected(agent: string): void {
    for (const channel of this.#channels.values()) {
      if (channel.agent === agent) {
        this.#detached(() => channel.agentConnected());
      }
    }
  }

  #fromClient(chunk: Buffer): void {
    let commands: Buffer[][];
    try {
      commands = this.#reader.push(chunk);
    } catch (error) {
      this.#options.logger.warn({ error }, 'a client of the Redis proxy does not speak the protocol of Redis');
      this.close();
      return;
    }
    for (const command of commands) {
      this.#take(command);
    }
    this.#regulate();
  }

  #take(words: Buffer[]): void {
    const [name = '', ...args] = words.map((word, index) =>
      index === 0 ? word.toString('latin1').toLowerCase() : word.toString(),
    );
    switch (name) {
      case 'get':
        if (args.length === 1 && this.#get(args[0] ?? '')) {
          return;
        }
        break;
      case 'subscribe':
        this.#subscribe(args);
        return;
      case 'unsubscribe':
        this.#unsubscribe(args);
        return;
      case 'hello':
        this.#owed.push({ from: 'redis', heard: (isError) => this.#greeted(args[0], isError) });
        this.#options.upstream.write(encodeCommand(words));
        return;
      case 'monitor':
      case 'sync':
      case 'psync':
        this.#owe(errorReply(`${name} is not served by the Redis proxy`));
        return;
      case 'client':
        // Without replies, outputs cannot be matched to commands.
        if (args[0]?.toLowerCase() === 'reply') {
          this.#owe(errorReply('CLIENT REPLY is not served by the Redis proxy'));
          return;
        }
        break;
      case 'psubscribe':
      case 'punsubscribe':
      case 'ssubscribe':
      case 'sunsubscribe':
        // Their replies are pushes.
        this.#options.upstream.write(encodeCommand(words));
        return;
    }
    this.#owed.push({ from: 'redis' });
    this.#options.upstream.write(encodeCommand(words));
  }

  #greeted(version: string | undefined, isError: boolean): 'pass' {
    if (!isError && version === '3') {
      this.#protocol = 3;
    }
    if (!isError && version === '2') {
      this.#protocol = 2;
    }
    return 'pass';
  }

  /** Whether the key is of an agent. */
  #get(key: string): boolean {
    const agent = this.#options.agentOf(key);
    if (agent === undefined) {
      return false;
    }
    this.#admitted(key, () => {
      const owed: Owed = { from: 'here', bytes: undefined };
      this.#detached(async () => {
        const value = await this.#options.cache.get(agent, this.uuid, key, this.#gone.signal);
        owed.bytes = value === undefined ? noValue : bulk(value);
        this.#pay();
      });
      return owed;
    });
    return true;
  }

  #subscribe(channels: readonly string[]): void {
    const rest: string[] = [];
    for (const name of channels) {
      const agent = this.#options.agentOf(name);
      if (agent === undefined) {
        rest.push(name);
        continue;
      }
      this.#admitted(name, () => {
        if (this.#channels.size >= mostChannels) {
          return { from: 'here', bytes: errorReply('too many channels') };
        }
        this.#channels.get(name)?.leave();
        const channel = new AgentChannel({
          agent,
          ask: (signal) => this.#options.cache.subscribe(agent, this.uuid, name, signal),
          tell: () => this.#push(pushOf(this.#protocol, ['message', name, ''])),
        });
        this.#channels.set(name, channel);
        const count = this.#channels.size;
        this.#pinging ??= setInterval(() => this.#ping(), pingIntervalMs).unref();
        const owed: Owed = { from: 'here', bytes: undefined, sent: () => channel.confirmed() };
        this.#detached(async () => {
          // An agent that is away, or refuses, is asked again; the client does not wait for that.
          await channel.follow();
          owed.bytes = pushOf(this.#protocol, ['subscribe', name, count]);
          this.#pay();
        });
        return owed;
      });
    }
    if (rest.length > 0) {
      this.#options.upstream.write(encodeCommand(['subscribe', ...rest]));
    }
  }

  #unsubscribe(channels: readonly string[]): void {
    const own = channels.filter((name) => this.#leave(name));
    for (const name of own) {
      this.#push(pushOf(this.#protocol, ['unsubscribe', name, this.#channels.size]));
    }
    if (channels.length === 0) {
      for (const name of [...this.#channels.keys()]) {
        this.#leave(name);
      }
    }
    const rest = channels.filter((channel) => !own.includes(channel));
    if (rest.length > 0 || channels.length === 0) {
      this.#options.upstream.write(encodeCommand(['unsubscribe', ...rest]));
    }
  }

  /** False for a channel that is not followed. */
  #leave(name: string): boolean {
    this.#channels.get(name)?.leave();
    return this.#channels.delete(name);
  }

  /** Owes what `make` makes, once Redis has shown that it would answer the client. */
  #admitted(key: string, make: () => Owed): void {
    if (this.#isAdmitted) {
      this.#owed.push(make());
      this.#pay();
      return;
    }
    const place: Owed = {
      from: 'redis',
      heard: (isError) => {
        if (isError) {
          return 'pass';
        }
        this.#isAdmitted = true;
        this.#owed.splice(1, 0, make());
        return 'drop';
      },
    };
    this.#owed.push(place);
    this.#options.upstream.write(encodeCommand(['exists', key]));
  }

  #owe(bytes: Buffer): void {
    this.#owed.push({ from: 'here', bytes });
    this.#pay();
  }

  #fromRedis(chunk: Buffer): void {
    try {
      this.#incoming.push(...this.#splitter.push(chunk));
    } catch (error) {
      this.#options.logger.warn({ error }, 'what Redis says cannot be understood');
      this.close();
      return;
    }
    this.#pay();
  }

  /** Passes on the output of Redis, up to a reply that is not due yet. */
  #relay(): void {
    for (let [piece] = this.#incoming; piece !== undefined; [piece] = this.#incoming) {
      if (!this.#isAmid && piece.type !== '>' && this.#owed[0]?.from === 'here') {
        return;
      }
      this.#incoming.shift();
      this.#reply(piece);
    }
  }

  #reply({ bytes, isEnd, type }: ReplyPiece): void {
    const isFirst = !this.#isAmid;
    this.#isAmid = !isEnd;
    const [next] = this.#owed;
    // A push message of Redis; in RESP2, where it looks like a reply, one without a command.
    if (type === '>' || next?.from !== 'redis') {
      this.#write(bytes);
      return;
    }
    if (isFirst) {
      const verdict = next.heard?.(type === '-' || type === '!') ?? 'pass';
      this.#isDropping = verdict === 'drop';
    }
    if (!this.#isDropping) {
      this.#write(bytes);
    }
    if (isEnd) {
      this.#owed.shift();
      this.#isDropping = false;
    }
  }

  /** Sends the known replies, in order, up to the first unknown one. */
  #pay(): void {
    for (;;) {
      this.#relay();
      const [next] = this.#owed;
      if (this.#isAmid || next?.from !== 'here' || next.bytes === undefined) {
        break;
      }
      this.#owed.shift();
      this.#write(next.bytes);
      next.sent?.();
    }
    if (!this.#isAmid) {
      for (const bytes of this.#pushes) {
        this.#write(bytes);
      }
      this.#pushes = [];
    }
    this.#regulate();
  }

  /** Sends what answers no command, between two replies. */
  #push(bytes: Buffer): void {
    this.#pushes.push(bytes);
    this.#pay();
  }

  #write(bytes: Buffer): void {
    this.#options.client.write(bytes);
  }

  #regulate(): void {
    const { client, upstream } = this.#options;
    if (this.#owed.length >= mostWaiting || upstream.writableNeedDrain) {
      client.pause();
    } else {
      client.resume();
    }
    // What waits for its turn here must not become more and more.
    if (this.#incoming.length > 0 || client.writableNeedDrain) {
      upstream.pause();
    } else {
      upstream.resume();
    }
  }

  #ping(): void {
    for (const agent of new Set([...this.#channels.values()].map((channel) => channel.agent))) {
      this.#detached(async () => {
        try {
          await this.#options.cache.ping(agent, this.uuid, this.#gone.signal);
        } catch (error) {
          // Away or busy: when it is back it is asked again.
          this.#options.logger.debug({ agent, error }, 'an agent does not answer a ping of the Redis proxy');
        }
      });
    }
  }

  #detached(work: () => Promise<void>): void {
    work().catch((error: unknown) => {
      if (this.#gone.signal.aborted) {
        return;
      }
      this.#options.logger.error({ error }, 'serving a client of the Redis proxy failed');
      this.close();
    });
  }
}
