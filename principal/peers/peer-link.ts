import { type ClientRequest, Agent as Connections, type IncomingMessage, request as send } from 'node:http';
import type { Duplex } from 'node:stream';
import { connect } from 'node:tls';
import { abortable, type Logger, onAbort, splitHostPort } from '../../lib/base/index.ts';
import type { Tracer } from '../../lib/tracing/index.ts';
import { NoAnswerError } from '../live/agent-requests.ts';
import type { Peer, ReplicaDirectory } from '../replicas/index.ts';
import { onDeparture } from './departures.ts';
import { agentHeader, deposedPath, mostPerAgent, mostPerPeer, notHeldHeader } from './link-protocol.ts';
import type { LinkMetrics } from './metrics.ts';
import { type PeerIdentity, peerFingerprint } from './peer-identity.ts';

/** A request to a peer. */
export interface LinkRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A stream is read only once the peer has said that it serves the request. */
  readonly body?: Buffer | IncomingMessage;
  /** How long the peer may take for the head of its answer. */
  readonly timeoutMs: number;
  /** Ends the request, at the peer too. */
  readonly signal: AbortSignal;
}

/** The head of a peer's answer. */
export interface LinkAnswer {
  readonly peer: Peer;
  readonly response: IncomingMessage;
  /** After an upgrade: the connection, and what has come on it. */
  readonly upgraded?: { readonly socket: Duplex; readonly head: Buffer };
}

/** The peer has done nothing with a request: it was not reached, or does not hold the agent. */
class UnservedError extends Error {
  override readonly name = 'UnservedError';
}

/** The connections to one peer. */
interface Pool {
  readonly connections: Connections;
  /** Those that speak another protocol now. */
  readonly upgraded: Set<Duplex>;
  /** Requests that are open. */
  open: number;
}

const connectMs = 3_000;
/** How long a request whose agent is on its way to another replica waits for the news of that. */
const moveMs = 2_000;
/** Idle connections that are kept to a peer. */
const mostIdle = 64;

/** The way to the other replicas, for requests that arrive at a replica that does not hold their agent. */
export class PeerLink {
  readonly #identity: PeerIdentity;
  readonly #directory: ReplicaDirectory;
  readonly #metrics: LinkMetrics;
  readonly #tracer: Tracer | undefined;
  readonly #logger: Logger;
  /** By fingerprint. */
  readonly #pools = new Map<string, Pool>();
  readonly #byAgent = new Map<string, number>();
  readonly #unsubscribe: () => void;

