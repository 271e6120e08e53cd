import { annotations } from '../../lib/argocd/index.ts';
import type { Logger } from '../../lib/base/index.ts';
import { isInvalid, isNotFound, type KubeClient, type KubeObject, WorkQueue } from '../../lib/kube/index.ts';
import { principalFieldManager } from '../namespaces.ts';
import { applicationSetOf, type ReplicatedKind, saysOnBothHubs, wasOnBothHubs } from './kinds.ts';
import { replicatedKey } from './news.ts';

/**
 * Marks the objects that a standby has. When the roles have changed, an object that the active hub does not have was deleted
 * there if it has the mark; without it the object has never been on the other hub, and stays. Each object is marked once.
 */
export class OnBothHubs {
  readonly #kinds: readonly ReplicatedKind[];
  readonly #client: Pick<KubeClient, 'mergePatch'>;
  readonly #waiting = new Map<string, { readonly kind: ReplicatedKind; readonly object: KubeObject }>();
  /** UIDs. Somebody who removes the mark is not contradicted. */
  readonly #done = new Set<string>();
  readonly #queue: WorkQueue;

  constructor(options: {
    kinds: readonly ReplicatedKind[];
    client: Pick<KubeClient, 'mergePatch'>;
    logger: Logger;
  }) {
    this.#kinds = options.kinds;
    this.#client = options.client;
    this.#queue = new WorkQueue({
      name: 'on-both-hubs',
      handler: (uid, signal) => this.#mark(uid, signal),
      concurrency: 2,
      logger: options.logger,
    });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#queue.run(signal);
  }

  /** A standby has the object. */
  add(kind: ReplicatedKind, object: KubeObject): void {
    const { uid = '' } = object.metadata;
    // The keys are on every hub, and are never deleted. What an ApplicationSet makes goes by that.
    const needsNone = kind.name === 'GPGKey' || applicationSetOf(object, this.#kinds) !== undefined;
    if (uid === '' || needsNone || this.#done.has(uid) || saysOnBothHubs(object)) {
      return;
    }
    this.#waiting.set(uid, { kind, object });
    this.#queue.add(uid);
  }

  /** A standby has all objects that fulfil the condition. */
  addAll(has: (kind: ReplicatedKind, object: KubeObject) => boolean): void {
    for (const kind of this.#kinds) {
      for (const object of kind.informer.list()) {
        if (kind.includes(object) && has(kind, object)) {
          this.add(kind, object);
        }
      }
    }
  }

  /** The object is gone, or only kept out from now on: then a mark that waits is still written. */
  forget({ metadata: { uid = '' } }: KubeObject): void {
    this.#done.delete(uid);
  }

  async #mark(uid: string, signal: AbortSignal): Promise<void> {
    const entry = this.#waiting.get(uid);
    if (entry === undefined) {
      return;
    }
    const { kind, object } = entry;
    const patch = { metadata: { uid, annotations: { [annotations.onBothHubs]: 'true' } } };
    try {
      await this.#client.mergePatch(kind.type, object.metadata, patch, { fieldManager: principalFieldManager, signal });
      this.#done.add(uid);
    } catch (error) {
      // It is gone, or another one of its name is there, which has another UID.
      if (!isNotFound(error) && !isInvalid(error)) {
        throw error;
      }
    }
    this.#waiting.delete(uid);
  }
}

/** Objects here that both hubs have had, by {@link replicatedKey}, as far as the caches know. */
export function keysOnBothHubs(kinds: readonly ReplicatedKind[]): Set<string> {
  const keys = new Set<string>();
  for (const kind of kinds) {
    for (const object of kind.informer.list()) {
      if (kind.includes(object) && wasOnBothHubs(object, kinds)) {
        keys.add(replicatedKey(kind, object.metadata));
      }
    }
  }
  return keys;
}
