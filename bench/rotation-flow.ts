import type { RunningFleet } from '../e2e/fleet/index.ts';
import { Informer, type KubeObject, type ResourceType } from '../lib/kube/index.ts';

const namespace = 'argocd';
const perCluster = 8;

/** What is changed on the hub and watched on the managed clusters. */
export interface FlowKind<T extends KubeObject> {
  readonly what: string;
  readonly type: ResourceType<T>;
  /** Leaves out objects of others. */
  readonly labelSelector?: string;
  make(key: { namespace: string; name: string }, cluster: string): T;
  /** The patch that gives an object this revision. */
  patch(revision: string): object;
  revisionOf(object: T): string | undefined;
}

/** How a phase went for one way. */
export interface PhaseFigures {
  readonly phase: string;
  /** From the write on the hub to the news on the cluster, in milliseconds. */
  readonly delays: readonly number[];
  /** Between two arrivals on one cluster, in milliseconds. */
  readonly longestGap: number;
}

/** Changes of objects on their way from the hub to the clusters. */
export class Flow<T extends KubeObject> {
  readonly #fleet: RunningFleet;
  readonly #way: FlowKind<T>;
  readonly #waiting = new Map<string, { revision: string; begin: number; arrived: (at: number) => void }>();
  /** By phase and cluster. */
  readonly #arrivals = new Map<string, Map<string, { at: number; delay: number }[]>>();
  /** What the arrivals from now on are counted under. */
  phase = 'before';
  sent = 0;

  private constructor(fleet: RunningFleet, way: FlowKind<T>) {
    this.#fleet = fleet;
    this.#way = way;
  }

  /** Makes the objects, and waits until all of them are on their clusters. */
  static async open<T extends KubeObject>(
    fleet: RunningFleet,
    way: FlowKind<T>,
    signal: AbortSignal,
  ): Promise<Flow<T>> {
    const flow = new Flow(fleet, way);
    const { type, labelSelector } = way;
    for (const [name, { cluster }] of fleet.members) {
      const informer = new Informer<T>({ client: cluster.client, type, ...(labelSelector ? { labelSelector } : {}) });
      void informer.run(signal);
      await informer.synced();
      const look = (object: T) => flow.#arrived(name, object);
      informer.subscribe({ added: look, updated: (_, now) => look(now) });
    }
    for (const cluster of fleet.members.keys()) {
      for (let i = 0; i < perCluster; i++) {
        await fleet.hub.client.create(type, way.make({ namespace, name: nameOf(cluster, i) }, cluster));
        await flow.change(cluster, i, 'first');
      }
    }
    flow.#arrivals.clear();
    flow.sent = 0;
    return flow;
  }

  /** Makes changes at a rate; of one object the next when the last has arrived. Resolves when all have. */
  async run(count: number, rate: number): Promise<void> {
    const lanes = [...this.#fleet.members.keys()].flatMap((cluster) =>
      Array.from({ length: perCluster }, (_, i) => ({ cluster, i })),
    );
    const begin = performance.now();
    let next = 0;
    await Promise.all(
      lanes.map(async ({ cluster, i }) => {
        for (let turn = next++; turn < count; turn = next++) {
          const due = begin + (turn * 1_000) / rate - performance.now();
          if (due > 0) {
            await new Promise((resolve) => setTimeout(resolve, due));
          }
          await this.change(cluster, i, `r${turn}`);
        }
      }),
    );
  }

  async reached(count: number): Promise<void> {
    while (this.sent < count) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Makes one change; resolves when it is on the cluster. */
  async change(cluster: string, i: number, revision: string): Promise<number> {
    const name = nameOf(cluster, i);
    const { promise, resolve } = Promise.withResolvers<number>();
    const begin = performance.now();
    this.#waiting.set(name, { revision, begin, arrived: resolve });
    await this.#fleet.hub.client.mergePatch(this.#way.type, { namespace, name }, this.#way.patch(revision));
    this.sent += 1;
    return promise;
  }

  get figures(): PhaseFigures[] {
    return [...this.#arrivals].map(([phase, clusters]) => {
      const lists = [...clusters.values()];
      const gaps = lists.flatMap((list) => list.slice(1).map(({ at }, i) => at - (list[i]?.at ?? at)));
      return { phase, delays: lists.flat().map(({ delay }) => delay), longestGap: Math.max(...gaps) };
    });
  }

  get what(): string {
    return this.#way.what;
  }

  #arrived(cluster: string, object: T): void {
    const { name } = object.metadata;
    const found = this.#waiting.get(name);
    if (found === undefined || this.#way.revisionOf(object) !== found.revision) {
      return;
    }
    const now = performance.now();
    this.#waiting.delete(name);
    const delay = now - found.begin;
    const clusters = this.#arrivals.get(this.phase) ?? new Map<string, { at: number; delay: number }[]>();
    clusters.set(cluster, [...(clusters.get(cluster) ?? []), { at: now, delay }]);
    this.#arrivals.set(this.phase, clusters);
    found.arrived(delay);
  }
}

const nameOf = (cluster: string, i: number) => `${cluster}-app-${i}`;
