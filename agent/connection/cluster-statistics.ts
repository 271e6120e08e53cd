import { type Logger, onAbort, sleep } from '../../lib/base/index.ts';
import { clusterInfoKey, decodeClusterInfo, prefixedValue, type RedisLink } from '../../lib/redis/index.ts';
import { agentSource, eventTypes, messageEvent, targets, type WireEvent } from '../../lib/wire/index.ts';
import { type OwnCluster, ownServer } from './own-cluster.ts';

/** Longest time between two reads without a notification. */
const longestMs = 5 * 60_000;

/** The statistics that the principal gets. The first three are the originals', which ignore what else there is. */
interface Statistics {
  readonly applicationsCount: number;
  readonly apisCount: number;
  readonly resourcesCount: number;
  readonly serverVersion?: string;
  readonly lastCacheSyncTime?: string;
}

/** Whether the local Argo CD can be made to drop its cache of the cluster, and news of that. */
type CacheOwner = Pick<OwnCluster, 'isKnown' | 'onChanged'>;

/**
 * Passes the local Argo CD's statistics of its cluster, from its Redis, on to the principal: once per connection, because a
 * principal drops them with the connection, and after each change.
 */
export class ClusterStatistics {
  readonly #link: Pick<RedisLink, 'get' | 'onReady' | 'onChanged' | 'isNotified' | 'problem'>;
  readonly #cluster: CacheOwner;
  readonly #keyPrefix: string;
  readonly #intervalMs: number;
  readonly #logger: Logger;
  #current: Statistics | undefined;
  #send: ((event: WireEvent) => void) | undefined;
  #sent: string | undefined;
  #wake: () => void = () => undefined;
  #isDue = true;
  #problem: string | undefined;

  /** `intervalMs`: shortest time between two reads from Redis. */
  constructor(options: {
    link: Pick<RedisLink, 'get' | 'onReady' | 'onChanged' | 'isNotified' | 'problem'>;
    cluster: CacheOwner;
    /** What the keys of Argo CD's cache begin with. */
    keyPrefix: string;
    intervalMs: number;
    logger: Logger;
  }) {
    this.#link = options.link;
    this.#cluster = options.cluster;
    this.#keyPrefix = options.keyPrefix;
    this.#intervalMs = options.intervalMs;
    this.#logger = options.logger;
  }

  /** Called when the agent is connected to the principal. */
  connected(send: (event: WireEvent) => void): void {
    this.#send = send;
    this.#sent = undefined;
    this.#tell();
  }

  disconnected(): void {
    this.#send = undefined;
  }

  /** Follows Redis until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const due = () => {
      this.#isDue = true;
      this.#wake();
    };
    this.#link.onReady(due);
    this.#link.onChanged(due);
    this.#cluster.onChanged(() => this.#tell());
    onAbort(signal, () => this.#wake());
    while (!signal.aborted) {
      await this.#due(signal);
      if (signal.aborted) {
        return;
      }
      this.#isDue = false;
      await this.#read();
      await sleep(this.#intervalMs, signal);
    }
  }

  /** Waits for a notification or the longest interval; returns at once if Redis sends no notifications. */
  async #due(signal: AbortSignal): Promise<void> {
    if (this.#isDue || (this.#link.problem === undefined && !this.#link.isNotified)) {
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = setTimeout(resolve, longestMs);
    if (signal.aborted) {
      resolve();
    }
    await promise;
    clearTimeout(timer);
  }

  async #read(): Promise<void> {
    if (this.#link.problem !== undefined) {
      return;
    }
    try {
      const info =
        (await this.#decoded('gzip')) ??
        // Argo CD may be configured not to compress.
        (await this.#decoded('none'));
      this.#problem = undefined;
      if (info === undefined) {
        return;
      }
      const { cacheInfo, serverVersion, applicationsCount } = info;
      this.#current = {
        applicationsCount,
        apisCount: cacheInfo.apisCount,
        resourcesCount: cacheInfo.resourcesCount,
        ...(serverVersion === '' ? {} : { serverVersion }),
        ...(cacheInfo.lastCacheSyncTime === undefined ? {} : { lastCacheSyncTime: cacheInfo.lastCacheSyncTime }),
      };
      this.#tell();
    } catch (error) {
      // Redis notifies only about keys that were read: the read must be repeated.
      this.#isDue = true;
      const { message } = error as Error;
      if (message === this.#problem) {
        return;
      }
      this.#problem = message;
      this.#logger.warn({ error }, "the cluster's statistics cannot be read from Redis; retried");
    }
  }

  async #decoded(compression: 'gzip' | 'none') {
    const value = await prefixedValue(this.#link, this.#keyPrefix, clusterInfoKey(ownServer, compression));
    return value && decodeClusterInfo(value, compression);
  }

  #tell(): void {
    if (this.#current === undefined || this.#send === undefined) {
      return;
    }
    const statistics = { ...this.#current, ...(this.#cluster.isKnown ? { dropsCache: true } : {}) };
    const text = JSON.stringify(statistics);
    if (text === this.#sent) {
      return;
    }
    this.#sent = text;
    const { clusterCacheInfoUpdate } = eventTypes;
    const origin = { source: agentSource };
    this.#send(messageEvent(targets.clusterCacheInfoUpdate, clusterCacheInfoUpdate, statistics, origin));
    this.#logger.debug({ statistics }, "the cluster's statistics were sent");
  }
}
