import { EventEmitter } from 'node:events';
import type { ConnectionOptions } from 'node:tls';
import { createClient, RESP_TYPES } from '@redis/client';
import { Backoff, type Logger, onAbort, sleep } from '../base/index.ts';

/** How a link behaves. */
export interface RedisLinkOptions {
  /** `host:port`. */
  readonly address: string;
  /** Called before each connection. */
  credentials(): { readonly username: string; readonly password: string };
  /** Called before each connection; undefined for none. @throws Error that names what is missing */
  tls(): ConnectionOptions | undefined;
  /** Report changes of the keys that were read. Needs Redis 6; older servers report none. */
  readonly notify?: boolean;
  readonly logger: Logger;
  /** Default 500 ms to 30 s, doubling. */
  readonly backoff?: { readonly initialMs: number; readonly maxMs: number };
}

const connectTimeoutMs = 5_000;
const commandTimeoutMs = 5_000;
/** With more waiting commands Redis is considered unresponsive. */
const maxCommands = 10_000;
/** Keys that Redis looks at in one step of a scan. */
const scanBatch = 1_000;
/** A ping without an answer reveals a dead connection. */
const pingIntervalMs = 30_000;
const silentMs = 75_000;
/** How a Redis before 6 refuses RESP3 and tracking. NOAUTH mentions HELLO too, and says only that the password is missing. */
const lacksNotifications = /^(?!.*NOAUTH).*(unknown (sub)?command|HELLO|NOPROTO|TRACKING)/i;
/**
 * A server that is not, or not yet, the one that takes commands: an address may lead to another one by now, and only a new
 * connection finds that. go-redis closes such a connection, too (its error.go, `isBadConn`).
 */
const isElsewhere = /^(READONLY|LOADING|MASTERDOWN)\b/;
/** A connection that lasted this long resets the back-off. */
const goodAfterMs = 5_000;

type Client = ReturnType<typeof open>;

/** A channel with at least one subscriber. */
interface Channel {
  readonly listeners: Set<() => void>;
  readonly heard: () => void;
  /** Settles when Redis has confirmed or refused the subscription on the current connection. */
  followed: Promise<void>;
}

/** The result of {@link RedisLink.subscribe}. */
export interface Subscription {
  /**
   * Resolves when no message can be missed any more: either Redis has confirmed, or there is no connection, and one call after
   * the next connection stands for all messages until then. Rejects when Redis refuses.
   */
  readonly followed: Promise<void>;
  end(): void;
}

/**
 * A connection to a Redis that may be absent, slow, restarted or have new credentials: it is made again after each end, its state is
 * logged when it changes, and no other work waits for it. Commands fail at once without a connection.
 */
export class RedisLink {
  readonly #options: RedisLinkOptions;
  readonly #events = new EventEmitter<{ ready: []; changed: [] }>();
  readonly #channels = new Map<string, Channel>();
  #client: Client | undefined;
  /** Ends the connection of `#client`. */
  #leave: (problem: string) => void = () => undefined;
  #problem: string | undefined = 'not connected yet';
  /** Why the last write of each kind failed, if it did. */
  readonly #writeProblems = new Map<'set' | 'delete', string>();
  #canNotify: boolean;

  constructor(options: RedisLinkOptions) {
    this.#options = options;
    this.#canNotify = options.notify ?? false;
  }

  /** Why Redis cannot be used: there is no connection, or it refuses what is written. Undefined while it can. */
  get problem(): string | undefined {
    const [writing] = this.#writeProblems.values();
    return this.#problem ?? writing;
  }

  /** Whether there is a connection, whatever Redis answers. */
  get isConnected(): boolean {
    return this.#client !== undefined;
  }

  /** Whether changes of keys that were read are reported. */
  get isNotified(): boolean {
    return this.#canNotify && this.#client !== undefined;
  }

  /** Calls back whenever a connection has been made. */
  onReady(listener: () => void): void {
    this.#events.on('ready', listener);
  }

  /** Calls back when a key that was read on this connection has changed since, once per reading. */
  onChanged(listener: () => void): void {
    this.#events.on('changed', listener);
  }

