import type { Clock } from './clock.ts';
import type { ObjectRef, Store, StoreChange, StoredObject } from './store.ts';

const rememberedGone = 4_096;
const doubtAfterMs = 10_000;

/** What a {@link View} tells its owner. */
export interface ViewOptions<T> {
  readonly clock: Clock;
  /** Called after every change of what the view says. */
  readonly changed: (ref: ObjectRef, change: StoreChange<T>) => void;
  /**
   * Our own creation has not shown up in the cache for long. It may have been deleted in a gap of the watch, which the
   * cache, not having seen it, would never tell: read it and call `learn` or `lost`. Called again until it shows up.
   */
  readonly doubted: (ref: ObjectRef) => void;
}

/**
 * The newest known state of one kind: what the store's cache says, and what our own writes returned, whichever is newer.
 * Without it a writer would take the cache's echo of an earlier state for somebody else's change.
 */
export class View<T extends StoredObject> {
  readonly #objects = new Map<string, T>();
  /** Uids of objects that are known to be gone, oldest first: an old answer must not bring one back. */
  readonly #gone = new Set<string>();
  /** Uids in the cache. */
  readonly #cached = new Set<string>();
  readonly #options: ViewOptions<T>;
  #following = false;

  constructor(options: ViewOptions<T>) {
    this.#options = options;
  }

  /** Follows a store until the returned function is called. */
  follow(store: Pick<Store<T>, 'subscribe'>): () => void {
    this.#following = true;
    const unsubscribe = store.subscribe(({ old, now }) => {
      const object = now ?? old;
      if (object === undefined) {
        return;
      }
      if (now !== undefined) {
        this.#cached.add(now.metadata.uid ?? '');
        this.#take(now);
      } else {
        this.#cached.delete(object.metadata.uid ?? '');
        this.#forget(object);
      }
    });
    return () => {
      this.#following = false;
      unsubscribe();
    };
  }

  get(ref: ObjectRef): T | undefined {
    return this.#objects.get(`${ref.namespace}/${ref.name}`);
  }

  /** All objects, in no particular order. */
  values(): Iterable<T> {
    return this.#objects.values();
  }

  /** Takes an object that the API server returned, unless a newer state of it is known. */
  learn(object: T): void {
    if (this.#take(object) && !this.#cached.has(object.metadata.uid ?? '')) {
      this.#awaitInCache(object);
    }
  }

  /**
   * The API server, asked after this object was known, says that there is none. One that came into being since the
   * question is not meant.
   */
  lost(object: T): void {
    this.#forget(object);
  }

  #take(object: T): boolean {
    const ref = refOf(object);
    const known = this.get(ref);
    if (this.#gone.has(object.metadata.uid ?? '') || (known !== undefined && !isNewer(object, known))) {
      return false;
    }
    this.#set(ref, object);
    return true;
  }

  #awaitInCache(object: T): void {
    this.#options.clock.after(doubtAfterMs, () => {
      const ref = refOf(object);
      const { uid } = object.metadata;
      if (this.#following && this.get(ref)?.metadata.uid === uid && !this.#cached.has(uid ?? '')) {
        this.#options.doubted(ref);
        this.#awaitInCache(object);
      }
    });
  }

  #forget(object: T): void {
    this.#gone.add(object.metadata.uid ?? '');
    if (this.#gone.size > rememberedGone) {
      for (const oldest of this.#gone) {
        this.#gone.delete(oldest);
        break;
      }
    }
    const ref = refOf(object);
    if (this.get(ref)?.metadata.uid === object.metadata.uid) {
      this.#set(ref, undefined);
    }
  }

  #set(ref: ObjectRef, now: T | undefined): void {
    const id = `${ref.namespace}/${ref.name}`;
    const old = this.#objects.get(id);
    if (now === undefined) {
      this.#objects.delete(id);
    } else {
      this.#objects.set(id, now);
    }
    this.#options.changed(ref, { old, now });
  }
}

/** Where an object is. */
export function refOf(object: StoredObject): ObjectRef {
  return { namespace: object.metadata.namespace ?? '', name: object.metadata.name };
}

// Resource versions of one kind can be compared as decimal numbers (Kubernetes 1.35 promises it, etcd always did).
function isNewer(a: StoredObject, b: StoredObject): boolean {
  const x = a.metadata.resourceVersion ?? '';
  const y = b.metadata.resourceVersion ?? '';
  if (x === y) {
    return false;
  }
  return !/^\d+$/.test(x) || !/^\d+$/.test(y) || (x.length === y.length ? x > y : x.length > y.length);
}
