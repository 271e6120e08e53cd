import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { Logger } from '../../lib/base/index.ts';
import { WorkQueue, type WorkQueueObserver } from '../../lib/kube/index.ts';
import {
  type ClusterInfo,
  type Compression,
  clusterInfoKey,
  clusterInfoLifetimeMs,
  decodeClusterInfo,
  encodeClusterInfo,
  type RedisLink,
} from '../../lib/redis/index.ts';
import { dataOf, type WireEvent } from '../../lib/wire/index.ts';
import type { ReportedCache } from './cache-refreshes.ts';
import type { MappedAgents } from './mapped-agents.ts';

/** Well before Argo CD drops the information. */
const refreshMs = 3 * 60_000;
/** Statistics that come faster are written together: an agent must not keep Redis busy. */
const gatherMs = 250;
/** The time that agents have to come back before they count as gone. */
const graceMs = 15_000;
/** The replica that an agent has left may write for the last time as late as this. */
const settledMs = 2_000;
/** Argo CD's API server writes its own information this soon after it has written a cluster Secret. */
const foreignWriteMs = 2_000;
/** One failure may pass: the connection may have ended. */
const failuresOfRefused = 3;

const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
const payload = z.object({
  applicationsCount: count,
  apisCount: count,
  resourcesCount: count,
  // Ours, originals do not send them.
  serverVersion: z.string().max(100).exactOptional(),
  lastCacheSyncTime: z.iso.datetime({ offset: true }).exactOptional(),
  dropsCache: z.boolean().exactOptional(),
});

const noCounts = { applicationsCount: 0, apisCount: 0, resourcesCount: 0 };

/** An agent's statistics of its cluster. */
type Statistics = z.output<typeof payload>;
type ConnectionState = ClusterInfo['connectionState'];

/** The last statistics of an agent, and when they came (RFC 3339). */
interface Reported {
  readonly statistics: Statistics;
  readonly at: string;
}

/**
 * Reports the agents' clusters to Argo CD on the hub, for its UI (Settings > Clusters): the
 * information about each cluster in Argo CD's Redis has the agent's connection state and statistics. While an agent is not
 * connected its counts are zero, as with argocd-agent; the time of the last synchronisation stays.
 *
 * Synchronisation does not need Redis. The information is written when Redis is
 * available, again when Redis has lost it, and before Argo CD drops it.
 */
export class ClusterInfos {
  readonly #agents: Pick<MappedAgents, 'names' | 'clustersOf'>;
  readonly #link: Pick<RedisLink, 'get' | 'set' | 'delete' | 'onReady' | 'problem' | 'isConnected'>;
  readonly #compression: Compression;
  readonly #keyPrefix: string;
  readonly #isResponsible: ((agent: string) => boolean) | undefined;
  readonly #reported: ((agent: string, cache: ReportedCache) => void) | undefined;
  readonly #logger: Logger;
  readonly #queue: WorkQueue;
  readonly #states = new Map<string, ConnectionState>();
  readonly #statistics = new Map<string, Reported>();
  /** The server URLs of the written information, by agent. */
  readonly #servers = new Map<string, readonly string[]>();
  /** Whether it was said that writes fail. */
  #isFailing = false;
  /** Agents that had time enough to come back to this process. */
  #isSettled = false;

