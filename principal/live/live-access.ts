import { EventEmitter } from 'node:events';
import type { TokenAuthority } from '../../lib/auth/index.ts';
import { abortable, type Logger } from '../../lib/base/index.ts';
import type { OpenConnections } from '../../lib/credentials/index.ts';
import { redisResponse } from '../../lib/live/index.ts';
import type { Tracer } from '../../lib/tracing/index.ts';
import {
  dataOf,
  type LiveStreamHandlers,
  type LiveStreamService,
  type ServerLiveStream,
  type ServerTls,
  targets,
  type WireEvent,
} from '../../lib/wire/index.ts';
import type { PeerLink } from '../peers/peer-link.ts';
import type { PeerPort } from '../peers/peer-port.ts';
import type { Peer, ReplicaDirectory } from '../replicas/index.ts';
import { Bodies } from './agent-bodies.ts';
import { AgentRequests } from './agent-requests.ts';
import type { AuditRecord } from './audit-record.ts';
import { PeerNews } from './elsewhere/peer-news.ts';
import { peerService } from './elsewhere/peer-service.ts';
import { RedisElsewhere } from './elsewhere/redis-elsewhere.ts';
import { relayStream, type StreamKind } from './elsewhere/relayed-streams.ts';
import type { ResourceProxyMetrics } from './metrics.ts';
import { AgentCache, type AgentCacheOptions } from './redis/agent-cache.ts';
import { type AskRedis, askOverStream } from './redis/ask-redis.ts';
import { type RedisProxy, type RedisProxyOptions, serveRedisProxy } from './redis/proxy.ts';
import { CallerNames } from './resources/callers.ts';
import type { MirroredAgents } from './resources/request-mapping.ts';
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
  readonly #mirrored: MirroredAgents;
  readonly #tracer: Tracer | undefined;
  /** What other replicas follow. */
  readonly #peerNews = new PeerNews();
  /** The way to agents that other replicas hold. */
  #elsewhere: PeerLink | undefined;
  readonly #askHere: AskRedis;
  #ask: AskRedis;

  constructor(agents: {
    /** Puts an event on the stream of an agent that may be asked; false when there is none. */
    send(agent: string, event: WireEvent): boolean;
    /** Whether there is an agent of this name that may be asked. */
    isConnected(agent: string): boolean;
    /** Default: the hub mirrors no Applications. */
    mirrored?: MirroredAgents;
    /** Traces requests; agents learn of which one a request is part. Default: none are traced. */
    tracer?: Tracer | undefined;
  }) {
    const { tracer } = agents;
    this.#tracer = tracer;
    this.#send = (agent, event) =>
      agents.send(agent, tracer ? { ...event, extensions: { ...event.extensions, ...tracer.headers } } : event);
    this.#isConnected = agents.isConnected;
    this.#mirrored = agents.mirrored ?? { isAutonomous: () => false, namespaceOf: () => undefined };
    this.#exchange = new AgentRequests(this.#send);
    this.#askHere = askOverStream(this.#exchange);
    this.#ask = this.#askHere;
  }

  /** The streams of live data that agents open. */
  readonly streams: LiveStreamService = {
    logs: (stream) => this.#relayed('logs', stream) ?? this.#streams.logs(stream),
    terminal: (stream) => this.#relayed('terminal', stream) ?? this.#streams.terminal(stream),
  };
  readonly #streams: LiveStreamService = {
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
    const { channelName } = body.pushFromSubscribe;
    this.#redisProxy?.news(agent, connectionUuid, channelName);
    this.#peerNews.news(agent, connectionUuid, channelName);
    return true;
  }

  /** The agent has a stream. */
  connected(agent: string): void {
    this.#arrivals.emit('connected', agent);
    this.#redisProxy?.agentConnected(agent);
    this.#peerNews.arrived(agent);
  }

  /** The agent's stream has ended. */
  disconnected(agent: string): void {
    this.#exchange.disconnected(agent);
    this.#terminals.disconnected(agent);
  }

  /**
   * From now on, requests about agents that other replicas hold are served by these, and theirs about agents of this replica here.
   * Call it before the proxies serve. Returns the way to the others.
   */
  joinReplicas(options: {
    readonly port: PeerPort;
    readonly directory: ReplicaDirectory;
    /** See {@link PeerServiceOptions}. */
    readonly deposed: (identity: string) => void;
    /** A terminal without input and output for this time is closed; 0 for never. */
    readonly terminalIdleMs: number;
    /** Most bytes of an answer that is neither a watch nor a log. */
    readonly mostAnswerBytes: number;
    /** The largest answer of an agent. */
    readonly maxAnswerBytes: number;
    readonly logger: Logger;
    readonly signal: AbortSignal;
  }): PeerLink {
    const { port, directory, deposed, terminalIdleMs, mostAnswerBytes, maxAnswerBytes, logger, signal } = options;
    const service = peerService({
      api: {
        ...this.#agentApi(),
        elsewhere: undefined,
        terminalIdleMs,
        mostAnswerBytes,
        understands: new Set(),
        logger,
      },
      isElsewhere: (agent) => isPeer(directory.holderOf(agent)),
      ask: this.#askHere,
      streams: this.#streams,
      news: this.#peerNews,
      deposed,
      tracer: this.#tracer,
      logger,
    });
    const link = port.join(directory, service);
    this.#elsewhere = link;
    const reader = {
      news: (agent: string, connectionUuid: string, channel: string) =>
        this.#redisProxy?.news(agent, connectionUuid, channel),
      arrived: (agent: string) => this.#redisProxy?.agentConnected(agent),
    };
    const here = this.#askHere;
    this.#ask = new RedisElsewhere({ link, here, reader, maxAnswerBytes, logger, signal }).ask;
    directory.subscribe((agent) => {
      if (isPeer(directory.holderOf(agent))) {
        this.#arrivals.emit('connected', agent);
        this.#redisProxy?.agentConnected(agent);
      }
    });
    return link;
  }

  /** Serves the API of the agents' clusters. @throws FatalError when the port cannot be taken */
  serveResources(options: {
    address: { readonly host: string; readonly port: number };
    tls: ServerTls;
    tokens: Pick<TokenAuthority, 'verifyResourceProxy'>;
    connections: OpenConnections;
    /** A terminal without input and output for this time is closed; 0 for never. */
    terminalIdleMs: number;
    /** Most bytes of an answer that is neither a watch nor a log. */
    mostAnswerBytes: number;
    metrics: ResourceProxyMetrics;
    audit: ((record: AuditRecord) => void) | undefined;
    logger: Logger;
  }): Promise<ResourceProxy> {
    const { address, tls, tokens, connections, terminalIdleMs, mostAnswerBytes, metrics, audit, logger } = options;
    return serveResourceProxy({
      ...address,
      tls,
      callers: new CallerNames(tokens),
      connections,
      ...this.#agentApi(),
      terminalIdleMs,
      mostAnswerBytes,
      metrics,
      audit,
      logger,
    });
  }

  #agentApi() {
    return {
      exchange: this.#exchange,
      bodies: this.#bodies,
      terminals: this.#terminals,
      send: this.#send,
      isConnected: this.#isConnected,
      mirrored: this.#mirrored,
      connected: (agent: string, signal: AbortSignal, former?: Peer) => this.#arrivalOf(agent, signal, former),
      elsewhere: this.#elsewhere,
      tracer: this.#tracer,
    };
  }

  #relayed<Out, In>(kind: StreamKind, stream: ServerLiveStream<Out>): LiveStreamHandlers<In> | undefined {
    return this.#elsewhere && relayStream(this.#elsewhere, kind, stream);
  }

  /** Serves the cache of the agents' Argo CDs. @throws FatalError when the port cannot be taken */
  async serveRedis(
    options: Omit<RedisProxyOptions, 'cache'> & Omit<AgentCacheOptions, 'ask' | 'isAutonomous' | 'tracer' | 'logger'>,
  ): Promise<RedisProxy> {
    const { link, metrics, logger } = options;
    const cache = new AgentCache({
      ask: (agent, command, signal) => this.#ask(agent, command, signal),
      isAutonomous: (agent) => this.#mirrored.isAutonomous(agent),
      link,
      metrics,
      tracer: this.#tracer,
      logger,
    });
    this.#redisProxy = await serveRedisProxy({ ...options, cache });
    return this.#redisProxy;
  }

  async #arrivalOf(agent: string, signal: AbortSignal, former: Peer | undefined): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const arrived = (name: string) => {
      const holder = this.#elsewhere?.holderOf(agent);
      const isElsewhere = holder !== undefined && holder.fingerprint !== former?.fingerprint;
      if (name === agent && (isElsewhere || this.#isConnected(agent))) {
        resolve();
      }
    };
    this.#arrivals.on('connected', arrived);
    arrived(agent);
    try {
      await abortable(promise, signal);
    } finally {
      this.#arrivals.off('connected', arrived);
    }
  }
}

function isPeer(holder: ReturnType<ReplicaDirectory['holderOf']>): boolean {
  return holder !== undefined && holder !== 'here';
}
