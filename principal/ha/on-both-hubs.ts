import { annotations } from '../../lib/argocd/index.ts';
import type { Logger } from '../../lib/base/index.ts';
import { isInvalid, isNotFound, type KubeClient, type KubeObject, WorkQueue } from '../../lib/kube/index.ts';
import { principalFieldManager } from '../namespaces.ts';
import { type ReplicatedKind, wasOnBothHubs } from './kinds.ts';

/**
 * Marks the objects that a standby has. When the roles have changed, an object that the active hub does not have was deleted
 * there if it has the mark; without it the object has never been on the other hub, and stays. Each object is marked once.
 */
export class OnBothHubs {
  readonly #client: Pick<KubeClient, 'mergePatch'>;
  readonly #waiting = new Map<string, { readonly kind: ReplicatedKind; readonly object: KubeObject }>();
  /** UIDs. Somebody who removes the mark is not contradicted. */
  readonly #done = new Set<string>();
  readonly #queue: WorkQueue;

  constructor(options: { client: Pick<KubeClient, 'mergePatch'>; logger: Logger }) {
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
    // The keys are on every hub, and are never deleted.
    if (uid === '' || kind.name === 'GPGKey' || this.#done.has(uid) || wasOnBothHubs(object)) {
      return;
    }
    this.#waiting.set(uid, { kind, object });
    this.#queue.add(uid);
  }

  /** A standby has all objects that fulfil the condition. */
  addAll(kinds: readonly ReplicatedKind[], has: (kind: ReplicatedKind, object: KubeObject) => boolean): void {
    for (const kind of kinds) {
      for (const object of kind.informer.list()) {
        if (kind.includes(object) && has(kind, object)) {
          this.add(kind, object);
        }
      }
    }
  }

  /** The object is gone. */
  forget({ metadata: { uid = '' } }: KubeObject): void {
    this.#done.delete(uid);
    this.#waiting.delete(uid);
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
    } catch (error) {
      // It is gone, or another one of its name is there, which has another UID.
      if (!isNotFound(error) && !isInvalid(error)) {
        throw error;
      }
    }
    this.#waiting.delete(uid);
    this.#done.add(uid);
  }
}
