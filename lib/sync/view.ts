import type { ObjectRef, Store, StoreChange, StoredObject } from './store.ts';

const rememberedGone = 4_096;

/**
 * The newest known state of one kind: what the store's cache says, and what our own writes returned, whichever is newer.
 * Without it a writer would take the cache's echo of an earlier state for somebody else's change.
 */
export class View<T extends StoredObject> {
  readonly #objects = new Map<string, T>();
  /** Uids of objects that are known to be gone, oldest first: an old answer must not bring one back. */
  readonly #gone = new Set<string>();
  readonly #listener: (ref: ObjectRef, change: StoreChange<T>) => void;

  /** @param listener called after every change of what the view says */
  constructor(listener: (ref: ObjectRef, change: StoreChange<T>) => void) {
    this.#listener = listener;
  }

  /** Follows a store until the returned function is called. */
  follow(store: Store<T>): () => void {
    return store.subscribe(({ old, now }) => {
      const object = now ?? old;
      if (object === undefined) {
        return;
      }
      if (now !== undefined) {
        this.learn(now);
      } else {
        this.#forget(object);
      }
    });
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
    const ref = refOf(object);
    const known = this.get(ref);
    if (!this.#gone.has(object.metadata.uid ?? '') && (known === undefined || isNewer(object, known))) {
      this.#set(ref, object);
    }
  }

  /** The API server says that the object does not exist. */
  lost(ref: ObjectRef): void {
    const known = this.get(ref);
    if (known !== undefined) {
      this.#forget(known);
    }
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
    this.#listener(ref, { old, now });
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
