import { type ClusterFacts, certificateTerms, clusterStates, type ShownState, unhealthyOf } from './cluster-facts.ts';
import type { FleetCluster, FleetModel } from './fleet-model.ts';

/** Sums over the clusters that a lens shows. */
export interface FleetTotals {
  readonly clusters: number;
  readonly states: ReadonlyMap<string, number>;
  readonly versions: ReadonlyMap<string, number>;
  readonly modes: ReadonlyMap<string, number>;
  readonly terms: ReadonlyMap<string, number>;
  readonly health: ReadonlyMap<string, number>;
  readonly sync: ReadonlyMap<string, number>;
  readonly applications: number;
  readonly unhealthy: number;
  readonly pending: number;
}

/** Receives changes of {@link FleetLens}. */
export interface LensListener {
  /** Clusters that the lens shows have come, changed or gone. */
  changed(agents: ReadonlySet<string>): void;
  sampled(): void;
  /** The rights of viewers have changed, and not which clusters they may see. */
  rightsChanged?(): void;
  /** There will be no more changes. */
  closed(): void;
}

/**
 * The part of the fleet that some viewers may see, with sums that follow each change of a cluster without looking at the
 * others. Viewers with the same rights share one.
 */
export class FleetLens {
  readonly #model: FleetModel;
  readonly #sees: (agent: string) => boolean;
  readonly #shown = new Map<string, FleetCluster>();
  readonly #byState = new Map<ShownState, Set<string>>();
  readonly #sums = {
    states: new Map<string, number>(),
    versions: new Map<string, number>(),
    modes: new Map<string, number>(),
    terms: new Map<string, number>(),
    health: new Map<string, number>(),
    sync: new Map<string, number>(),
  };
  readonly #listeners = new Set<LensListener>();
  readonly #unsubscribe: () => void;
  /** Whether it shows every cluster, and so the figures of the whole fleet as well. */
  readonly isWhole: boolean;
  #applications = 0;
  #unhealthy = 0;
  #pending = 0;
  #totals: FleetTotals | undefined;

  /** What views have made of the sums; emptied when these change. */
  readonly rendered = new Map<string, string>();

  constructor(model: FleetModel, options: { isWhole: boolean; sees: (agent: string) => boolean }) {
    this.#model = model;
    this.#sees = options.sees;
    this.isWhole = options.isWhole;
    for (const agent of model.clusters().keys()) {
      this.#refresh(agent);
    }
    this.#unsubscribe = model.subscribe({
      changed: (agents) => this.#changed(agents),
      sampled: () => {
        this.rendered.clear();
        for (const listener of this.#listeners) {
          listener.sampled();
        }
      },
    });
  }

  get model(): FleetModel {
    return this.#model;
  }

  /** The cluster, if it is shown. */
  get(agent: string): FleetCluster | undefined {
    return this.#shown.get(agent);
  }

  /** All clusters that are shown. */
  clusters(): IterableIterator<FleetCluster> {
    return this.#shown.values();
  }

  get totals(): FleetTotals {
    this.#totals ??= {
      clusters: this.#shown.size,
      ...this.#sums,
      applications: this.#applications,
      unhealthy: this.#unhealthy,
      pending: this.#pending,
    };
    return this.#totals;
  }

  /** Clusters that are not ready, the worst states first and in each the longest known, up to a number. */
  troubled(most: number): ClusterFacts[] {
    const found: ClusterFacts[] = [];
    for (const state of clusterStates) {
      for (const agent of state === 'ready' || state === 'waiting' ? [] : (this.#byState.get(state) ?? [])) {
        const cluster = this.#shown.get(agent);
        if (cluster !== undefined) {
          found.push(cluster.facts);
        }
        if (found.length === most) {
          return found;
        }
      }
    }
    return found;
  }

  subscribe(listener: LensListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Whether it shows the clusters that may be seen now. */
  isCurrent(): boolean {
    return [...this.#model.clusters().keys()].every((agent) => this.#sees(agent) === this.#shown.has(agent));
  }

  /** Tells listeners that rights have changed and that it is current. */
  rightsChanged(): void {
    for (const listener of this.#listeners) {
      listener.rightsChanged?.();
    }
  }

  close(): void {
    this.#unsubscribe();
    for (const listener of this.#listeners) {
      listener.closed();
    }
    this.#listeners.clear();
  }

  #changed(agents: ReadonlySet<string>): void {
    const seen = new Set([...agents].filter((agent) => this.#refresh(agent)));
    if (seen.size === 0) {
      return;
    }
    this.rendered.clear();
    this.#totals = undefined;
    for (const listener of this.#listeners) {
      listener.changed(seen);
    }
  }

  /** Whether the cluster is shown, or was. */
  #refresh(agent: string): boolean {
    const before = this.#shown.get(agent);
    const found = this.#model.get(agent);
    const now = found !== undefined && this.#sees(agent) ? found : undefined;
    if (before !== undefined) {
      this.#count(before.facts, -1);
    }
    if (now !== undefined) {
      this.#shown.set(agent, now);
      this.#count(now.facts, 1);
    } else {
      this.#shown.delete(agent);
    }
    if (before?.facts.state !== now?.facts.state) {
      this.#byState.get(before?.facts.state ?? 'ready')?.delete(agent);
      if (now !== undefined) {
        const { state } = now.facts;
        const set = this.#byState.get(state) ?? new Set();
        this.#byState.set(state, set.add(agent));
      }
    }
    return before !== undefined || now !== undefined;
  }

  #count(facts: ClusterFacts, by: 1 | -1): void {
    const { states, versions, modes, terms, health, sync } = this.#sums;
    add(states, facts.state, by);
    add(versions, facts.version, by);
    add(modes, facts.mode, by);
    add(terms, facts.term, by);
    for (const [name, count] of Object.entries(facts.applications.health)) {
      add(health, name, by * count);
    }
    for (const [name, count] of Object.entries(facts.applications.sync)) {
      add(sync, name, by * count);
    }
    this.#applications += by * facts.applications.total;
    this.#unhealthy += by * unhealthyOf(facts.applications);
    this.#pending += by * facts.pending;
  }
}

function add(sums: Map<string, number>, name: string, by: number): void {
  const now = (sums.get(name) ?? 0) + by;
  if (now === 0) {
    sums.delete(name);
  } else {
    sums.set(name, now);
  }
}

/** The number of clusters whose certificate has ended, or ends and should have been replaced before. */
export function lateCertificates({ terms }: FleetTotals): number {
  const [expired, overdue] = certificateTerms;
  return (terms.get(expired) ?? 0) + (terms.get(overdue) ?? 0);
}
