import { isDeepStrictEqual } from 'node:util';
import { type ClusterFacts, type ClusterSigns, clusterFacts } from './cluster-facts.ts';
import { FigureHistory } from './history.ts';

/** What {@link FleetModel} asks about agents. Nothing of it may take long. */
export interface FleetSources {
  /** The agents of the fleet: those with a cluster Secret. */
  agents(): Iterable<string>;
  /** What is known about an agent; undefined when it is not in the fleet. */
  signs(agent: string): Omit<ClusterSigns, 'pendingSince' | 'refused'> | undefined;
  /** Messages that went to agents and came from them, since the start. */
  messages(): Promise<number>;
}

/** A cluster with what was made of it. */
export interface FleetCluster {
  readonly facts: ClusterFacts;
  /** The number of the change that made it so. */
  readonly revision: number;
  /** Resources that were out of step, in the last hour. */
  readonly lag: FigureHistory;
  /** What views have made of this revision. */
  readonly rendered: Map<string, string>;
}

/** Receives changes of {@link FleetModel}. */
export interface FleetListener {
  /** Clusters have come, changed or gone, by agent. */
  changed(agents: ReadonlySet<string>): void;
  /** The history has one more value. */
  sampled(): void;
}

/** Changes that come faster are shown together. */
const gatherMs = 100;
const mostRefusals = 1_000;
/** Clusters that left are remembered for viewers that come back; who was away longer loads the page anew. */
const mostDepartures = 1_000;

/**
 * The fleet as the page shows it: facts about each cluster, made anew when something about it changes. Listeners hear of
 * changes at most ten times a second, and at once after a pause.
 */
export class FleetModel {
  readonly #sources: FleetSources;
  readonly #now: () => Date;
  readonly #clusters = new Map<string, FleetCluster>();
  readonly #refused = new Map<string, { message: string; at: Date }>();
  readonly #pendingSince = new Map<string, Date>();
  readonly #listeners = new Set<FleetListener>();
  readonly #departures: { agent: string; revision: number }[] = [];
  #forgotten = 0;
  #dirty = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #flushed = Number.NEGATIVE_INFINITY;
  #revision = 0;
  #messages: number | undefined;
  #sampledAt = 0;

  /** Resources of all agents that were out of step, in the last hour. */
  readonly lag = new FigureHistory();
  /** Messages per second, in the last hour. */
  readonly throughput = new FigureHistory();

  constructor(sources: FleetSources, now: () => Date = () => new Date()) {
    this.#sources = sources;
    this.#now = now;
    for (const agent of sources.agents()) {
      this.#dirty.add(agent);
    }
    this.#flush();
  }

  /** The number of the last change. */
  get revision(): number {
    return this.#revision;
  }

  get(agent: string): FleetCluster | undefined {
    return this.#clusters.get(agent);
  }

  /** All clusters, by agent. */
  clusters(): ReadonlyMap<string, FleetCluster> {
    return this.#clusters;
  }

  /** The agents that have come, changed or gone after a revision; undefined when that is too long ago to know. */
  changedSince(revision: number): Set<string> | undefined {
    if (revision > this.#revision || revision < this.#forgotten) {
      return undefined;
    }
    const gone = this.#departures.filter((each) => each.revision > revision).map(({ agent }) => agent);
    const changed = [...this.#clusters].filter(([, cluster]) => cluster.revision > revision).map(([agent]) => agent);
    return new Set([...gone, ...changed]);
  }

  subscribe(listener: FleetListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Something about an agent may have changed. */
  touch(agent: string): void {
    this.#dirty.add(agent);
    this.#timer ??= setTimeout(() => this.#flush(), Math.max(0, this.#flushed + gatherMs - performance.now()));
  }

  /** A login of the agent was refused. */
  refused(agent: string, message: string): void {
    if (this.#refused.size < mostRefusals || this.#refused.has(agent)) {
      this.#refused.set(agent, { message: message.slice(0, 2_000), at: this.#now() });
      this.touch(agent);
    }
  }

  /** Keeps figures for the history, and looks at what time alone changes. Call it every {@link historyStepMs}. */
  async sample(): Promise<void> {
    let lag = 0;
    for (const agent of this.#sources.agents()) {
      const pending = this.#sources.signs(agent)?.pending ?? 0;
      this.#clusters.get(agent)?.lag.push(pending);
      lag += pending;
      this.#dirty.add(agent);
    }
    this.lag.push(lag);
    const [messages, at] = [await this.#sources.messages(), performance.now()];
    if (this.#messages !== undefined) {
      this.throughput.push(Math.max(0, (messages - this.#messages) / Math.max(0.001, (at - this.#sampledAt) / 1000)));
    }
    [this.#messages, this.#sampledAt] = [messages, at];
    this.#flush();
    for (const listener of this.#listeners) {
      listener.sampled();
    }
  }

  /** Ends the timer. */
  close(): void {
    clearTimeout(this.#timer);
    this.#listeners.clear();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#flushed = performance.now();
    const dirty = this.#dirty;
    this.#dirty = new Set();
    const changed = new Set<string>();
    const revision = this.#revision + 1;
    for (const agent of dirty) {
      if (this.#refresh(agent, revision)) {
        changed.add(agent);
      }
    }
    if (changed.size === 0) {
      return;
    }
    this.#revision = revision;
    for (const listener of this.#listeners) {
      listener.changed(changed);
    }
  }

  #refresh(agent: string, revision: number): boolean {
    const known = this.#clusters.get(agent);
    const signs = this.#sources.signs(agent);
    if (signs === undefined) {
      this.#refused.delete(agent);
      this.#pendingSince.delete(agent);
      if (known === undefined) {
        return false;
      }
      this.#clusters.delete(agent);
      this.#departures.push({ agent, revision });
      if (this.#departures.length > mostDepartures) {
        this.#forgotten = this.#departures.shift()?.revision ?? 0;
      }
      return true;
    }
    if (signs.connectedSince !== undefined) {
      this.#refused.delete(agent);
    }
    if (signs.pending === 0) {
      this.#pendingSince.delete(agent);
    } else if (!this.#pendingSince.has(agent)) {
      this.#pendingSince.set(agent, this.#now());
    }
    const [refused, pendingSince] = [this.#refused.get(agent), this.#pendingSince.get(agent)];
    const facts = clusterFacts({ ...signs, refused, pendingSince }, this.#now());
    if (isDeepStrictEqual(facts, known?.facts)) {
      return false;
    }
    this.#clusters.set(agent, { facts, revision, lag: known?.lag ?? new FigureHistory(), rendered: new Map() });
    return true;
  }
}
