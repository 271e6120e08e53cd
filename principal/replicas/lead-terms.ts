import type { CatchUps } from './catch-ups.ts';
import { termOf } from './hold-record.ts';
import type { HoldStore } from './hold-store.ts';
import type { LiveReplicas } from './live-replicas.ts';
import type { ReplicaLease } from './replica-lease.ts';

/** How long a leader waits for agents to come to another replica before it catches up for them, ms; and up to as long again. */
const pauseMs = 1_000;

/** How {@link LeadTerms} work. */
export interface LeadTermsOptions {
  readonly self: Pick<ReplicaLease, 'identity'>;
  readonly isLeader: () => boolean;
  readonly replicas: Pick<LiveReplicas, 'has' | 'isGone'>;
  readonly leases: Pick<HoldStore, 'newest' | 'refresh'>;
  readonly catchUps: Pick<CatchUps, 'ensure'>;
}

/** For which agents this replica, as leader, does what is to be done: those that nobody holds, as soon as it knows their newest state. */
export class LeadTerms {
  readonly #options: LeadTermsOptions;

  constructor(options: LeadTermsOptions) {
    this.#options = options;
  }

  /**
   * Leads for the agent if it may, and gives a name for the time in which it does; empty: it does not, or it has to catch up
   * first with what the last holder wrote, and begins to. Nobody has written anything for an agent that was never held.
   */
  claim(agent: string): string {
    const { self, isLeader, replicas, leases, catchUps } = this.#options;
    const lease = leases.newest(agent);
    if (!isLeader() || replicas.has(lease?.spec?.holderIdentity ?? '')) {
      return '';
    }
    const term = `${self.identity} leads after ${lease === undefined ? 'nobody' : termOf(lease)}`;
    return lease === undefined || catchUps.ensure(agent, term, pauseMs * (1 + Math.random())) ? term : '';
  }

  /**
   * Whether it leads for the agent for certain. That nobody holds it is read past the cache: a leader whose watch of the Leases is
   * behind would take what the holder writes for what somebody else has changed.
   * @throws ApiError or ConnectionError when the API server cannot be asked
   */
  async isCertain(agent: string): Promise<boolean> {
    const { replicas, leases } = this.#options;
    if (this.claim(agent) === '') {
      return false;
    }
    await leases.refresh(agent);
    const holder = leases.newest(agent)?.spec?.holderIdentity ?? '';
    return (await replicas.isGone(holder)) && this.claim(agent) !== '';
  }
}