  constructor(options: {
    readonly identity: PeerIdentity;
    readonly directory: ReplicaDirectory;
    readonly metrics: LinkMetrics;
    /** Peers learn of which traced request theirs is part. */
    readonly tracer?: Tracer | undefined;
    readonly logger: Logger;
  }) {
    this.#identity = options.identity;
    this.#directory = options.directory;
    this.#metrics = options.metrics;
    this.#tracer = options.tracer;
    this.#logger = options.logger;
    this.#unsubscribe = onDeparture(options.directory, (isAlive) => {
      for (const [fingerprint, pool] of this.#pools) {
        if (!isAlive(fingerprint)) {
          this.#pools.delete(fingerprint);
          end(pool);
        }
      }
    });
  }

  /** Requests that are open at peers. */
  get open(): number {
    return [...this.#pools.values()].reduce((sum, { open }) => sum + open, 0);
  }

  /** The other replica that holds the agent; undefined when this one does, or nobody. */
  holderOf(agent: string): Peer | undefined {
    const holder = this.#directory.holderOf(agent);
    return holder === 'here' ? undefined : holder;
  }

  /** Resolves when the agent's holder is not `former` any more; rejects when aborted. */
  async moved(agent: string, former: Peer, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const check = () => {
      const holder = this.#directory.holderOf(agent);
      if (holder === 'here' || holder?.fingerprint !== former.fingerprint) {
        resolve();
      }
    };
    const unsubscribe = this.#directory.subscribe((changed) => {
      if (changed === agent) {
        check();
      }
    });
    check();
    try {
      await abortable(promise, signal);
    } finally {
      unsubscribe();
    }
  }

  /**
   * Sends a request to the replica that holds the agent. If that has done nothing with it, the next holder gets it, once.
   * @param prepare is run before, for each of them
   * @returns the head of the answer, or undefined when no other replica holds the agent
   * @throws NoAnswerError, or the signal's reason
   */
  async send(
    agent: string,
    request: LinkRequest,
    prepare?: (peer: Peer) => Promise<void>,
  ): Promise<LinkAnswer | undefined> {
    for (let isAgain = false; ; isAgain = true) {
      const peer = this.holderOf(agent);
      if (peer === undefined) {
        return undefined;
      }
      try {
        await prepare?.(peer);
        return await this.ask(peer, agent, request);
      } catch (error) {
        if (!(error instanceof UnservedError)) {
          throw error;
        }
        this.#logger.debug({ agent, replica: peer.identity, error }, 'another replica did not serve a request');
      }
      const isMoved = !isAgain && (await this.#isMoved(agent, peer, request.signal));
      if (!isMoved) {
        throw new NoAnswerError('disconnected', agent);
      }
    }
  }

  /**
   * Sends a request to one peer.
   * @param agent empty for a request about none
   * @throws NoAnswerError, an error when the peer has done nothing with it, or the signal's reason
   */
  async ask(peer: Peer, agent: string, request: LinkRequest): Promise<LinkAnswer> {
    const { method, path, body, signal, timeoutMs } = request;
    const pool = this.#poolOf(peer);
    const underWay = this.#byAgent.get(agent) ?? 0;
    signal.throwIfAborted();
    if (pool.open >= mostPerPeer || underWay >= mostPerAgent) {
      this.#metrics.failed('busy');
      throw new NoAnswerError('busy', agent);
    }
    const isStream = body !== undefined && !Buffer.isBuffer(body);
    const outgoing = send({
      agent: pool.connections,
      method,
      path,
      headers: {
        ...request.headers,
        ...this.#tracer?.headers,
        host: 'replica',
        ...(agent === '' ? {} : { [agentHeader]: agent }),
        ...(isStream ? { expect: '100-continue' } : {}),
        ...(Buffer.isBuffer(body) ? { 'content-length': body.length } : {}),
      },
    });
    this.#metrics.sent();
    pool.open++;
    this.#byAgent.set(agent, underWay + 1);
    let socket: Duplex | undefined;
    const unlisten = onAbort(signal, () => {
      outgoing.destroy(signal.reason as Error);
      socket?.destroy();
    });
    const over = () => {
      unlisten();
      pool.open--;
      const rest = (this.#byAgent.get(agent) ?? 1) - 1;
      if (rest > 0) {
        this.#byAgent.set(agent, rest);
      } else {
        this.#byAgent.delete(agent);
      }
    };
    if (isStream) {
      outgoing.flushHeaders();
      outgoing.once('continue', () => body.pipe(outgoing));
    } else {
      outgoing.end(body);
    }
    const timer = setTimeout(() => outgoing.destroy(new NoAnswerError('timeout', agent)), timeoutMs);
    try {
      const answer = await headOf(outgoing, over);
      const upgraded = answer.upgraded?.socket;
      if (upgraded !== undefined) {
        socket = upgraded;
        pool.upgraded.add(upgraded);
        upgraded.once('close', () => pool.upgraded.delete(upgraded));
      }
      if (answer.response.headers[notHeldHeader] !== undefined) {
        throw new UnservedError(`${peer.identity} does not hold agent ${agent}`);
      }
      if (isStream) {
        // The peer may answer before it has read all, and does not want the rest then.
        answer.response.once('end', () => {
          body.unpipe(outgoing);
          outgoing.destroy();
        });
      }
      return { peer, ...answer };
    } catch (error) {
      outgoing.destroy();
      signal.throwIfAborted();
      throw this.#failureOf(error, agent, outgoing, method === 'GET' && !isStream);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Tells a replica that this one has deposed it. That is no peer any more, so it takes a connection of its own. */
  async tellDeposed(peer: Peer, signal: AbortSignal): Promise<void> {
    const outgoing = send({
      createConnection: (_options, done) => {
        this.#connect(peer, done as (error: Error | null, socket?: Duplex) => void);
        return undefined;
      },
      method: 'POST',
      path: `${deposedPath}/${peer.identity}`,
      headers: { host: 'replica', connection: 'close', 'content-length': 0 },
      signal,
    });
    outgoing.end();
    const { response } = await headOf(outgoing, () => undefined);
    response.resume();
  }

  /** Ends all connections. */
  close(): void {
    this.#unsubscribe();
    for (const pool of this.#pools.values()) {
      end(pool);
    }
    this.#pools.clear();
  }

  /** What the sender of a request is told, counted. */
  #failureOf(error: unknown, agent: string, { reusedSocket }: ClientRequest, isRepeatable: boolean): unknown {
    if (error instanceof NoAnswerError) {
      this.#metrics.failed('timeout');
      return error;
    }
    if (error instanceof UnservedError) {
      this.#metrics.failed(error.cause === undefined ? 'not_held' : 'unreachable');
      return error;
    }
    this.#metrics.failed('lost');
    // The peer may have ended a connection at the moment at which it was used again.
    return reusedSocket && isRepeatable
      ? new UnservedError('the connection had ended', { cause: error })
      : new NoAnswerError('lost', agent, { cause: error });
  }

  async #isMoved(agent: string, former: Peer, signal: AbortSignal): Promise<boolean> {
    try {
      await this.moved(agent, former, AbortSignal.any([signal, AbortSignal.timeout(moveMs)]));
      return true;
    } catch {
      signal.throwIfAborted();
      return false;
    }
  }

  #poolOf(peer: Peer): Pool {
    const known = this.#pools.get(peer.fingerprint);
    if (known !== undefined) {
      return known;
    }
    const connections = Object.assign(new Connections({ keepAlive: true, maxFreeSockets: mostIdle }), {
      createConnection: (_options: object, done: (error: Error | null, socket?: Duplex) => void) => {
        this.#connect(peer, done);
      },
    });
    const pool: Pool = { connections, upgraded: new Set(), open: 0 };
    this.#pools.set(peer.fingerprint, pool);
    return pool;
  }

  /** Opens a connection, and gives it out once the other end has proved to be the peer. */
  #connect(peer: Peer, done: (error: Error | null, socket?: Duplex) => void): void {
    const { host, port } = splitHostPort(peer.address) ?? { host: '', port: 0 };
    const { certificate: cert, key } = this.#identity;
    const socket = connect({
      host,
      port,
      cert,
      key,
      minVersion: 'TLSv1.3',
      ALPNProtocols: ['http/1.1'],
      // The certificate is compared with the one that the peer has published.
      rejectUnauthorized: false,
    });
    socket.setNoDelay(true);
    const timer = setTimeout(() => socket.destroy(new Error('no connection in time')), connectMs);
    let isDone = false;
    const finish = (error: Error | undefined) => {
      if (isDone) {
        return;
      }
      isDone = true;
      clearTimeout(timer);
      if (error === undefined) {
        done(null, socket);
        return;
      }
      socket.destroy();
      done(
        new UnservedError(`no connection to ${peer.identity} at ${peer.address}: ${error.message}`, { cause: error }),
      );
    };
    socket.on('error', finish);
    socket.once('close', () => finish(new Error('it was closed')));
    socket.once('secureConnect', () =>
      finish(peerFingerprint(socket) === peer.fingerprint ? undefined : new Error('somebody else answers there')),
    );
  }
}

function end({ connections, upgraded }: Pool): void {
  connections.destroy();
  for (const socket of upgraded) {
    socket.destroy();
  }
}

/**
 * Waits for the head of the answer, or an upgrade.
 * @param over called when the request, or what it was upgraded to, has ended
 */
function headOf(outgoing: ClientRequest, over: () => void): Promise<Omit<LinkAnswer, 'peer'>> {
  const { promise, resolve, reject } = Promise.withResolvers<Omit<LinkAnswer, 'peer'>>();
  let ended = over;
  outgoing.on('error', reject);
  outgoing.once('response', (response) => {
    response.on('error', () => undefined);
    resolve({ response });
  });
  outgoing.once('upgrade', (response, socket, head) => {
    ended = () => undefined;
    socket.once('close', over);
    socket.on('error', () => undefined);
    resolve({ response, upgraded: { socket, head } });
  });
  outgoing.once('close', () => {
    reject(new Error('the connection ended'));
    ended();
  });
  return promise;
}
