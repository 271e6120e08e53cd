import { type Logger, timeoutSignal, wellKnown } from '../../lib/base/index.ts';
import {
  type Informer,
  isAlreadyExists,
  isConflict,
  isNotFound,
  type KubeClient,
  type Lease,
  WorkQueue,
  type WorkQueueObserver,
} from '../../lib/kube/index.ts';
import type { AgentRecords, ConnectedAgent } from '../sessions/agent-records.ts';
import { connectionAnnotations } from '../sessions/connection-records.ts';
import { CatchUps, type CatchUpsOptions } from './catch-ups.ts';
import type { Peer } from './directory.ts';
import {
  askerOf,
  endedHold,
  handedOverHold,
  isOfNewerConnection,
  isSameHold,
  takenHold,
  termOf,
  withAsker,
} from './hold-record.ts';
import { HoldStore } from './hold-store.ts';
import { LeadTerms } from './lead-terms.ts';
import { type LiveReplicas, lookAgainMs } from './live-replicas.ts';
import type { ReplicaLease } from './replica-lease.ts';
import type { WriteFence } from './write-fence.ts';

const concurrency = 32;
/** How long the agents of a replica that is gone have to come back, before their records say that they are not connected. */
const graceMs = 30_000;
const attempts = 5;
const catchUpMs = 10_000;
const cutOff = 'this principal is cut off from its hub: connect again, to another one';

/** How {@link AgentHolds} work. */
export interface AgentHoldsOptions {
  readonly client: Pick<KubeClient, 'get' | 'create' | 'replace'>;
  readonly namespace: string;
  readonly informer: Informer<Lease>;
  readonly self: Pick<ReplicaLease, 'identity' | 'isCurrent' | 'isStalled'>;
  readonly replicas: Pick<LiveReplicas, 'has' | 'isGone' | 'peer'>;
  readonly isLeader: () => boolean;
  readonly fence: Pick<WriteFence, 'quiet' | 'allQuiet'>;
  readonly caughtUp: CatchUpsOptions['caughtUp'];
  /** Longest wait for it, ms. Default: 10 s, as a dead watch is noticed within 8 s, and the next one brings what it missed. */
  readonly catchUpMs?: number | undefined;
  /** This replica holds the agent from now on. */
  readonly held: (agent: string) => void;
  /** The agent's session must end at once: its synchronisation here stops before this returns. */
  readonly lost: (agent: string, why: string) => void;
  /** The agent's session has ended, and its hold is about to be given up: the engine forgets it. */
  readonly released: (agent: string) => void;
  /** An agent was given to another replica that is alive. */
  readonly handedOver: (agent: string, to: string) => void;
  /** `holderOf(agent)` or `isResponsible(agent)` has another answer. */
  readonly changed: (agent: string) => void;
  readonly observer?: WorkQueueObserver | undefined;
  readonly logger: Logger;
  readonly graceMs?: number;
}

type Wanted = ConnectedAgent & {
  readonly since: Date;
  /** When the connection began that was on record when the agent came here. */
  readonly recorded: string | undefined;
  /** This replica has asked the holder for the agent. */
  hasAsked: boolean;
};

/**
 * Which replica serves which agent: the Lease `argocd-agent-<agent>` names it, with a term (`leaseTransitions`), and the record of the
 * agent's connection is in the same Lease. A hold counts as long as its replica's own Lease is there. Every write replaces the
 * version that was seen last, so that of two replicas one succeeds; an agent is served after this write has succeeded. A live
 * holder is asked for the agent with an annotation. It ends its session and all that it writes, and names the other one.
 */
