import type { X509Certificate } from 'node:crypto';
import { EventEmitter } from 'node:events';
import type { TokenAuthority } from '../../lib/auth/index.ts';
import { abortable, type Logger } from '../../lib/base/index.ts';
import { redisResponse } from '../../lib/live/index.ts';
import { dataOf, type LiveStreamService, type ServerTls, targets, type WireEvent } from '../../lib/wire/index.ts';
import { Bodies } from './agent-bodies.ts';
import { AgentRequests } from './agent-requests.ts';
import type { ResourceProxyMetrics } from './metrics.ts';
import { AgentCache, type AgentCacheOptions } from './redis/agent-cache.ts';
import { type RedisProxy, type RedisProxyOptions, serveRedisProxy } from './redis/proxy.ts';
import { CallerNames } from './resources/callers.ts';
import { type ResourceProxy, serveResourceProxy } from './resources/resource-proxy.ts';
import { TerminalSessions } from './terminals/terminal-sessions.ts';

/** Largest message of an agent about a change on a channel: names of the channel, the connection and the request. */
const mostMessageBytes = 16 * 1024;

/** Live data of the agents' clusters: requests to agents and their answers. */
export class LiveAccess {
  readonly #exchange: AgentRequests;
  readonly #bodies = new Bodies();
  readonly #terminals = new TerminalSessions();
  readonly #send: (agent: string, event: WireEvent) => boolean;

  #redisProxy: RedisProxy | undefined;
  readonly #arrivals = new EventEmitter<{ connected: [agent: string] }>().setMaxListeners(0);
  readonly #isConnected: (agent: string) => boolean;

  constructor(agents: {
    /** Puts an event on the stream of an agent that may be asked; false when there is none. */
    send(agent: string, event: WireEvent): boolean;
    /** Whether there is an agent of this name that may be asked. */
    isConnected(agent: string): boolean;
  }) {
    this.#send = agents.send;
    this.#isConnected = agents.isConnected;
    this.#exchange = new AgentRequests(agents.send);
  }

  /** The streams of live data that agents open. */
  readonly streams: LiveStreamService = {
    logs: (stream) => this.#bodies.serve(stream),
    terminal: (stream) => this.#terminals.serve(stream),
  };

  /** How many terminals of each agent are open. */
  get terminals(): ReadonlyMap<string, number> {
    return this.#terminals.counts;
  }

  /**
   * Takes an event of an agent; false when nobody waits for it. Such an event is not read, unless it is as short as a message
   * on a channel.
   * @throws WireError when it cannot be read
   */
  answered(agent: string, event: WireEvent): boolean {
    if (this.#exchange.answered(agent, event)) {
      return true;
    }
    if (event.target !== targets.redis || event.data.byteLength > mostMessageBytes) {
      return false;
    }
    const { connectionUuid, body } = dataOf(event, redisResponse);
    if (!body.pushFromSubscribe) {
      return false;
    }
    this.#redisProxy?.news(agent, connectionUuid, body.pushFromSubscribe.channelName);
    return true;
  }

  /** The agent has a stream. */
  connected(agent: string): void {
    this.#arrivals.emit('connected', agent);
    this.#redisProxy?.agentConnected(agent);
  }

  /** The agent's stream has ended. */
  disconnected(agent: string): void {
    this.#exchange.disconnected(agent);
    this.#terminals.disconnected(agent);
  }

  /** Serves the API of the agents' clusters. @throws FatalError when the port cannot be taken */
  serveResources(options: {
    address: { readonly host: string; readonly port: number };
    tls: ServerTls;
    tokens: Pick<TokenAuthority, 'verifyResourceProxy'>;
    isBlocked: (certificate: X509Certificate) => boolean;
    /** A terminal without input and output for this time is closed; 0 for never. */
    terminalIdleMs: number;
    metrics: ResourceProxyMetrics;
    logger: Logger;
  }): Promise<ResourceProxy> {
    const { address, tls, tokens, isBlocked, terminalIdleMs, metrics, logger } = options;
    return serveResourceProxy({
      ...address,
      tls,
      callers: new CallerNames(tokens, isBlocked),
      exchange: this.#exchange,
      bodies: this.#bodies,
      terminals: this.#terminals,
      terminalIdleMs,
      send: this.#send,
      isConnected: this.#isConnected,
      connected: (agent, signal) => this.#arrivalOf(agent, signal),
      metrics,
      logger,
    });
  }

  /** Serves the cache of the agents' Argo CDs. @throws FatalError when the port cannot be taken */
  async serveRedis(
    options: Omit<RedisProxyOptions, 'cache'> & Omit<AgentCacheOptions, 'exchange' | 'logger'>,
  ): Promise<RedisProxy> {
    const { link, metrics, logger } = options;
    const cache = new AgentCache({ exchange: this.#exchange, link, metrics, logger });
    this.#redisProxy = await serveRedisProxy({ ...options, cache });
    return this.#redisProxy;
  }

  async #arrivalOf(agent: string, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const arrived = (name: string) => {
      if (name === agent) {
        resolve();
      }
    };
    this.#arrivals.on('connected', arrived);
    if (this.#isConnected(agent)) {
      resolve();
    }
    try {
      await abortable(promise, signal);
    } finally {
      this.#arrivals.off('connected', arrived);
    }
  }
}
