import type { Application } from '../../../lib/argocd/index.ts';
import { type ApplicationCounts, healthNames, syncNames } from './cluster-facts.ts';

interface Counted {
  readonly agent: string;
  readonly health: string;
  readonly sync: string;
}

interface Tally {
  readonly keys: Set<string>;
  readonly health: Record<string, number>;
  readonly sync: Record<string, number>;
}

const none: ApplicationCounts = { total: 0, health: {}, sync: {} };

/** Counts the hub's Applications by agent, health and sync status. One change costs the same whatever the fleet. */
export class ApplicationTally {
  /** The agent that has an Application. */
  readonly agentOf: (application: Application) => string | undefined;
  readonly #counted = new Map<string, Counted>();
  readonly #tallies = new Map<string, Tally>();

  constructor(agentOf: (application: Application) => string | undefined) {
    this.agentOf = agentOf;
  }

  /** Counts an Application as it is now. Returns the agents whose counts have changed. */
  put(key: string, application: Application): string[] {
    const before = this.#counted.get(key);
    const agent = this.agentOf(application);
    const { health, sync } = application.status ?? {};
    const now =
      agent === undefined
        ? undefined
        : { agent, health: known(health?.status, healthNames), sync: known(sync?.status, syncNames) };
    if (before?.agent === now?.agent && before?.health === now?.health && before?.sync === now?.sync) {
      return [];
    }
    const touched = this.delete(key);
    if (now !== undefined) {
      this.#counted.set(key, now);
      const tally = this.#tallies.get(now.agent) ?? { keys: new Set(), health: {}, sync: {} };
      this.#tallies.set(now.agent, tally);
      tally.keys.add(key);
      add(tally.health, now.health, 1);
      add(tally.sync, now.sync, 1);
      touched.push(now.agent);
    }
    return [...new Set(touched)];
  }

  /** Forgets an Application. Returns the agents whose counts have changed. */
  delete(key: string): string[] {
    const before = this.#counted.get(key);
    if (before === undefined) {
      return [];
    }
    this.#counted.delete(key);
    const tally = this.#tallies.get(before.agent);
    if (tally !== undefined) {
      tally.keys.delete(key);
      add(tally.health, before.health, -1);
      add(tally.sync, before.sync, -1);
      if (tally.keys.size === 0) {
        this.#tallies.delete(before.agent);
      }
    }
    return [before.agent];
  }

  countsOf(agent: string): ApplicationCounts {
    const tally = this.#tallies.get(agent);
    return tally === undefined
      ? none
      : { total: tally.keys.size, health: { ...tally.health }, sync: { ...tally.sync } };
  }

  /** The keys of the agent's Applications. */
  keysOf(agent: string): Iterable<string> {
    return this.#tallies.get(agent)?.keys ?? [];
  }
}

function add(counts: Record<string, number>, name: string, by: number): void {
  const now = (counts[name] ?? 0) + by;
  if (now === 0) {
    delete counts[name];
  } else {
    counts[name] = now;
  }
}

function known(name: string | undefined, names: readonly string[]): string {
  return name !== undefined && names.includes(name) ? name : 'Unknown';
}
