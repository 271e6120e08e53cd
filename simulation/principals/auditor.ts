import type { Lease } from '../../lib/kube/index.ts';
import { longestWriteMs, replicaAnnotations, replicaLabels } from '../../principal/replicas/index.ts';
import { type Audit, type ExecutedWrite, principalNamespace, type Scene } from '../index.ts';

/** As the flags have them by default. */
export const replicaTiming = { renewMs: 1_000, deadlineMs: 3_000, durationMs: 5_000 };

/** What is to be known of a replica whose writes are seen. */
export interface AuditedReplica {
  readonly identity: string;
  readonly pod: string;
  /** It ended without having time for anything. */
  readonly wasKilled: boolean;
  /** Whether it sees that another one holds the agent. */
  leavesToOther(agent: string): boolean;
  /** An object of the agent's that it knows in an older state than it had at this version of the hub; undefined: none is. */
  lacks(agent: string, version: number): string | undefined;
}

const component = 'app.kubernetes.io/component';
/** A write that took longer was stuck: its replica has given it up, and another one may have the agent. */
const longestFlightMs = longestWriteMs(replicaTiming);

/** Who is entitled to write for an agent. */
interface Hold {
  readonly holder: string;
  readonly term: number;
}

/**
 * Sees every write of every replica as the hub's API server executes it, knows who holds which agent at that moment, and notes
 * each write that its replica was not entitled to.
 */
export class Auditor {
  readonly #scene: Scene;
  readonly #violations = new Set<string>();
  /** When each replica's Lease was written last. */
  readonly #renewedAt = new Map<string, number>();
  /** The version of the hub at which the term of each Lease of an agent began. */
  readonly #termsBeganAt = new Map<string, number>();
  readonly #armed = new Map<AuditedReplica, () => void>();
  #renewals = 0;

  constructor(scene: Scene) {
    this.#scene = scene;
    scene.hub.of('Lease').watch(({ old, now }) => {
      if (now !== undefined) {
        this.#renewedAt.set(now.metadata.name, scene.time.now());
        if ((old as Lease | undefined)?.spec?.leaseTransitions !== (now as Lease).spec?.leaseTransitions) {
          this.#termsBeganAt.set(now.metadata.name, scene.hub.version);
        }
      }
      if (old !== undefined && now?.metadata.labels?.[component] === replicaLabels[component]) {
        this.#renewals++;
      }
    });
  }

