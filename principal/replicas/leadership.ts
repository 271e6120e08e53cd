import { type Logger, wellKnown } from '../../lib/base/index.ts';
import {
  type Informer,
  isAlreadyExists,
  isConflict,
  isNotFound,
  type KubeClient,
  type Lease,
  leases,
  WorkQueue,
} from '../../lib/kube/index.ts';
import { type LiveReplicas, lookAgainMs } from './live-replicas.ts';
import type { ReplicaLease } from './replica-lease.ts';

/** The labels of the Lease that says which replica leads. */
export const leaderLabels = {
  [wellKnown.partOfLabel]: 'argocd-agent',
  'app.kubernetes.io/component': 'leader',
} as const;

const name = 'argocd-agent.leader';
const writeTimeoutMs = 2_000;

/** How a {@link Leadership} works. */
export interface LeadershipOptions {
  readonly client: Pick<KubeClient, 'get' | 'create' | 'replace'>;
  readonly namespace: string;
  readonly informer: Pick<Informer<Lease>, 'subscribe'>;
  readonly self: Pick<ReplicaLease, 'identity' | 'isCurrent'>;
  readonly replicas: Pick<LiveReplicas, 'has' | 'isGone'>;
  /** This replica leads from now on, or does not any more. */
  readonly changed: (isLeader: boolean) => void;
  readonly logger: Logger;
}

/**
 * Which replica does what is to be done for agents that nobody holds: the one in Lease `argocd-agent.leader`. Nobody renews that
 * Lease. It counts as long as its holder's own Lease is there, like the hold of an agent.
 */
export class Leadership {
  readonly #options: LeadershipOptions;
  readonly #queue: WorkQueue;
  #lease: Lease | undefined;
  #leads: string | undefined;

  constructor(options: LeadershipOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({
      name: 'leadership',
      handler: () => this.#take(),
      backoff: { initialMs: 100, maxMs: 2_000 },
      logger: options.logger,
    });
    const seen = (lease: Lease) => {
      if (lease.metadata.name === name) {
        this.#lease = lease;
        this.check();
      }
    };
    options.informer.subscribe({
      added: seen,
      updated: (_old, now) => seen(now),
      deleted: ({ metadata }) => {
        if (metadata.name === name) {
          this.#lease = undefined;
          this.check();
        }
      },
    });
  }

  get isLeader(): boolean {
    return this.#leads !== undefined && this.#leads === this.#options.self.identity;
  }

  /** A replica has gone, or this one lives under a new identity. */
  check(): void {
    this.#settle();
    this.#queue.add('leader');
  }

  /** Takes the lead whenever nobody has it, until aborted. */
  run(signal: AbortSignal): Promise<void> {
    return this.#queue.run(signal);
  }

  async #take(): Promise<void> {
    const { client, namespace, self, replicas } = this.#options;
    const { identity } = self;
    const holder = this.#lease?.spec?.holderIdentity ?? '';
    const last = this.#lease;
    if (!self.isCurrent || !replicas.has(identity) || holder === identity || replicas.has(holder)) {
      return;
    }
    if (!(await replicas.isGone(holder))) {
      this.#queue.addAfter('leader', lookAgainMs());
      return;
    }
    const signal = AbortSignal.timeout(writeTimeoutMs);
    const spec = { holderIdentity: identity, leaseTransitions: (last?.spec?.leaseTransitions ?? -1) + 1 };
    try {
      this.#lease =
        last === undefined
          ? await client.create(leases, { metadata: { namespace, name, labels: leaderLabels }, spec }, { signal })
          : await client.replace(leases, { ...last, spec }, { signal });
    } catch (error) {
      if (!isConflict(error) && !isAlreadyExists(error) && !isNotFound(error)) {
        throw error;
      }
      // Another one was faster, and the cache is behind.
      this.#lease = await client.get(leases, { namespace, name }, signal);
      this.#queue.addAfter('leader', 100);
    }
    this.#settle();
  }

  #settle(): void {
    const { self, changed, logger } = this.#options;
    const before = this.#leads;
    const holder = this.#lease?.spec?.holderIdentity;
    this.#leads = holder === self.identity ? holder : undefined;
    if (before === this.#leads) {
      return;
    }
    if (this.#leads !== undefined) {
      logger.info({ identity: self.identity }, 'this replica is responsible for agents that are not connected');
    }
    changed(this.isLeader);
  }
}