  constructor(options: {
    agents: Pick<MappedAgents, 'names' | 'clustersOf'>;
    link: Pick<RedisLink, 'get' | 'set' | 'delete' | 'onReady' | 'problem' | 'isConnected'>;
    compression: Compression;
    /** What the keys of Argo CD's cache begin with. */
    keyPrefix: string;
    /** Whether this replica, of several, writes about the agent. Default: it is the only one. */
    isResponsible?: ((agent: string) => boolean) | undefined;
    /** Called for each report of an agent. */
    reported?: (agent: string, cache: ReportedCache) => void;
    observer?: WorkQueueObserver;
    logger: Logger;
  }) {
    this.#agents = options.agents;
    this.#link = options.link;
    this.#compression = options.compression;
    this.#keyPrefix = options.keyPrefix;
    this.#isResponsible = options.isResponsible;
    this.#reported = options.reported;
    this.#logger = options.logger;
    this.#queue = new WorkQueue({
      name: 'cluster information',
      handler: (agent) => this.#write(agent),
      concurrency: 8,
      backoff: { initialMs: 500, maxMs: 30_000 },
      onFailure: (agent, failures, error) => this.#failed(agent, failures, error),
      observer: options.observer,
    });
  }

  /** The text is argocd-agent's, which people and its own tests compare. */
  connected(agent: string): void {
    this.#say(agent, 'Successful', `Agent: '${agent}' is connected with principal`);
    if (this.#isResponsible !== undefined) {
      this.#queue.addAfter(agent, settledMs);
    }
  }

  /** Another replica serves the agent and writes about it: what is known of it here does not count any more. */
  servedElsewhere(agent: string): void {
    this.#states.delete(agent);
    this.#statistics.delete(agent);
  }

  disconnected(agent: string): void {
    this.#say(agent, 'Failed', `Agent: '${agent}' is disconnected with principal`);
  }

  /** The agent is refused until an operator changes something. */
  refused(agent: string, why: string): void {
    if (this.#states.get(agent)?.status === 'Successful') {
      return;
    }
    this.#say(agent, 'Failed', `Agent: '${agent}' is refused: ${why}`);
  }

  /** Takes an event of target `clusterCacheInfoUpdate`. @throws WireError when it cannot be read */
  statistics(agent: string, event: WireEvent): void {
    const now = dataOf(event, payload);
    this.#reported?.(agent, now);
    // Agents repeat them every 10 s. Unchanged information is written again only before Argo CD drops it.
    const isKnown = isDeepStrictEqual(this.#statistics.get(agent)?.statistics, now);
    this.#statistics.set(agent, { statistics: now, at: rfc3339Seconds(new Date()) });
    if (isKnown) {
      return;
    }
    this.#queue.addAfter(agent, gatherMs);
  }

  /** The agent's cluster Secrets have changed, or are gone. */
  changed(agent: string): void {
    if (this.#agents.clustersOf(agent).length === 0) {
      this.#states.delete(agent);
      this.#statistics.delete(agent);
    }
    this.#queue.add(agent);
  }

  /** A cluster Secret of the agent was written. If Argo CD's API server did, it replaces the information by one without counts. */
  secretWritten(agent: string): void {
    this.#queue.addAfter(agent, foreignWriteMs);
  }

  /** Writes until aborted. */
  async run(signal: AbortSignal, timing = { graceMs, refreshMs }): Promise<void> {
    const all = () => {
      for (const agent of [...this.#agents.names(), ...this.#servers.keys()]) {
        this.#queue.add(agent);
      }
    };
    this.#link.onReady(all);
    const grace = setTimeout(() => {
      this.#isSettled = true;
      all();
    }, timing.graceMs);
    const refresh = setInterval(all, timing.refreshMs);
    await this.#queue.run(signal);
    clearTimeout(grace);
    clearInterval(refresh);
  }

  #say(agent: string, status: string, message: string): void {
    const known = this.#states.get(agent);
    if (known?.status === status && known.message === message && status === 'Failed') {
      return;
    }
    this.#states.set(agent, { status, message, attemptedAt: rfc3339Seconds(new Date()) });
    const reported = this.#statistics.get(agent);
    if (status === 'Failed' && reported !== undefined) {
      // Agents of the original do not report when their Argo CD synchronised; then the last report is its latest sign.
      const { statistics, at } = reported;
      this.#statistics.set(agent, { statistics: { lastCacheSyncTime: at, ...statistics, ...noCounts }, at });
    }
    this.#queue.add(agent);
  }

  async #write(agent: string): Promise<void> {
    // Everything is written again when there is a connection. What Redis refuses is tried on.
    if (this.#link.problem !== undefined && !this.#link.isConnected) {
      return;
    }
    const servers = this.#agents.clustersOf(agent).flatMap(({ server }) => (server === '' ? [] : [server]));
    for (const server of this.#servers.get(agent) ?? []) {
      if (!servers.includes(server)) {
        await this.#link.delete(this.#keyOf(server));
      }
    }
    if (servers.length === 0) {
      this.#servers.delete(agent);
    } else {
      this.#servers.set(agent, servers);
    }
    for (const server of this.#isResponsible?.(agent) === false ? [] : servers) {
      await this.#writeServer(agent, server);
    }
  }

  /** Once, and not what the link has said already. */
  #failed(agent: string, failures: number, error: unknown): void {
    if (failures >= failuresOfRefused && !this.#isFailing && this.#link.problem === undefined) {
      this.#isFailing = true;
      this.#logger.warn({ agent, error }, 'the information about clusters cannot be written to Redis; tried on');
    }
  }

  async #writeServer(agent: string, server: string): Promise<void> {
    const key = this.#keyOf(server);
    const statistics = this.#statistics.get(agent)?.statistics;
    const state = this.#states.get(agent) ?? (this.#isSettled ? this.#absent(agent) : undefined);
    // The information of a former process stays until the agent's state is known.
    const former = state === undefined || statistics === undefined ? await this.#former(key) : undefined;
    const connectionState = state ?? former?.connectionState;
    if (connectionState === undefined) {
      return;
    }
    const keepsFormer = former !== undefined && connectionState.status !== 'Failed';
    const counts = statistics ?? (keepsFormer ? { ...former.cacheInfo, ...former } : noCounts);
    const news = this.#statistics.get(agent)?.at;
    const info: ClusterInfo = {
      // What the UI shows as the last attempt is when the agent was last heard of.
      connectionState:
        news !== undefined && connectionState.status === 'Successful' && news > (connectionState.attemptedAt ?? '')
          ? { ...connectionState, attemptedAt: news }
          : connectionState,
      serverVersion: statistics?.serverVersion ?? former?.serverVersion ?? '',
      cacheInfo: {
        resourcesCount: counts.resourcesCount,
        apisCount: counts.apisCount,
        lastCacheSyncTime: statistics?.lastCacheSyncTime ?? former?.cacheInfo.lastCacheSyncTime,
      },
      applicationsCount: counts.applicationsCount,
    };
    await this.#link.set(key, encodeClusterInfo(info, this.#compression), clusterInfoLifetimeMs);
    this.#isFailing = false;
    this.#logger.debug({ agent, server, status: connectionState.status }, 'cluster information written');
  }

  async #former(key: string): Promise<ClusterInfo | undefined> {
    const value = await this.#link.get(key);
    if (value === undefined) {
      return undefined;
    }
    try {
      return decodeClusterInfo(value, this.#compression);
    } catch (error) {
      this.#logger.debug({ key, error }, 'what Redis holds about a cluster cannot be read and is replaced');
      return undefined;
    }
  }

  #keyOf(server: string): string {
    return `${this.#keyPrefix}${clusterInfoKey(server, this.#compression)}`;
  }

  #absent(agent: string): ConnectionState {
    const state = {
      status: 'Failed',
      message: `Agent: '${agent}' has not connected since the principal started`,
      attemptedAt: rfc3339Seconds(new Date()),
    };
    this.#states.set(agent, state);
    return state;
  }
}

/** Argo CD's times have no fractions of a second. */
function rfc3339Seconds(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, 'Z');
}
