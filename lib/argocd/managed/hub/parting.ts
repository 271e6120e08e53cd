import { keyString, type ResourceKey, type Snapshot } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';

interface One<Intent> {
  readonly key: ResourceKey;
  readonly last: Snapshot<Application>;
  readonly asked: Set<Intent>;
}

/**
 * Last states of Applications that have left, which an agent has to acknowledge before it is told of the deletion, and what users
 * ask meanwhile of those that took their place.
 */
export class Parting<Intent> {
  /** By name, which the acknowledged event tells, then by place. */
  readonly #all = new Map<string, Map<string, One<Intent>>>();

  add(key: ResourceKey, last: Snapshot<Application>): void {
    const places = this.#all.get(key.name) ?? new Map<string, One<Intent>>();
    places.set(keyString(key), { key, last, asked: new Set() });
    this.#all.set(key.name, places);
  }

  /** The names of all that are parting. */
  names(): string[] {
    return [...this.#all.keys()];
  }

  /** The last state; undefined: it is not parting. */
  lastOf(key: ResourceKey): Snapshot<Application> | undefined {
    return this.#of(key)?.last;
  }

  /** Remembers a request for later. False: nothing is parting there. */
  ask(key: ResourceKey, intent: Intent): boolean {
    return this.#of(key)?.asked.add(intent) !== undefined;
  }

  takeBack(key: ResourceKey, intent: Intent): void {
    this.#of(key)?.asked.delete(intent);
  }

  isAsked(key: ResourceKey, intent: Intent): boolean {
    return this.#of(key)?.asked.has(intent) === true;
  }

  /** Forgets those of this name that have parted, and returns them with what was asked meanwhile. */
  takeParted(
    name: string,
    hasParted: (key: ResourceKey, last: Snapshot<Application>) => boolean,
  ): readonly One<Intent>[] {
    const places = this.#all.get(name);
    if (places === undefined) {
      return [];
    }
    const parted = [...places.values()].filter(({ key, last }) => hasParted(key, last));
    for (const { key } of parted) {
      places.delete(keyString(key));
    }
    if (places.size === 0) {
      this.#all.delete(name);
    }
    return parted;
  }

  #of(key: ResourceKey): One<Intent> | undefined {
    return this.#all.get(key.name)?.get(keyString(key));
  }
}