  /** The value of a key, undefined when it does not exist. @throws Error without a connection or answer */
  async get(key: string): Promise<Buffer | undefined> {
    return (await this.#asked((client) => client.get(key))) ?? undefined;
  }

  /** Stores a value for a time. @throws Error without a connection or answer */
  async set(key: string, value: Buffer, lifetimeMs: number): Promise<void> {
    await this.#written('set', (client) => client.set(key, value, { expiration: { type: 'PX', value: lifetimeMs } }));
  }

  /** @throws Error without a connection or answer */
  async delete(key: string): Promise<void> {
    await this.#written('delete', (client) => client.del(key));
  }

  /**
   * The keys with a prefix and the bytes of their values, which must be strings. Keys that change meanwhile may be missing or
   * come twice. The prefix is not a pattern. @throws Error without a connection or answer
   */
  async *sizes(prefix: string): AsyncGenerator<[key: string, bytes: number]> {
    const client = this.#connected();
    const pattern = `${prefix.replaceAll(/[\\*?[\]]/g, String.raw`\$&`)}*`;
    for await (const batch of client.scanIterator({ MATCH: pattern, COUNT: scanBatch })) {
      const keys = batch.map(String);
      const lengths = await Promise.all(keys.map((key) => client.strLen(key)));
      yield* keys.map((key, index): [string, number] => [key, Number(lengths[index] ?? 0)]);
    }
  }

  /**
   * Calls back for each message on a channel, across reconnections; messages during a break are lost, and one call
   * after it stands for them. Needs a link that is notified (RESP3).
   */
  subscribe(channel: string, listener: () => void): Subscription {
    let entry = this.#channels.get(channel);
    if (entry === undefined) {
      const listeners = new Set<() => void>();
      const heard = () => {
        for (const each of [...listeners]) {
          each();
        }
      };
      entry = { listeners, heard, followed: Promise.resolve() };
      this.#channels.set(channel, entry);
      if (this.#client !== undefined) {
        this.#follow(this.#client, channel, entry);
      }
    }
    const { listeners, heard, followed } = entry;
    listeners.add(listener);
    const end = () => {
      if (!listeners.delete(listener) || listeners.size > 0) {
        return;
      }
      this.#channels.delete(channel);
      // With its listener named, this does not end a newer subscription of the same channel. A broken connection ends it too.
      this.#client?.unsubscribe(channel, heard).catch(() => undefined);
    };
    return { followed, end };
  }

  /** Keeps the connection until aborted. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const backoff = new Backoff(this.#options.backoff ?? { initialMs: 500, maxMs: 30_000 });
    while (!signal.aborted) {
      const began = performance.now();
      const problem = await this.#session(signal);
      if (signal.aborted) {
        return;
      }
      this.#fail(problem);
      if (performance.now() - began >= goodAfterMs) {
        backoff.reset();
      }
      await sleep(backoff.next(), signal);
    }
  }

  #follow(client: Client, channel: string, entry: Channel): void {
    entry.followed = client.subscribe(channel, entry.heard).catch((error: unknown) => {
      // The next connection subscribes again.
      if (this.#client !== client) {
        return;
      }
      this.#options.logger.warn({ error, channel }, 'Redis refuses a subscription');
      throw error;
    });
    entry.followed.catch(() => undefined);
  }

  /** @param kind of a write */
  async #asked<R>(command: (client: Client) => Promise<R>, kind?: 'set' | 'delete'): Promise<R> {
    const client = this.#connected();
    try {
      return await command(client);
    } catch (error) {
      // The end of a connection is told by itself.
      if (this.#client === client) {
        const reason = explain(error);
        if (kind !== undefined) {
          this.#refused(kind, reason);
        }
        if (isElsewhere.test(reason)) {
          this.#leave(reason);
        }
      }
      throw error;
    }
  }

