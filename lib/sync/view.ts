import { isNewerVersion } from '../base/index.ts';
import type { Clock } from './clock.ts';
import { type RetryDelays, retryDelay } from './retry-delay.ts';
import type { ObjectRef, Store, StoreChange, StoredObject } from './store.ts';

const rememberedGone = 4_096;
/** Whether our own creation is still not in the cache is asked ever more rarely: it may be out of the cache's selection. */
const doubt: RetryDelays = { baseMs: 10_000, factor: 2, capMs: 600_000, jitter: 0 };

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
 *
 * Newer is told by resource versions, as decimal numbers. Kubernetes calls them opaque but for equality up to 1.34; where
 * they are no numbers, what is told last counts, and a late answer may for a moment hide what the cache said before it.
 */
export class View<T extends StoredObject> {
  readonly #objects = new Map<string, T>();
  /**
   * Uids of objects that are known to be gone, oldest first: an old answer must not bring one back. With the version at
   * which the cache lost it: it comes back when only its labels had taken it out of the cache's selection. Undefined:
   * the API server said so, and the cache may not have heard yet.
   */
  readonly #gone = new Map<string, string | undefined>();
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
        this.#return(now);
        if (!this.#take(now)) {
          this.#share(now);
        }
      } else {
        this.#cached.delete(object.metadata.uid ?? '');
        this.#forget(object, object.metadata.resourceVersion);
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
      this.#awaitInCache(object, 1);
    }
  }

  /**
   * The API server, asked after this object was known, says that there is none. One that came into being since the
   * question is not meant.
   */
  lost(object: T): void {
    this.#forget(object, undefined);
  }

  #return(object: T): void {
    const uid = object.metadata.uid ?? '';
    const version = this.#gone.get(uid);
    if (version !== undefined && isNewerVersion(object.metadata.resourceVersion, version)) {
      this.#gone.delete(uid);
    }
  }

  #take(object: T): boolean {
    const ref = refOf(object);
    const known = this.get(ref);
    if (
      this.#gone.has(object.metadata.uid ?? '') ||
      (known !== undefined && !isNewerVersion(object.metadata.resourceVersion, known.metadata.resourceVersion))
    ) {
      return false;
    }
    this.#set(ref, object);
    return true;
  }

  /** What our own write returned is the cache's object now: one copy of it is enough. */
  #share(cached: T): void {
    const ref = refOf(cached);
    const known = this.get(ref)?.metadata;
    if (known?.uid === cached.metadata.uid && known?.resourceVersion === cached.metadata.resourceVersion) {
      this.#objects.set(`${ref.namespace}/${ref.name}`, cached);
    }
  }

  #awaitInCache(object: T, attempt: number): void {
    this.#options.clock.after(retryDelay(doubt, attempt, 0), () => {
      const ref = refOf(object);
      const { uid } = object.metadata;
      if (this.#following && this.get(ref)?.metadata.uid === uid && !this.#cached.has(uid ?? '')) {
        this.#options.doubted(ref);
        this.#awaitInCache(object, attempt + 1);
      }
    });
  }

  #forget(object: T, version: string | undefined): void {
    this.#gone.set(object.metadata.uid ?? '', version);
    if (this.#gone.size > rememberedGone) {
      for (const oldest of this.#gone.keys()) {
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