  /** What replicas did and may not do. */
  get violations(): string[] {
    return [...this.#violations];
  }

  /** Writes by which replicas showed that they live. */
  get renewals(): number {
    return this.#renewals;
  }

  /** Who holds an agent, if that replica lives. */
  holdOf(agent: string): Hold {
    const lease = this.#lease(`argocd-agent-${agent}`);
    const holder = lease?.spec?.holderIdentity ?? '';
    return { holder: this.#lives(holder) ? holder : '', term: lease?.spec?.leaseTransitions ?? 0 };
  }

  /** Who does what is to be done for agents that nobody holds. */
  get leader(): string {
    const holder = this.#lease('argocd-agent.leader')?.spec?.holderIdentity ?? '';
    return this.#lives(holder) ? holder : '';
  }

  /** Calls back when the replica sends its next write for an agent. */
  atNextWrite(replica: AuditedReplica, run: () => void): void {
    this.#armed.set(replica, run);
  }

  /** The replica is about to serve the agent. */
  attaches(replica: AuditedReplica, agent: string): void {
    const { holder } = this.holdOf(agent);
    if (holder !== replica.identity) {
      this.#note(`${replica.identity} serves ${agent}, which ${nameOf(holder)} holds`);
    }
    const lacking = replica.lacks(agent, this.#termsBeganAt.get(`argocd-agent-${agent}`) ?? 0);
    if (lacking !== undefined) {
      this.#note(`${replica.identity} serves ${agent} and knows ${lacking} as it was before its term`);
    }
  }

  /**
   * Of writes for agents.
   * @param seenOwnerOf whose an object is for replicas that do not serve its agent
   */
  ofObjects<T>(
    replica: AuditedReplica,
    ownerOf: (object: T) => string | undefined,
    seenOwnerOf: (object: T) => string | undefined = ownerOf,
  ): Audit<T> {
    return () => {
      const { identity } = replica;
      const sentAt = this.#scene.time.now();
      this.#armed.get(replica)?.();
      this.#armed.delete(replica);
      const leader = this.leader;
      const holds = new Map(this.#scene.sites.map(({ name }) => [name, this.holdOf(name)]));
      const others = new Set(this.#scene.sites.flatMap(({ name }) => (replica.leavesToOther(name) ? [name] : [])));
      return (write) => {
        const agent = ownerOf(write.object);
        const known = agent === undefined ? undefined : holds.get(agent);
        const isStuck = this.#scene.time.now() - sentAt > longestFlightMs && (write.hasVersion || write.wasCalledOff);
        // The next process of a pod does not wait for what the killed one has sent. It overwrites nothing.
        const isLeft = replica.wasKilled && !this.#lives(identity) && (write.hasVersion || write.action === 'create');
        // A mirror without its mark is nobody's for the leader, which changes nothing on it that it has not seen.
        const isSeenAsNobodys = write.hasVersion && seenOwnerOf(write.object) === undefined;
        const knewHolder = agent !== undefined && others.has(agent) && !isSeenAsNobodys;
        if (!isStuck && !isLeft) {
          this.#check(identity, agent, { known, leader, knewHolder, isSeenAsNobodys }, write);
        }
      };
    };
  }

  /** Of writes of Leases. */
  ofLeases(replica: AuditedReplica): Audit<{ readonly metadata: { readonly name: string } }> {
    return () => {
      const { identity } = replica;
      return ({ action, object, before: was }) => {
        const lease = object as Lease;
        const { name } = lease.metadata;
        if (lease.metadata.labels?.[component] === replicaLabels[component]) {
          this.#checkDeposing(replica, action, lease);
          return;
        }
        this.#checkHold(identity, name, (was as Lease | undefined)?.spec, this.#lease(name)?.spec);
      };
    };
  }

  /** A live holder alone gives its hold away, and each holder has a term of its own. */
  #checkHold(identity: string, name: string, before: Lease['spec'], now: Lease['spec']): void {
    const [from = '', to = ''] = [before?.holderIdentity, now?.holderIdentity];
    if (from === to) {
      return;
    }
    if (from !== identity && this.#lives(from)) {
      this.#note(`${identity} gives ${name} to ${nameOf(to)} while ${from} lives and holds it`);
    }
    if (to !== '' && (now?.leaseTransitions ?? 0) <= (before?.leaseTransitions ?? -1)) {
      this.#note(`${name} has a new holder, ${to}, in an old term, ${now?.leaseTransitions}`);
    }
  }

  #check(
    identity: string,
    agent: string | undefined,
    sent: {
      readonly known: Hold | undefined;
      readonly leader: string;
      readonly knewHolder: boolean;
      readonly isSeenAsNobodys: boolean;
    },
    { action, object, hasVersion }: ExecutedWrite<unknown>,
  ): void {
    const { name } = (object as { metadata: { name: string } }).metadata;
    const what = `${identity} has executed: ${action} ${name} of ${agent ?? 'no agent'}`;
    const now = agent === undefined ? { holder: '', term: 0 } : this.holdOf(agent);
    if (!this.#lives(identity)) {
      this.#note(`${what}, after it was deposed`);
    } else if (sent.known?.holder === identity) {
      const isStill = now.holder === identity && now.term === sent.known.term;
      // What is nobody's is the leader's, whether it holds the agent of that namespace or not.
      if (!isStill && !(sent.isSeenAsNobodys && sent.leader === identity)) {
        this.#note(`${what}, in term ${sent.known.term}, but ${nameOf(now.holder)} holds it in term ${now.term}`);
      }
    } else if (sent.leader !== identity) {
      this.#note(`${what}, which ${nameOf(now.holder)} holds, but ${nameOf(sent.leader)} leads`);
    } else if (sent.knewHolder) {
      this.#note(`${what}, which it knew to be another one's`);
    } else if (now.holder !== '' && now.holder !== identity && !hasVersion && action !== 'create') {
      // It will see that somebody holds the agent by now. Until then it overwrites and deletes nothing that it has not seen.
      this.#note(`${what}, as its leader, but ${now.holder} holds it by now`);
    }
  }

  /** A replica is deposed that has not renewed its Lease for its duration, or whose container has another process by now. */
  #checkDeposing({ identity, pod }: AuditedReplica, action: string, { metadata, spec }: Lease): void {
    const ms = Math.round(this.#scene.time.now() - (this.#renewedAt.get(metadata.name) ?? 0));
    const isFormer = metadata.annotations?.[replicaAnnotations.pod] === pod;
    if (action === 'delete' && spec?.holderIdentity !== identity && !isFormer && ms < replicaTiming.durationMs) {
      this.#note(`${identity} deposes ${spec?.holderIdentity}, which renewed its Lease ${ms} ms ago`);
    }
  }

  #lives(identity: string): boolean {
    return identity !== '' && this.#lease(`argocd-agent.replica-${suffixOf(identity)}`) !== undefined;
  }

  #lease(name: string): Lease | undefined {
    return this.#scene.hub.of('Lease').get({ namespace: principalNamespace, name }) as Lease | undefined;
  }

  #note(violation: string): void {
    this.#scene.trace(`VIOLATION ${violation}`);
    if (this.#violations.size < 5) {
      this.#violations.add(violation);
    }
  }
}

function suffixOf(identity: string): string {
  return identity.slice(identity.lastIndexOf('_') + 1);
}

function nameOf(holder: string): string {
  return holder === '' ? 'nobody' : holder;
}