  async #written(kind: 'set' | 'delete', command: (client: Client) => Promise<unknown>): Promise<void> {
    await this.#asked(command, kind);
    this.#writeProblems.delete(kind);
  }

  #refused(kind: 'set' | 'delete', reason: string): void {
    const { logger, address } = this.#options;
    const code = (text = '') => text.split(' ', 1)[0];
    const known = [...this.#writeProblems.values()].some((other) => code(other) === code(reason));
    this.#writeProblems.set(kind, reason);
    if (!known) {
      logger.warn(
        { redis: address, reason },
        'Redis refuses what is written: what Argo CD shows of clusters becomes old; tried on',
      );
    }
  }

  #connected(): Client {
    if (this.#client === undefined) {
      throw new Error(`Redis is not connected: ${this.#problem}`);
    }
    return this.#client;
  }

  /** Runs one connection to its end; returns the reason of the end. */
  async #session(signal: AbortSignal): Promise<string> {
    let client: Client | undefined;
    let problem = 'the connection was closed';
    const ended = Promise.withResolvers<void>();
    const leave = () => ended.resolve();
    this.#leave = (reason) => {
      problem = reason;
      leave();
    };
    const unlisten = onAbort(signal, leave);
    try {
      client = open(this.#options, this.#canNotify);
      client.on('error', (error: Error) => {
        problem = explain(error);
        ended.resolve();
      });
      client.on('end', leave);
      client.on('terminated', leave);
      client.on('invalidate', () => this.#events.emit('changed'));
      const failed = ended.promise.then(() => Promise.reject(new Error(problem)));
      failed.catch(() => undefined);
      // Not every server that takes connections is a Redis.
      await Promise.race([client.connect().then((it) => it.ping()), failed]);
      this.#client = client;
      this.#problem = undefined;
      if (this.#writeProblems.size === 0) {
        this.#options.logger.info({ redis: this.#options.address }, 'connected to Redis');
      }
      for (const [channel, entry] of this.#channels) {
        this.#follow(client, channel, entry);
        // Messages before the subscription are lost: one call stands for them.
        entry.followed.then(entry.heard, () => undefined);
      }
      this.#events.emit('ready');
      await ended.promise;
    } catch (error) {
      problem = explain(error);
      if (this.#canNotify && lacksNotifications.test(problem)) {
        this.#canNotify = false;
      }
    } finally {
      unlisten();
      this.#client = undefined;
      client?.removeAllListeners();
      client?.on('error', () => undefined);
      if (client?.isOpen) {
        client.destroy();
      }
    }
    return problem;
  }

  #fail(problem: string): void {
    if (this.#problem === problem) {
      return;
    }
    this.#problem = problem;
    if ([...this.#writeProblems.values()].includes(problem)) {
      return;
    }
    this.#options.logger.warn(
      { redis: this.#options.address, reason: problem },
      'Redis cannot be used: Argo CD does not get or give information about clusters until it can; retried',
    );
  }
}

function open(options: RedisLinkOptions, notify: boolean) {
  const { username, password } = options.credentials();
  const [, host = '', port = ''] = /^\[?([^[\]]+)\]?:(\d+)$/.exec(options.address) ?? [];
  const tls = options.tls();
  const socket = {
    host,
    port: Number(port),
    connectTimeout: connectTimeoutMs,
    socketTimeout: silentMs,
    // Instead a new client is made, with the current credentials and certificates.
    reconnectStrategy: false as const,
  };
  return createClient({
    RESP: notify ? 3 : 2,
    ...(notify ? { emitInvalidate: true } : {}),
    ...(username === '' ? {} : { username }),
    ...(password === '' ? {} : { password }),
    socket: tls === undefined ? socket : { ...socket, ...tls, tls: true as const },
    disableOfflineQueue: true,
    disableClientInfo: true,
    commandsQueueMaxLength: maxCommands,
    commandOptions: { timeout: commandTimeoutMs, typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } },
    pingInterval: pingIntervalMs,
  });
}

/** An AggregateError has no text of its own. */
function explain(error: unknown): string {
  if (error instanceof AggregateError) {
    return error.errors.map(explain).join('; ');
  }
  return error instanceof Error ? error.message : String(error);
}
