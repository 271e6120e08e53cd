import type { BackoffOptions } from '../../base/index.ts';
import { abortable, isNewerVersion, type Logger } from '../../base/index.ts';
import type { ListOptions } from '../client-options.ts';
import { isForbidden } from '../errors.ts';
import { type KubeObject, keyOf, type ObjectKey, type ResourceType } from '../types.ts';
import { Answers } from './answers.ts';
import { cacheCaughtUp } from './caught-up.ts';
import { IndexedStore, type Indexer } from './indexed-store.ts';
import { type ReflectedClient, type ReflectorStats, reflect } from './reflector.ts';

/**
 * How a change was learned other than by the watch. `list`: from a list after a gap, and what was in between is not known.
 * `restore`: the same, and the API server was restored from a backup, so that the object may be in an earlier version.
 */
export type Gap = 'list' | 'restore';

/**
 * Handles changes. Called after the cache has changed, one call at a time, in the order of the server's history; must
 * return soon, usually after putting a key into a work queue. Objects belong to the cache: do not modify them.
 */
export interface InformerHandler<T extends KubeObject> {
  /** `initial`: the object was there when the informer or this subscription began. */
  added?(object: T, initial: boolean, gap?: Gap): void;
  /** After a restore each object is reported, whether it differs or not. */
  updated?(old: T, now: T, gap?: Gap): void;
  /** `last` is the last state known; after a gap it may lack the final changes. */
  deleted?(last: T): void;
}

/** Options of an informer. */
export interface InformerOptions<T extends KubeObject> extends ListOptions {
  client: ReflectedClient;
  type: ResourceType<T>;
  /** Shrinks objects before they are cached. `managedFields` are always dropped before it sees them. */
  transform?: ((object: T) => T) | undefined;
  indexers?: Readonly<Record<string, Indexer<T>>> | undefined;
  /** Objects per page of a list. Default 500. */
  pageSize?: number | undefined;
  /** Delays after failures. Default 100 ms, doubling to 5 s. */
  backoff?: BackoffOptions | undefined;
  /** Longest life of one watch; each gets a random one between half of it and this. Default 600 s. */
  watchSeconds?: number | undefined;
  logger?: Logger | undefined;
}

/**
 * A cache of one kind that follows the API server and reports changes. Survives broken and dead connections,
 * restarts of the server and compaction of its history: nothing is lost, what happened during a gap is reported after
 * it as one change per object, and an object that was deleted and created again is reported as deleted and added.
 */
export class Informer<T extends KubeObject> {
  readonly type: ResourceType<T>;
  readonly #options: InformerOptions<T>;
  readonly #store: IndexedStore<T>;
  readonly #handlers = new Set<InformerHandler<T>>();
  readonly #restored = new Set<() => void>();
  readonly #stats: ReflectorStats = { lists: 0, watches: 0, events: 0, bookmarks: 0, errors: 0 };
  readonly #firstList = Promise.withResolvers<void>();
  readonly #refused = Promise.withResolvers<void>();
  #running = false;

