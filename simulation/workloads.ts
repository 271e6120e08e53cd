import { hasResourcesFinalizer } from '../e2e/application-controller/rules.ts';
import { WorkloadBook } from '../e2e/application-controller/workloads.ts';
import type { Application } from '../lib/argocd/index.ts';
import type { SimulatedCluster } from './cluster.ts';
import type { Layout } from './layout.ts';

const most = 5;

/** Keeps a {@link WorkloadBook} of what happens in a history, and holds the simulated Argo CD to it. */
export class Workloads {
  readonly #agentOf: Layout['agentOf'];
  /** Which agent has each Application of the hub, by uid. */
  readonly #owners = new Map<string, string | undefined>();
  readonly #book = new WorkloadBook();
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

  /** Whether what happens now is what a user does. */
  get isUserActing(): boolean {
    return this.#isUserActing;
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
      const object = (now ?? old) as Application;
      this.#book.follow(object);
      const { uid = '', deletionTimestamp } = object.metadata;
      if (this.#isUserActing && deletionTimestamp !== undefined && old?.metadata.deletionTimestamp === undefined) {
        this.#book.deleted(uid);
      }
    });
  }

  /** Argo CD on the agent's cluster removes what an Application deployed. */
  removed(agent: string, { metadata }: Application): void {
    const { uid = '', namespace, name } = metadata;
    if (!this.#book.isAsked(agent, uid)) {
      this.#problems.add(
        `${agent}: the workload of ${namespace}/${name} (${uid}, copy of ${this.#book.sourcesOf(uid)}) is removed unasked`,
      );
    }
  }

  #hubChanged(object: Application, isGone: boolean): void {
    const { uid = '', deletionTimestamp } = object.metadata;
    const before = this.#owners.get(uid);
    const owner = isGone || deletionTimestamp !== undefined ? undefined : this.#agentOf(object);
    this.#owners.set(uid, owner);
    if (before !== undefined && before !== owner && hasResourcesFinalizer(object)) {
      this.#book.ask(before, uid);
    }
  }
}