export class AgentHolds implements AgentRecords {
  readonly #options: AgentHoldsOptions;
  readonly #queue: WorkQueue;
  /** Agents with a stream to this replica. */
  readonly #wanted = new Map<string, Wanted>();
  /** Agents that this replica holds and serves. */
  readonly #serving = new Set<string>();
  readonly #leases: HoldStore;
  /** Agents that left the fleet: what their Leases say of their mode does not count. */
  readonly #forgotten = new Set<string>();
  /** Replicas that are gone, and since when. */
  readonly #gone = new Map<string, Date>();
  /** Who holds an agent, as those who follow that were told. */
  readonly #known = new Map<string, string>();
  readonly #catchUps: CatchUps;
  readonly #leads: LeadTerms;
  readonly #startedAt = new Date();
  #isClosing = false;

  constructor(options: AgentHoldsOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({
      name: 'agent holds',
      handler: (agent) => this.#settle(agent),
      concurrency,
      backoff: { initialMs: 50, maxMs: 1_000 },
      observer: options.observer,
      logger: options.logger,
    });
    this.#catchUps = new CatchUps({
      caughtUp: options.caughtUp,
      done: (agent) => {
        this.#queue.add(agent);
        this.#review(agent);
      },
      failed: (agent) => {
        if (this.#wanted.has(agent)) {
          this.#lose(agent, 'this principal does not know the newest state of its hub: connect again');
          this.#queue.add(agent);
        } else {
          // As leader it begins again when it is alive.
          this.#queue.addAfter(agent, lookAgainMs());
        }
      },
      timeoutMs: options.catchUpMs ?? catchUpMs,
      logger: options.logger,
    });
    const { client, namespace, informer } = options;
    this.#leases = new HoldStore({
      client,
      namespace,
      informer,
      seen: (agent, lease) => this.#seen(agent, lease),
      wrote: (agent) => this.#review(agent),
    });
    const { self, replicas, isLeader } = options;
    this.#leads = new LeadTerms({ self, replicas, isLeader, leases: this.#leases, catchUps: this.#catchUps });
    this.#leases.follow();
  }

  /** Agents that this replica serves. */
  get serving(): ReadonlySet<string> {
    return this.#serving;
  }

  /** How many agents live replicas hold, all together. */
  get held(): number {
    let count = 0;
    for (const [, lease] of this.#leases.entries()) {
      count += this.#isHeld(lease) ? 1 : 0;
    }
    return count;
  }

  holderOf(agent: string): 'here' | Peer | undefined {
    if (this.#serving.has(agent)) {
      return 'here';
    }
    const holder = this.#leases.newest(agent)?.spec?.holderIdentity ?? '';
    return this.#options.replicas.peer(holder);
  }

  /** Whether this replica, and no other one, does what is to be done for the agent, as far as it knows. */
  isResponsible(agent: string | undefined): boolean {
    if (agent === undefined) {
      return this.#options.isLeader();
    }
    return this.#serving.has(agent) || this.#leads.claim(agent) !== '';
  }

  /**
   * Whether this replica is responsible for certain: see {@link LeadTerms.isCertain}.
   * @throws ApiError or ConnectionError when the API server cannot be asked
   */
  async mayWrite(agent: string | undefined): Promise<boolean> {
    return agent === undefined || this.#serving.has(agent) ? this.isResponsible(agent) : this.#leads.isCertain(agent);
  }

  /** Why agents had better connect to another replica; undefined if they need not. */
  get cutOff(): string | undefined {
    return this.#options.self.isStalled ? cutOff : undefined;
  }

  connected(agent: string, details: ConnectedAgent): boolean {
    this.#forgotten.delete(agent);
    const recorded = this.#leases.newest(agent)?.spec?.acquireTime;
    this.#wanted.set(agent, { ...details, since: new Date(), recorded, hasAsked: false });
    this.#queue.add(agent);
    if (this.#options.self.isStalled) {
      // After the caller has taken note of the session.
      setImmediate(() => this.#options.lost(agent, cutOff));
    }
    return this.#serving.has(agent);
  }

  disconnected(agent: string): void {
    if (this.#wanted.delete(agent)) {
      this.#stopServing(agent);
      this.#queue.add(agent);
    }
  }

  modeOf(agent: string): string | undefined {
    return this.#forgotten.has(agent)
      ? undefined
      : (this.#wanted.get(agent)?.mode ??
          this.#leases.newest(agent)?.metadata.annotations?.[wellKnown.agentModeAnnotation]);
  }

  managedLastSeen(agent: string): Date | undefined {
    return this.modeOf(agent) === 'managed' ? this.lastSeen(agent) : undefined;
  }

  lastSeen(agent: string): Date | undefined {
    const { metadata, spec } = this.#leases.newest(agent) ?? {};
    if (metadata?.annotations?.[connectionAnnotations.connected] === 'true') {
      // Its holder did not live to record the end.
      return this.#gone.get(spec?.holderIdentity ?? '') ?? this.#startedAt;
    }
    const at = spec?.renewTime ?? spec?.acquireTime;
    return at === undefined ? undefined : new Date(at);
  }

  forget(agent: string): void {
    if (this.modeOf(agent) !== undefined) {
      this.#forgotten.add(agent);
      this.#catchUps.forget(agent);
      this.#queue.add(agent);
    }
  }

  forgetAllBut(isMember: (agent: string) => boolean): void {
    for (const [agent] of this.#leases.entries()) {
      if (!isMember(agent)) {
        this.forget(agent);
      }
    }
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#queue.run(signal);
  }

  /** This replica was deposed: it holds nothing any more. Streams that are open want their agents again under the new identity. */
  deposed(): void {
    for (const agent of [...this.#serving]) {
      this.#options.lost(agent, cutOff);
      this.#stopServing(agent);
    }
    for (const wanted of this.#wanted.values()) {
      wanted.hasAsked = false;
    }
  }

  /** This replica cannot write for long already: agents had better go to another one. */
  stalled(): void {
    for (const agent of [...this.#wanted.keys()]) {
      this.#options.lost(agent, cutOff);
    }
  }

  /** This replica may write again: what waited for that goes on. */
  resumed(): void {
    for (const agent of this.#wanted.keys()) {
      if (!this.#serving.has(agent)) {
        this.#queue.add(agent);
      }
    }
  }

  /** A replica has come or gone, this one included. */
  replicaChanged(identity: string, isLive: boolean): void {
    if (!isLive) {
      this.#gone.set(identity, new Date());
    }
    for (const [agent] of this.#leases.entries()) {
      const isItsHolder = this.#leases.newest(agent)?.spec?.holderIdentity === identity;
      if (isItsHolder) {
        this.#review(agent);
      }
      if (isItsHolder && this.#wanted.has(agent)) {
        this.#queue.add(agent);
      } else if (isItsHolder && !isLive) {
        this.#queue.addAfter(agent, this.#options.graceMs ?? graceMs);
      }
    }
    if (identity === this.#options.self.identity && isLive) {
      this.resumed();
    }
  }

  /** This replica leads from now on, and records the ends that their holders could not; or it leads no more. */
  leadershipChanged(isLeader: boolean): void {
    for (const [agent, lease] of this.#leases.entries()) {
      this.#review(agent);
      if (isLeader && !this.#isHeld(lease)) {
        this.#queue.addAfter(agent, this.#options.graceMs ?? graceMs);
        this.#queue.add(agent);
      }
    }
  }

  /**
   * For a clean shutdown: stops serving, and resolves when nothing is written for any agent any more. This replica's Lease may be
   * deleted then, which frees all that it holds. {@link close} follows.
   */
  async end(): Promise<void> {
    this.#isClosing = true;
    this.#catchUps.close();
    for (const agent of [...this.#serving]) {
      this.#stopServing(agent);
    }
    await this.#options.fence.allQuiet();
  }

  /** Records the ends of the connections, except of agents that another replica has taken. */
  async close(timeoutMs = 10_000): Promise<void> {
    const { self, logger } = this.#options;
    const { identity } = self;
    const signal = timeoutSignal(timeoutMs);
    const failed: string[] = [];
    await Promise.all(
      Array.from(this.#leases.entries(), async ([agent]) => {
        const lease = this.#leases.newest(agent);
        if (lease?.spec?.holderIdentity !== identity) {
          return;
        }
        try {
          await this.#leases.write(agent, this.#ended(lease, agent), signal);
        } catch (error) {
          if (!isConflict(error) && !isNotFound(error)) {
            failed.push(agent);
          }
        }
      }),
    );
    if (failed.length > 0) {
      logger.warn({ agents: failed }, 'not recorded as disconnected');
    }
  }

  #seen(agent: string, lease: Lease): void {
    const { identity } = this.#options.self;
    const newest = this.#leases.newest(agent);
    if (newest?.metadata.annotations?.[wellKnown.agentModeAnnotation] === undefined) {
      this.#forgotten.delete(agent);
    }
    this.#review(agent);
    const isOurs = newest?.spec?.holderIdentity === identity;
    const asks = askerOf(lease);
    if (this.#wanted.has(agent) || isOurs || this.#serving.has(agent) || asks === identity) {
      this.#queue.add(agent);
    }
  }

  /** Tells those who follow `holderOf` of another answer. */
  #review(agent: string): void {
    const holder = this.holderOf(agent);
    if (typeof holder === 'object') {
      this.#catchUps.forget(agent);
    }
    const now = typeof holder === 'object' ? holder.identity : (holder ?? this.#leads.claim(agent));
    if ((this.#known.get(agent) ?? '') === now) {
      return;
    }
    if (now === '') {
      this.#known.delete(agent);
    } else {
      this.#known.set(agent, now);
    }
    this.#options.changed(agent);
  }

  #stopServing(agent: string): void {
    if (this.#serving.delete(agent)) {
      this.#options.released(agent);
      this.#review(agent);
    }
  }

  #isHeld({ spec }: Lease): boolean {
    return this.#options.replicas.has(spec?.holderIdentity ?? '');
  }

  /** Brings the agent's Lease to where it should be, as far as that is this replica's to do. */
  async #settle(agent: string): Promise<void> {
    for (let attempt = 0; attempt < attempts; attempt++) {
      const { self, replicas } = this.#options;
      if (this.#isClosing || !self.isCurrent || !replicas.has(self.identity)) {
        // Another look follows when this replica's Lease is renewed, or seen.
        return this.#isClosing ? undefined : this.#queue.addAfter(agent, 1_000);
      }
      const lease = this.#leases.newest(agent);
      try {
        const next = await this.#step(agent, lease);
        if (next === undefined) {
          return;
        }
        await this.#leases.write(agent, next);
        const to = next.spec?.holderIdentity ?? '';
        if (to !== '' && to !== self.identity && to !== lease?.spec?.holderIdentity) {
          this.#options.handedOver(agent, to);
        }
      } catch (error) {
        if (!isConflict(error) && !isNotFound(error) && !isAlreadyExists(error)) {
          throw error;
        }
        await this.#leases.refresh(agent);
      }
    }
    this.#queue.addAfter(agent, 100);
  }

  /** What is to be written now; undefined: nothing, or not by this replica. Serves the agent if all is written for that. */
  async #step(agent: string, lease: Lease | undefined): Promise<Lease | undefined> {
    const { self, replicas, fence } = this.#options;
    const { identity } = self;
    const wanted = this.#wanted.get(agent);
    const holder = lease?.spec?.holderIdentity ?? '';
    const asking = askerOf(lease);
    const isAskedFor = asking !== identity && replicas.has(asking);
    if (holder !== identity && this.#serving.has(agent)) {
      // Somebody has changed the Lease by hand.
      this.#lose(agent, 'another principal serves this agent');
      return undefined;
    }
    if (holder === identity) {
      if (isAskedFor) {
        this.#lose(agent, 'the agent has connected to another principal');
        await fence.quiet(agent);
        return handedOverHold(lease as Lease, asking);
      }
      if (wanted === undefined) {
        this.#stopServing(agent);
        await fence.quiet(agent);
        return this.#wanted.has(agent) ? this.#taken(agent, lease) : this.#ended(lease as Lease, agent);
      }
      const next = this.#taken(agent, lease);
      if (next !== undefined && !isSameHold(lease, next)) {
        // The cache may be behind, and the hold be given up: it is served when this has been written.
        return next;
      }
      if (this.#serving.has(agent) || this.#catchUps.ensure(agent, termOf(lease as Lease))) {
        this.#serve(agent);
      }
      return undefined;
    }
    if (holder !== '' && replicas.has(holder)) {
      return this.#ask(agent, lease as Lease, { wanted, asking, isAskedFor });
    }
    if (!(await replicas.isGone(holder))) {
      // It is alive, and the cache will show it.
      this.#queue.addAfter(agent, lookAgainMs());
      return undefined;
    }
    if (wanted !== undefined) {
      return this.#taken(agent, lease);
    }
    return this.#corrected(agent, lease);
  }

  /** Another live replica holds the agent. */
  #ask(
    agent: string,
    lease: Lease,
    { wanted, asking, isAskedFor }: { wanted: Wanted | undefined; asking: string; isAskedFor: boolean },
  ): Lease | undefined {
    const { identity } = this.#options.self;
    if (wanted === undefined) {
      return asking === identity ? withAsker(lease, undefined) : undefined;
    }
    if (asking === identity) {
      wanted.hasAsked = true;
      return undefined;
    }
    if (wanted.hasAsked) {
      // It was asked for by another one since, or handed to it: the agent has a newer connection.
      this.#lose(
        agent,
        isAskedFor ? 'the agent has connected to another principal' : 'another principal serves this agent',
      );
      return undefined;
    }
    if (isOfNewerConnection(lease, wanted)) {
      // The stream here waited, as in an outage of the API server, and its agent is gone without a word.
      this.#lose(agent, 'the agent has connected to another principal since');
      return undefined;
    }
    return withAsker(lease, identity);
  }

  /** The record of an agent that nobody holds, where it is not as it should be. */
  #corrected(agent: string, lease: Lease | undefined): Lease | undefined {
    if (lease === undefined || !this.isResponsible(agent)) {
      return undefined;
    }
    const { annotations } = lease.metadata;
    const holder = lease.spec?.holderIdentity ?? '';
    const goneAt = this.#gone.get(holder) ?? this.#startedAt;
    const isOver = Date.now() - goneAt.getTime() >= (this.#options.graceMs ?? graceMs);
    const isStale = annotations?.[connectionAnnotations.connected] !== 'false' && isOver;
    const isForgotten = this.#forgotten.has(agent) && annotations?.[wellKnown.agentModeAnnotation] !== undefined;
    return isStale || isForgotten ? this.#ended(lease, agent) : undefined;
  }

  #lose(agent: string, why: string): void {
    this.#wanted.delete(agent);
    this.#options.lost(agent, why);
    this.#stopServing(agent);
  }

  #serve(agent: string): void {
    if (!this.#serving.has(agent)) {
      this.#serving.add(agent);
      this.#options.held(agent);
      this.#review(agent);
    }
  }

  /** The Lease of an agent that this replica holds; undefined: there is no stream of it here. */
  #taken(agent: string, lease: Lease | undefined): Lease | undefined {
    const { self, namespace } = this.#options;
    const wanted = this.#wanted.get(agent);
    return wanted && takenHold(agent, namespace, lease, self.identity, wanted);
  }

  /** The Lease of an agent that nobody holds. */
  #ended(lease: Lease, agent: string): Lease {
    const isOurs = lease.spec?.holderIdentity === this.#options.self.identity;
    return endedHold(lease, isOurs ? new Date() : this.lastSeen(agent), this.#forgotten.has(agent));
  }
}