  constructor(options: InformerOptions<T>) {
    this.type = options.type;
    this.#options = options;
    this.#store = new IndexedStore<T>(options.indexers ?? {}, (error, object, index) =>
      this.#complain(error, object, `index ${index} failed`),
    );
    // Waiting callers get the rejection. Without one it is not an unhandled rejection.
    this.#firstList.promise.catch(() => undefined);
  }

  /** Lists and watches until aborted; resolves then. Trouble with the server is logged and overcome. */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#running) {
      throw new Error(`the informer of ${this.type.kind} is running already`);
    }
    this.#running = true;
    const { client, type, namespace, labelSelector, fieldSelector, logger } = this.#options;
    const answers = new Answers();
    const unfollow = client.answers?.add(type, (key, object) => this.#answered(answers, key, object));
    try {
      await reflect({
        client,
        type,
        selection: { namespace, labelSelector, fieldSelector },
        pageSize: this.#options.pageSize ?? 500,
        backoff: this.#options.backoff ?? {},
        answers,
        watchSeconds: this.#options.watchSeconds ?? 600,
        sink: {
          listed: (object, wentBack) => this.#listed(object, wentBack),
          replaced: (objects, wentBack, reached) => this.#replaced(objects, wentBack, reached),
          changed: (event, object) => this.#changed(event, object),
          failed: (error) => isForbidden(error) && this.#refused.resolve(),
        },
        stats: this.#stats,
        logger,
        signal,
      });
    } finally {
      unfollow?.();
      this.#running = false;
      this.#firstList.reject(signal.reason ?? new Error(`the informer of ${type.kind} has stopped`));
    }
  }

  /** Adds a handler and reports all cached objects to it at once. Returns the function that removes it. */
  subscribe(handler: InformerHandler<T>): () => void {
    for (const object of this.#store.list()) {
      this.#call(object, () => handler.added?.(object, true));
    }
    this.#handlers.add(handler);
    return () => {
      this.#handlers.delete(handler);
    };
  }

  /** Calls back after the other handlers when the API server was restored from a backup. */
  followRestores(restored: () => void): void {
    this.#restored.add(restored);
  }

  /** Resolves once the cache is complete for the first time. Rejects when aborted or stopped before. */
  async synced(signal?: AbortSignal): Promise<void> {
    await abortable(this.#firstList.promise, signal);
  }

  /**
   * Resolves once the cache is complete for the first time, or the API server has refused to list it (403); `hasSynced`
   * tells which. Rejects when aborted or stopped before.
   */
  async settled(signal?: AbortSignal): Promise<void> {
    await abortable(Promise.race([this.#firstList.promise, this.#refused.promise]), signal);
  }

  /**
   * Resolves when the cache has everything that the API server had taken before this call, which costs a list of metadata.
   * @param namespace what other namespaces have is not waited for. Default: all that this informer follows
   * @throws the signal's reason when aborted; ApiError or ConnectionError when the API server cannot be asked
   */
  caughtUp(signal: AbortSignal, namespace = this.#options.namespace): Promise<void> {
    const { client, labelSelector, fieldSelector, pageSize = 500 } = this.#options;
    const options = { namespace, labelSelector, fieldSelector, limit: pageSize, metadataOnly: true, signal };
    return cacheCaughtUp(
      {
        get: (key) => this.get(key),
        list: () => this.list(namespace),
        // Without a report of all that is there: the cache may be large, and what is waited for be little.
        follow: (handler) => {
          this.#handlers.add(handler);
          return () => this.#handlers.delete(handler);
        },
      },
      (next) => client.listPage(this.type, { ...options, continue: next }),
      signal,
    );
  }

  /** Whether the cache has been complete once. */
  get hasSynced(): boolean {
    return this.#stats.lists > 0;
  }

  /** What happened so far; for metrics. */
  get stats(): Readonly<ReflectorStats> {
    return this.#stats;
  }

  /** Number of objects cached. */
  get size(): number {
    return this.#store.size;
  }

  /** The object as last seen. */
  get(key: ObjectKey): T | undefined {
    return this.#store.get(key);
  }

  /** All cached objects, or those of one namespace. */
  list(namespace?: string): T[] {
    return this.#store.list(namespace);
  }

  /** The objects for which an indexer gives this value. Throws RangeError for an unknown index. */
  byIndex(index: string, value: string): T[] {
    return this.#store.byIndex(index, value);
  }

  #answered(answers: Answers, key: ObjectKey, object: KubeObject | undefined): void {
    const known = this.#store.get(keyOf(key));
    if (object === undefined) {
      answers.lacks(key, known);
    } else if (known === undefined || !isSameVersion(known, object)) {
      answers.has(object);
    }
  }

  #listed(object: T, wentBack: boolean): T {
    const old = this.#store.get(keyOf(object));
    return old && !wentBack && isSameVersion(old, object) ? old : this.#prepared(object);
  }

  #replaced(listed: T[], wentBack: boolean, reached: string | undefined): void {
    const isInitial = this.#stats.lists <= 1;
    const gap = wentBack || listed.some((object) => this.#isNewsOfThePast(object, reached)) ? 'restore' : 'list';
    const objects = new Map<string, T>();
    for (const object of listed) {
      objects.set(keyOf(object), object);
    }
    const deleted: T[] = [];
    const added: T[] = [];
    const updated: [old: T, now: T][] = [];
    for (const key of [...this.#store.keys()]) {
      if (objects.has(key)) {
        continue;
      }
      const last = this.#store.delete(key);
      if (last) {
        deleted.push(last);
      }
    }
    for (const [key, object] of objects) {
      const old = this.#store.get(key);
      if (old && gap === 'list' && isSameVersion(old, object)) {
        continue;
      }
      this.#store.set(object);
      if (old && isSameObject(old, object)) {
        updated.push([old, object]);
        continue;
      }
      if (old) {
        deleted.push(old);
      }
      added.push(object);
    }
    // The cache is complete before handlers are called. Deletions come first, so that a name is free before its next use.
    for (const last of deleted) {
      this.#notifyDeleted(last);
    }
    for (const object of added) {
      this.#notifyAdded(object, isInitial, isInitial ? undefined : gap);
    }
    for (const [old, now] of updated) {
      this.#notifyUpdated(old, now, gap);
    }
    if (gap === 'restore') {
      this.#options.logger?.warn(
        { kind: this.type.kind },
        'the API server has an earlier state: it was restored from a backup',
      );
      for (const restored of this.#restored) {
        this.#call(undefined, restored);
      }
    }
    this.#firstList.resolve();
  }

  /**
   * Whether we should have seen it before: a list after a restore shows old versions, also where the server's own version was
   * raised afterwards, as etcd's documentation asks for.
   */
  #isNewsOfThePast(object: T, reached: string | undefined): boolean {
    const old = this.#store.get(keyOf(object));
    const isNews = old === undefined || !isSameVersion(old, object);
    return isNews && reached !== undefined && !isNewerVersion(object.metadata.resourceVersion, reached);
  }

  #changed(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: T): void {
    const key = keyOf(object);
    const old = this.#store.get(key);
    if (type === 'DELETED') {
      if (!old) {
        return;
      }
      this.#store.delete(key);
      this.#notifyDeleted(isSameObject(old, object) ? this.#prepared(object) : old);
      return;
    }
    if (old && isSameVersion(old, object)) {
      return;
    }
    const now = this.#prepared(object);
    this.#store.set(now);
    if (old && isSameObject(old, now)) {
      this.#notifyUpdated(old, now);
      return;
    }
    if (old) {
      this.#notifyDeleted(old);
    }
    this.#notifyAdded(now, false);
  }

  #prepared(object: T): T {
    delete object.metadata.managedFields;
    const { transform } = this.#options;
    if (!transform) {
      return object;
    }
    try {
      return transform(object);
    } catch (error) {
      this.#complain(error, object, 'transform failed, the object is cached as it came');
      return object;
    }
  }

  #notifyAdded(object: T, initial: boolean, gap?: Gap): void {
    for (const handler of [...this.#handlers]) {
      this.#call(object, () => handler.added?.(object, initial, gap));
    }
  }

  #notifyUpdated(old: T, now: T, gap?: Gap): void {
    for (const handler of [...this.#handlers]) {
      this.#call(now, () => handler.updated?.(old, now, gap));
    }
  }

  #notifyDeleted(last: T): void {
    for (const handler of [...this.#handlers]) {
      this.#call(last, () => handler.deleted?.(last));
    }
  }

  #call(object: T | undefined, call: () => unknown): void {
    try {
      const result = call();
      // The type asks for void, which an async function satisfies.
      if (result instanceof Promise) {
        result.catch((error) => this.#complain(error, object, 'handler failed'));
      }
    } catch (error) {
      this.#complain(error, object, 'handler failed');
    }
  }

  #complain(error: unknown, object: T | undefined, message: string): void {
    this.#options.logger?.error({ error, kind: this.type.kind, object: object && keyOf(object) }, message);
  }
}

function isSameObject(a: KubeObject, b: KubeObject): boolean {
  return a.metadata.uid === b.metadata.uid;
}

function isSameVersion(a: KubeObject, b: KubeObject): boolean {
  return isSameObject(a, b) && a.metadata.resourceVersion === b.metadata.resourceVersion;
}
