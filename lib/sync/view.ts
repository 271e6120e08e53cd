import { hasGoneBack, isNewerVersion } from '../base/index.ts';
import type { Clock } from './clock.ts';
import { type RetryDelays, retryDelay } from './retry-delay.ts';
import type { ObjectRef, Store, StoreChange, StoredObject } from './store.ts';

const rememberedGone = 4_096;
/** Delays between checks for our own creation in the cache. They grow, because the cache's selector may exclude it. */
const doubt: RetryDelays = { baseMs: 10_000, factor: 2, capMs: 600_000, jitter: 0 };

type Gap = StoreChange<StoredObject>['gap'];

/** Why an object is known to be gone. */
type Gone =
  /** The cache lost it, and knows itself when it is back. It was at this version last. */
  | { readonly by: 'cache'; readonly version: string | undefined }
  /** Its labels took it out of the cache's selection at this version: it comes back when the cache has a later one. */
  | { readonly by: 'labels'; readonly version: string | undefined }
  /** The API server reported it gone, and the cache may lag behind. */
  | { readonly by: 'server' };

/** Callbacks of a {@link View} to its owner. */
export interface ViewOptions<T> {
  readonly clock: Clock;
  /** Called after every change of the view. */
  readonly changed: (ref: ObjectRef, change: StoreChange<T>) => void;
  /**
   * Our own creation is missing from the cache for long. It may have been deleted in a gap of the watch, and the cache,
   * which never had it, would not report that: read it and call `learn` or `lost`. Called again until the cache has it.
   */
  readonly doubted: (ref: ObjectRef) => void;
}

/**
 * The newest known state of one kind: the store's cache or the result of our own writes, whichever is newer. Without it a
 * writer would take the cache's echo of an earlier state for another writer's change.
 *
 * Resource versions, compared as decimal numbers, decide which is newer. Kubernetes up to 1.34 calls them opaque except for
 * equality; where they are not numbers, the last observation counts, and a late answer may briefly hide a newer cached
 * state. When the cache says that the API server was restored from a backup, or goes back to an earlier version itself, the cache
 * is right.
 */
export class View<T extends StoredObject> {
  readonly #objects = new Map<string, T>();
  /** Uids of objects that are known to be gone, oldest first: an old answer must not bring one back. */
  readonly #gone = new Map<string, Gone>();
  /** Uids in the cache. */
  readonly #cached = new Set<string>();
  readonly #options: ViewOptions<T>;
  /** Ends all versions since the cache went back; empty: it never did. */
  #mark = '';
  #following = false;

  constructor(options: ViewOptions<T>) {
    this.#options = options;
  }

