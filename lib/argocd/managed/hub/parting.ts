import { BoundedMap, BoundedSet } from '../../../base/index.ts';
import { keyString, type PeerCopy, type ResourceKey, type Snapshot } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';

/** UIDs that are remembered, of each kind. */
const most = 10_000;
/** Satisfies Argo CD's CRD. Argo CD finds nothing to compare or to deploy, and does not look for what has been deployed. */
const emptySpec: Application['spec'] = { project: 'default', destination: {} };

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
  /** Source UIDs of which the agent has had the last state. */
  readonly #parted = new BoundedSet<string>(most);
  /** Source UIDs of what the cache has lost, by key. */
  readonly #vanished = new BoundedMap<string, string>(most);

  add(key: ResourceKey, last: Snapshot<Application>): void {
    const places = this.#all.get(key.name) ?? new Map<string, One<Intent>>();
    places.set(keyString(key), { key, last, asked: new Set() });
    this.#all.set(key.name, places);
  }

  /** The last state is not known: one without finalizers that deploys nothing stands for it. */
  addUnknown(key: ResourceKey, uid: string): void {
    const { namespace, name } = key;
    const object = { metadata: { namespace, name, uid, finalizers: [] }, spec: emptySpec };
    this.add(key, { uid, version: '0', digest: 'unknown', object });
  }

  /** The cache has lost it. Whether the hub has, a read will tell. */
  vanished(key: ResourceKey, uid: string): void {
    this.#vanished.set(keyString(key), uid);
  }

  /** The source UID of what the cache has lost there; told once. */
  takeVanished(key: ResourceKey): string | undefined {
    const place = keyString(key);
    const uid = this.#vanished.get(place);
    this.#vanished.delete(place);
    return uid;
  }

  /** Whether it is parting, or has parted: what the agent reports of its copy may be older than that. */
  knows(key: ResourceKey, uid: string): boolean {
    return this.#of(key) !== undefined || this.#parted.has(uid);
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

  /**
   * Forgets those of this name that have parted, and returns them with what was asked meanwhile: the agent has the last state, or no
   * copy of that Application.
   */
  takeParted(name: string, heldOf: (key: ResourceKey) => PeerCopy | undefined): readonly One<Intent>[] {
    const places = this.#all.get(name);
    if (places === undefined) {
      return [];
    }
    const parted = [...places.values()].filter(({ key, last }) => {
      const held = heldOf(key);
      return held?.uid !== last.uid || held.digest === last.digest;
    });
    for (const { key, last } of parted) {
      places.delete(keyString(key));
      if (heldOf(key)?.uid === last.uid) {
        this.#parted.add(last.uid);
      }
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
