import { type Application, annotations } from '../lib/argocd/index.ts';
import { hasResourcesFinalizer } from './argo-cd.ts';
import type { SimulatedCluster } from './cluster.ts';
import type { Layout } from './layout.ts';

const most = 5;

/**
 * The book of what Applications deployed. Argo CD removes that with an Application which has its finalizer when it is deleted;
 * nobody may bring that about but a user: by deleting this very Application on its cluster, or by taking the hub's, with the
 * finalizer, from this cluster. What a user took away without the finalizer leaves its workload behind.
 */
export class Workloads {
  readonly #agentOf: Layout['agentOf'];
  /** Which agent has each Application of the hub, by uid. */
  readonly #owners = new Map<string, string | undefined>();
  /** `agent/uid` of each Application of the hub that left an agent while it had the finalizer. */
  readonly #asked = new Set<string>();
  /** Which Applications of the hub each Application of a cluster was a copy of, by its uid. */
  readonly #sources = new Map<string, Set<string>>();
  /** Uids of Applications that users deleted where they deploy. */
  readonly #deletedByUsers = new Set<string>();
  readonly #problems = new Set<string>();
  #isUserActing = false;

  constructor(hub: SimulatedCluster, agentOf: Layout['agentOf']) {
    this.#agentOf = agentOf;
    hub.of('Application').watch(({ old, now }) => this.#hubChanged((now ?? old) as Application, now === undefined));
  }

  /** Workloads that were removed though nobody asked for that. */
  get problems(): string[] {
    return [...this.#problems].slice(0, most);
  }

  /** What happens now is what a user does. */
  byUser<R>(act: () => R): R {
    this.#isUserActing = true;
    try {
      return act();
    } finally {
      this.#isUserActing = false;
    }
  }

  /** Follows the Applications that deploy on this cluster. */
  follow(cluster: SimulatedCluster): void {
    cluster.of('Application').watch(({ old, now }) => {
      const { uid = '', annotations: marks, deletionTimestamp } = (now ?? old)?.metadata ?? { name: '' };
      const source = marks?.[annotations.sourceUid];
      if (source !== undefined) {
        this.#sources.set(uid, (this.#sources.get(uid) ?? new Set()).add(source));
      }
      if (this.#isUserActing && deletionTimestamp !== undefined && old?.metadata.deletionTimestamp === undefined) {
        this.#deletedByUsers.add(uid);
      }
    });
  }

  /** Argo CD on the agent's cluster removes what an Application deployed. */
  removed(agent: string, { metadata }: Application): void {
    const { uid = '', namespace, name } = metadata;
    const sources = [...(this.#sources.get(uid) ?? [])];
    if (!this.#deletedByUsers.has(uid) && !sources.some((source) => this.#asked.has(`${agent}/${source}`))) {
      this.#problems.add(
        `${agent}: the workload of ${namespace}/${name} (${uid}, copy of ${sources}) is removed unasked`,
      );
    }
  }

  #hubChanged(object: Application, isGone: boolean): void {
    const { uid = '', deletionTimestamp } = object.metadata;
    const before = this.#owners.get(uid);
    const owner = isGone || deletionTimestamp !== undefined ? undefined : this.#agentOf(object);
    this.#owners.set(uid, owner);
    if (before !== undefined && before !== owner && hasResourcesFinalizer(object)) {
      this.#asked.add(`${before}/${uid}`);
    }
  }
}
