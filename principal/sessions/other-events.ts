import { Warnings } from '../../lib/argocd/index.ts';
import type { Logger } from '../../lib/base/index.ts';
import { UnservedEvents } from '../../lib/bridge/index.ts';
import { targets, type WireEvent } from '../../lib/wire/index.ts';
import type { ClusterInfos } from '../clusters/cluster-info.ts';
import type { LiveAccess } from '../live/live-access.ts';

/** Handles the events of one agent that do not belong to the delivery engine. */
export class OtherEvents {
  readonly #agent: string;
  readonly #live: Pick<LiveAccess, 'answered'>;
  readonly #clusterInfos: Pick<ClusterInfos, 'statistics'>;
  readonly #warnings: Warnings;
  readonly #unserved: UnservedEvents;

  constructor(options: {
    agent: string;
    live: Pick<LiveAccess, 'answered'>;
    clusterInfos: Pick<ClusterInfos, 'statistics'>;
    logger: Logger;
    eventLogger: Logger;
  }) {
    this.#agent = options.agent;
    this.#live = options.live;
    this.#clusterInfos = options.clusterInfos;
    this.#warnings = new Warnings(options.logger);
    this.#unserved = new UnservedEvents(options.eventLogger);
  }

  /** Handles an event. Returns false when it cannot be used; the reason is logged then. */
  take(event: WireEvent): boolean {
    switch (event.target) {
      case targets.heartbeat:
        return true;
      case targets.resource:
      case targets.redis:
        // A late answer is not an error.
        return this.#tries('an answer of an agent cannot be read', () => this.#live.answered(this.#agent, event));
      case targets.clusterCacheInfoUpdate:
        return this.#tries("the statistics of an agent's cluster cannot be read", () =>
          this.#clusterInfos.statistics(this.#agent, event),
        );
      default:
        this.#unserved.report(event);
        return false;
    }
  }

  #tries(failure: string, handle: () => unknown): boolean {
    try {
      handle();
      return true;
    } catch (error) {
      this.#warnings.warn({ agent: this.#agent, error }, failure);
      return false;
    }
  }
}
