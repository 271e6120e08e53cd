import { annotations } from '../../lib/argocd/index.ts';
import type { Logger } from '../../lib/base/index.ts';
import type { MappedAgents } from './mapped-agents.ts';

/** What an agent says about the cache of its Argo CD. */
export interface ReportedCache {
  /** Whether the agent can make its Argo CD drop the cache. Agents of argocd-agent do not say so. */
  readonly dropsCache?: boolean | undefined;
  /** RFC 3339. When the Argo CD read its cluster for the last time; undefined: it has not yet. */
  readonly lastCacheSyncTime?: string | undefined;
}

/**
 * Passes *Invalidate cache* of Argo CD's UI on to agents. Argo CD's API server writes the time of the request on the cluster Secret.
 * A request that is made while the agent is connected is passed on. Of one that was made before, the agent's cache tells: it is dropped
 * if it is older than the request, which is Argo CD's rule. Two clocks are compared then: at worst a cache is read once more, or not.
 */
export class CacheRefreshes {
  readonly #agents: Pick<MappedAgents, 'clustersOf'>;
  readonly #send: (agent: string) => boolean;
  readonly #logger: Logger;
  /** Of connected agents. */
  readonly #reported = new Map<string, ReportedCache>();
  /** The time of the last request that was sent on this connection, or that the agent's cache was newer than. */
  readonly #done = new Map<string, number>();

  constructor(options: {
    agents: Pick<MappedAgents, 'clustersOf'>;
    /** Asks the agent to have the cache dropped; false when it is not connected here. */
    send: (agent: string) => boolean;
    logger: Logger;
  }) {
    this.#agents = options.agents;
    this.#send = options.send;
    this.#logger = options.logger;
  }

  /** The agent has reported. */
  reported(agent: string, cache: ReportedCache): void {
    this.#reported.set(agent, cache);
    const readAt = Date.parse(cache.lastCacheSyncTime ?? '');
    this.#pass(agent, (askedAt) => readAt < askedAt);
  }

  /** A cluster Secret of the agent was written. */
  secretWritten(agent: string): void {
    this.#pass(agent, () => true);
  }

  /** The agent is not connected here any more. */
  disconnected(agent: string): void {
    this.#reported.delete(agent);
    this.#done.delete(agent);
  }

  #pass(agent: string, isOpen: (askedAt: number) => boolean): void {
    const cache = this.#reported.get(agent);
    // Argo CD does not drop a cache that it does not have.
    if (cache?.dropsCache !== true || cache.lastCacheSyncTime === undefined) {
      return;
    }
    const askedAt = this.#askedAt(agent);
    const done = this.#done.get(agent) ?? Number.NEGATIVE_INFINITY;
    if (askedAt <= done) {
      return;
    }
    if (!isOpen(askedAt)) {
      this.#done.set(agent, askedAt);
    } else if (this.#send(agent)) {
      this.#done.set(agent, askedAt);
      this.#logger.info({ agent }, "the agent's Argo CD is asked to drop its cache of the cluster");
    }
  }

  /** When somebody asked for it last; -Infinity: never. */
  #askedAt(agent: string): number {
    return Math.max(
      ...this.#agents
        .clustersOf(agent)
        .map(({ secret }) => Date.parse(secret.metadata.annotations?.[annotations.refresh] ?? ''))
        .filter((time) => !Number.isNaN(time)),
    );
  }
}
