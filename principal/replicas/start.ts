import { hostname } from 'node:os';
import type { Registry } from 'prom-client';
import { becomes, type Logger } from '../../lib/base/index.ts';
import type { Informer, KubeClient, Lease, WorkQueueObserver } from '../../lib/kube/index.ts';
import { AgentHolds } from './agent-holds.ts';
import type { CatchUpsOptions } from './catch-ups.ts';
import type { Peer, ReplicaDirectory } from './directory.ts';
import { Leadership } from './leadership.ts';
import { LiveReplicas } from './live-replicas.ts';
import { type ReplicaMetrics, replicaMetrics } from './metrics.ts';
import { rebalance } from './rebalance.ts';
import { longestWriteMs, ReplicaLease, type ReplicaTiming } from './replica-lease.ts';
import { WriteFence } from './write-fence.ts';

/** What the engine does when something changes between replicas. */
export interface ReplicaListener {
  /** This replica holds the agent from now on. */
  held(agent: string): void;
  /** The agent's session must end now. */
  lost(agent: string, why: string): void;
  /** Nothing must be done for the agent here any more. */
  released(agent: string): void;
  /** Who holds the agent, or who is responsible for it, has changed. */
  changed(agent: string): void;
  /** This replica is responsible from now on for agents that nobody holds, or is so no more. */
  leadershipChanged(isLeader: boolean): void;
}

/** How this process becomes one of several principals. */
export interface StartReplicasOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  /** The Leases of replicas, agents and the leader; not filled yet. */
  readonly informer: Informer<Lease>;
  readonly timing: ReplicaTiming;
  /** See {@link CatchUpsOptions.caughtUp}, and how long to wait for it: for tests. */
  readonly caughtUp: CatchUpsOptions['caughtUp'];
  readonly catchUpMs?: number | undefined;
  /** `host:port` at which other replicas reach this one, and the fingerprint of its certificate; empty: they do not. */
  readonly address: string;
  readonly fingerprint: string;
  /** This program's version, for those who look at the replica's Lease. */
  readonly version: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** A name that no process ever had. Default: a random one. */
  readonly newName?: (() => string) | undefined;
  readonly registry: Registry;
  readonly observer?: WorkQueueObserver | undefined;
  /** Looks at the spread of agents in a row: for tests. */
  readonly rebalancing?: { readonly lookMs: number; readonly patience: number } | undefined;
  readonly logger: Logger;
}

/** This process as one of several principals. */
export class Replicas {
  readonly directory: ReplicaDirectory;
  readonly holds: AgentHolds;
  readonly fence: WriteFence;
  readonly #lease: ReplicaLease;
  readonly #live: LiveReplicas;
  readonly #leadership: Leadership;
  readonly #options: StartReplicasOptions;
  readonly #followers = new Set<(agent: string) => void>();
  readonly #onPeers = new Set<() => void>();
  readonly #onCutOff = new Set<(why: string) => void>();
  #listener: ReplicaListener | undefined;
  #tellDeposed: ((peer: Peer) => void) | undefined;