  /** Follows a store until the returned function is called. */
  follow(store: Pick<Store<T>, 'subscribe'>): () => void {
    this.#following = true;
    const unsubscribe = store.subscribe(({ old, now, gap }) => {
      const object = now ?? old;
      if (object === undefined) {
        return;
      }
      if (now !== undefined) {
        this.#cached.add(now.metadata.uid ?? '');
        const wentBack = gap === 'restore' || this.#hasGoneBack(old, now);
        if (wentBack) {
          this.#goBack();
        }
        this.#return(now, wentBack);
        if (!this.#take(now, gap, wentBack)) {
          this.#share(now);
        }
      } else {
        this.#cached.delete(object.metadata.uid ?? '');
        this.#forget(object, { by: 'cache', version: object.metadata.resourceVersion });
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

  /**
   * The version of an object, as no other state of it had it: after a restore an API server counts through the same resource
   * versions again, with other states.
   */
  versionOf(object: T): string {
    return `${object.metadata.resourceVersion ?? ''}${this.#mark}`;
  }

  /** How many objects are known. */
  get size(): number {
    return this.#objects.size;
  }

  /** All objects, in no particular order. */
  values(): Iterable<T> {
    return this.#objects.values();
  }

  /**
   * Takes an object that the API server returned, unless a newer state of it is known.
   * @param before what was known when it was read. What a later answer shows in an earlier state, or replaced, is that no more
   */
  learn(object: T, before?: T): void {
    const known = this.get(refOf(object));
    if (before !== undefined && known === before) {
      if (before.metadata.uid !== object.metadata.uid) {
        this.lost(before);
      } else if (!isNewerVersion(object.metadata.resourceVersion, before.metadata.resourceVersion)) {
        if (object.metadata.resourceVersion !== before.metadata.resourceVersion) {
          this.#goBack();
          this.#take(object, 'restore', true);
        }
        return;
      }
    }
    if (this.#take(object) && !this.#cached.has(object.metadata.uid ?? '')) {
      this.#awaitInCache(object, 1);
    }
  }

  /**
   * The API server, asked after this object was known, has none. An object that was created since the question is not
   * affected.
   */
  lost(object: T): void {
    this.#forget(object, { by: 'server' });
  }

  /**
   * The API server has the object in a state in which the cache leaves it out, by its labels. A newer state may come back.
   * @param before what was known when it was read
   */
  left(object: T, before?: T): void {
    const known = this.get(refOf(object));
    const isLater = isNewerVersion(object.metadata.resourceVersion, known?.metadata.resourceVersion);
    if (known === undefined || (known !== before && !isLater)) {
      return;
    }
    if (known.metadata.uid !== object.metadata.uid) {
      this.lost(known);
    }
    this.#forget(object, { by: 'labels', version: object.metadata.resourceVersion });
  }

  /** The API server was restored: the cache has an object as it was before, or one again that it had lost. */
  #hasGoneBack(old: T | undefined, { metadata }: T): boolean {
    const { uid, resourceVersion } = metadata;
    const gone = this.#gone.get(uid ?? '');
    return (
      (old !== undefined && hasGoneBack(old.metadata, metadata)) ||
      (gone?.by === 'cache' && !isNewerVersion(resourceVersion, gone.version))
    );
  }

  #goBack(): void {
    this.#mark = `_${Math.floor(this.#options.clock.now()).toString(36)}`;
  }

  #cacheLost(uid: string): Gone | undefined {
    const gone = this.#gone.get(uid);
    return gone?.by === 'cache' ? gone : undefined;
  }

  #return(object: T, wentBack: boolean): void {
    const uid = object.metadata.uid ?? '';
    const gone = this.#gone.get(uid);
    const isLater =
      gone?.by === 'cache' || (gone?.by === 'labels' && isNewerVersion(object.metadata.resourceVersion, gone.version));
    if (wentBack || isLater) {
      this.#gone.delete(uid);
    }
  }

  #take(object: T, gap?: Gap, wentBack = false): boolean {
    const ref = refOf(object);
    const known = this.get(ref);
    if (
      this.#gone.has(object.metadata.uid ?? '') ||
      (known !== undefined &&
        !wentBack &&
        !isNewerVersion(object.metadata.resourceVersion, known.metadata.resourceVersion))
    ) {
      return false;
    }
    this.#set(ref, object, gap);
    return true;
  }

  /** The cache now has the state that our own write returned: keep only the cache's object, to save memory. */
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

  #forget(object: T, gone: Gone): void {
    const uid = object.metadata.uid ?? '';
    // What the cache has lost may come back only there, whatever an answer says of it later.
    this.#gone.set(uid, gone.by === 'cache' ? gone : (this.#cacheLost(uid) ?? gone));
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

  #set(ref: ObjectRef, now: T | undefined, gap?: Gap): void {
    const id = `${ref.namespace}/${ref.name}`;
    const old = this.#objects.get(id);
    if (now === undefined) {
      this.#objects.delete(id);
    } else {
      this.#objects.set(id, now);
    }
    this.#options.changed(ref, { old, now, gap });
  }
}

/** Where an object is. */
export function refOf(object: StoredObject): ObjectRef {
  return { namespace: object.metadata.namespace ?? '', name: object.metadata.name };
}
