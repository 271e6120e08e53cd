import type { KubeObject, ObjectKey, ResourceType } from '../types.ts';
import { Informer, type InformerHandler, type InformerOptions } from './informer.ts';

/** Options of a {@link MultiNamespaceInformer}. */
export interface MultiNamespaceInformerOptions<T extends KubeObject> extends Omit<InformerOptions<T>, 'namespace'> {
  /** The namespaces to follow; empty: all. */
  namespaces: readonly string[];
}

/**
 * The cache of one kind in a fixed set of namespaces, with an informer for each. It needs no right outside these namespaces.
 * What holds for an {@link Informer} holds for each namespace; changes in different namespaces come in any order.
 */
export class MultiNamespaceInformer<T extends KubeObject> {
  readonly type: ResourceType<T>;
  /** By namespace; a single one without a namespace when all are followed. */
  readonly #informers: ReadonlyMap<string | undefined, Informer<T>>;

  constructor({ namespaces, ...options }: MultiNamespaceInformerOptions<T>) {
    this.type = options.type;
    const followed = namespaces.length === 0 ? [undefined] : [...new Set(namespaces)];
    this.#informers = new Map(followed.map((namespace) => [namespace, new Informer({ ...options, namespace })]));
  }

  /** Runs until aborted; resolves then. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#all.map((informer) => informer.run(signal)));
  }

  /** Adds a handler and reports all cached objects to it at once. Returns the function that removes it. */
  subscribe(handler: InformerHandler<T>): () => void {
    const stops = this.#all.map((informer) => informer.subscribe(handler));
    return () => {
      for (const stop of stops) {
        stop();
      }
    };
  }

  /**
   * Resolves once every namespace is complete. One of a list of namespaces that the API server refuses (403) is not waited
   * for: its owner may have deleted it, or the Role in it. Rejects when aborted or stopped before.
   */
  async settled(signal?: AbortSignal): Promise<void> {
    const waits = [...this.#informers].map(([namespace, informer]) =>
      namespace === undefined ? informer.synced(signal) : informer.settled(signal),
    );
    await Promise.all(waits);
  }

  /** Resolves once the cache of a namespace is complete. Rejects when aborted, stopped or not followed. */
  async syncedIn(namespace: string, signal?: AbortSignal): Promise<void> {
    const informer = this.#of(namespace);
    if (informer === undefined) {
      throw new RangeError(`${this.type.kind}s of namespace ${namespace} are not followed`);
    }
    await informer.synced(signal);
  }

  /** Why a namespace is not complete; undefined when it is. */
  problemIn(namespace: string): string | undefined {
    const informer = this.#of(namespace);
    if (informer === undefined) {
      return `${this.type.kind}s of namespace ${namespace} are not followed`;
    }
    return informer.hasSynced ? undefined : (informer.stats.problem ?? `${this.type.plural} are being listed`);
  }

  /** Whether every namespace has been complete once. */
  get hasSynced(): boolean {
    return this.#all.every((informer) => informer.hasSynced);
  }

  /** The object as last seen. */
  get(key: ObjectKey): T | undefined {
    return this.#of(key.namespace)?.get(key);
  }

  /** All cached objects, or those of one namespace. */
  list(namespace?: string): T[] {
    return namespace === undefined
      ? this.#all.flatMap((informer) => informer.list())
      : (this.#of(namespace)?.list(namespace) ?? []);
  }

  /** The objects for which an indexer gives this value. Throws RangeError for an unknown index. */
  byIndex(index: string, value: string): T[] {
    return this.#all.flatMap((informer) => informer.byIndex(index, value));
  }

  get #all(): Informer<T>[] {
    return [...this.#informers.values()];
  }

  #of(namespace: string | undefined): Informer<T> | undefined {
    return this.#informers.get(undefined) ?? this.#informers.get(namespace);
  }
}
