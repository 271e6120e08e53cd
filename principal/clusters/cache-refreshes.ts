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
 * Passes *Invalidate cache* of Argo CD's UI on to agents. Argo CD's API server writes the time of the request on the cluster Secret,
 * and the cache is dropped if it is older than that, which is Argo CD's rule. An agent that is away gets the request when it is back.
 */
export class CacheRefreshes {
  readonly #agents: Pick<MappedAgents, 'clustersOf'>;
  readonly #send: (agent: string) => boolean;
  readonly #logger: Logger;
  /** Of connected agents. */
  readonly #reported = new Map<string, ReportedCache>();
  /** The time of the last request that was sent on this connection. */
  readonly #sent = new Map<string, number>();

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
    this.#ask(agent);
  }

  /** A cluster Secret of the agent was written. */
  secretWritten(agent: string): void {
    this.#ask(agent);
  }

  /** The agent is not connected here any more. */
  disconnected(agent: string): void {
    this.#reported.delete(agent);
    this.#sent.delete(agent);
  }

  #ask(agent: string): void {
    const cache = this.#reported.get(agent);
    const readAt = Date.parse(cache?.lastCacheSyncTime ?? '');
    const askedAt = Math.max(
      ...this.#agents
        .clustersOf(agent)
        .map(({ secret }) => Date.parse(secret.metadata.annotations?.[annotations.refresh] ?? ''))
        .filter((time) => !Number.isNaN(time)),
    );
    // Argo CD does not drop a cache that it does not have.
    if (cache?.dropsCache !== true || !(readAt < askedAt) || this.#sent.get(agent) === askedAt) {
      return;
    }
    if (this.#send(agent)) {
      this.#sent.set(agent, askedAt);
      this.#logger.info({ agent }, "the agent's Argo CD is asked to drop its cache of the cluster");
    }
  }
}