  constructor(options: StartReplicasOptions) {
    const { client, namespace, informer, timing, address, fingerprint, version, env, logger } = options;
    this.#options = options;
    const pod = env.POD_NAME || undefined;
    const common = { client, namespace, informer, timing, logger };
    const metrics: ReplicaMetrics = replicaMetrics(options.registry, {
      agents: () => this.holds.serving.size,
      live: () => this.#live.size,
      isLeader: () => this.#leadership.isLeader,
      isCurrent: () => this.#lease.isCurrent,
    });
    this.#lease = new ReplicaLease({
      ...common,
      newName: options.newName,
      description: { pod, host: pod ?? hostname(), address, fingerprint, version },
      suspended: () =>
        logger.warn(
          { replica: this.#lease.identity, deadlineMs: timing.deadlineMs },
          'this replica cannot renew its Lease: it writes nothing until it can',
        ),
      stalled: (isDeposed) => {
        logger.warn(
          { replica: this.#lease.identity, isDeposed },
          'this replica is cut off from the API server and sends its agents away',
        );
        this.holds.stalled();
        const { cutOff } = this;
        if (cutOff !== undefined) {
          for (const listener of this.#onCutOff) {
            listener(cutOff);
          }
        }
      },
      resumed: (ms) => {
        if (ms !== undefined) {
          metrics.suspended(ms / 1_000);
          logger.info({ replica: this.#lease.identity, suspendedMs: Math.round(ms) }, 'this replica writes again');
        }
        this.holds.resumed();
        this.#leadership.check();
      },
      deposed: () => {
        metrics.deposed();
        this.holds.deposed();
      },
      started: () => logger.info({ replica: this.#lease.identity, lease: this.#lease.name }, 'this replica is alive'),
    });
    this.fence = new WriteFence({
      lease: this.#lease,
      mayWrite: (agent) => this.holds.mayWrite(agent),
      timeoutMs: longestWriteMs(timing),
    });
    let holds: AgentHolds | undefined;
    let leadership: Leadership | undefined;
    this.#live = new LiveReplicas({
      ...common,
      self: this.#lease,
      pod,
      changed: (identity, isLive) => {
        holds?.replicaChanged(identity, isLive);
        leadership?.check();
        for (const look of this.#onPeers) {
          look();
        }
      },
      deposed: (peer) => {
        metrics.deposedOther();
        this.#tellDeposed?.(peer);
      },
    });
    this.holds = new AgentHolds({
      ...common,
      self: this.#lease,
      replicas: this.#live,
      isLeader: () => leadership?.isLeader === true,
      fence: this.fence,
      caughtUp: options.caughtUp,
      catchUpMs: options.catchUpMs,
      held: (agent) => this.#listener?.held(agent),
      lost: (agent, why) => this.#listener?.lost(agent, why),
      released: (agent) => this.#listener?.released(agent),
      handedOver: (agent, to) => {
        metrics.handedOver();
        logger.info({ agent, replica: to }, 'the agent was handed over to another replica');
      },
      changed: (agent) => this.#changed(agent),
      observer: options.observer,
    });
    holds = this.holds;
    this.#leadership = new Leadership({
      ...common,
      self: this.#lease,
      replicas: this.#live,
      changed: (isLeader) => {
        this.holds.leadershipChanged(isLeader);
        this.#listener?.leadershipChanged(isLeader);
      },
    });
    leadership = this.#leadership;
    const identity = () => this.#lease.identity;
    this.directory = {
      get identity() {
        return identity();
      },
      holderOf: (agent) => this.holds.holderOf(agent),
      peers: () => this.#live.peers(),
      subscribe: (changed) => {
        this.#followers.add(changed);
        return () => this.#followers.delete(changed);
      },
    };
  }

  /** Whether this replica, and no other one, does what is to be done for the agent; undefined: for what is no agent's. */
  isResponsible(agent: string | undefined): boolean {
    return this.holds.isResponsible(agent);
  }

  /** Why whoever is connected had better connect to another replica; undefined if they need not. */
  get cutOff(): string | undefined {
    return this.holds.cutOff;
  }

  /** Has the listener called whenever {@link cutOff} gets a reason, until the returned function is called. */
  onCutOff(listener: (why: string) => void): () => void {
    this.#onCutOff.add(listener);
    return () => this.#onCutOff.delete(listener);
  }

  /** Reports to the engine from now on. Call it before `run`. */
  follow(listener: ReplicaListener): void {
    this.#listener = listener;
  }

  /** How a replica is told, from now on, that this one has deposed it. */
  tellDeposedBy(tell: (peer: Peer) => void): void {
    this.#tellDeposed = tell;
  }

  /** Another replica says that it has deposed the one of this identity. */
  toldDeposed(identity: string): void {
    this.#lease.toldDeposed(identity);
  }

  /** Resolves when no other replica lives any more, true, or after `ms` or when aborted, false. */
  alone(ms: number, signal: AbortSignal): Promise<boolean> {
    return becomes(
      () => this.#live.peers().length === 0,
      (look) => {
        this.#onPeers.add(look);
        return () => this.#onPeers.delete(look);
      },
      ms,
      signal,
    );
  }

  /** Lives until aborted: renews the Lease, watches the other replicas, takes and gives agents. */
  async run(signal: AbortSignal): Promise<void> {
    const { logger, rebalancing } = this.#options;
    await Promise.all([
      this.#lease.run(signal),
      this.#live.run(signal),
      this.holds.run(signal),
      this.#leadership.run(signal),
      rebalance(
        {
          serving: () => this.holds.serving,
          held: () => this.holds.held,
          live: () => this.#live.size,
          send: (agent) => this.#listener?.lost(agent, 'another principal has fewer agents: connect again'),
          logger,
          ...rebalancing,
        },
        signal,
      ),
    ]);
  }

  /** After `run`, when the agents' streams have ended: frees what this replica holds, and records the ends of the connections. */
  async close(): Promise<void> {
    await this.holds.end();
    await this.#lease.release(AbortSignal.timeout(5_000));
    await this.holds.close();
  }

  #changed(agent: string): void {
    this.#listener?.changed(agent);
    for (const follower of this.#followers) {
      follower(agent);
    }
  }
}
