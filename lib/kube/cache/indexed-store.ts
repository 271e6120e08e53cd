import { type KubeObject, keyOf, type ObjectKey } from '../types.ts';

/** Computes the values under which an object is found in an index. */
export type Indexer<T> = (object: T) => readonly string[];

/** Objects by key, by namespace and by any number of indexes. */
export class IndexedStore<T extends KubeObject> {
  readonly #objects = new Map<string, T>();
  readonly #indexers: readonly [name: string, indexer: Indexer<T>][];
  /** Index name → value → keys. The namespace is an index like the others. */
  readonly #indexes = new Map<string, Map<string, Set<string>>>();
  readonly #failed: (error: unknown, object: T, index: string) => void;

  /** `failed` is called when an indexer throws; the object is then missing in that index. */
  constructor(
    indexers: Readonly<Record<string, Indexer<T>>>,
    failed: (error: unknown, object: T, index: string) => void,
  ) {
    this.#indexers = [...Object.entries(indexers), [namespaceIndex, byNamespace]];
    for (const [name] of this.#indexers) {
      this.#indexes.set(name, new Map());
    }
    this.#failed = failed;
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: string | ObjectKey): T | undefined {
    return this.#objects.get(typeof key === 'string' ? key : keyOf(key));
  }

  keys(): MapIterator<string> {
    return this.#objects.keys();
  }

  /** Stores an object and returns the one it replaces. */
  set(object: T): T | undefined {
    const key = keyOf(object);
    const old = this.#objects.get(key);
    this.#objects.set(key, object);
    for (const [name, indexer] of this.#indexers) {
      this.#reindex(name, indexer, key, old, object);
    }
    return old;
  }

  /** Removes an object and returns it. */
  delete(key: string): T | undefined {
    const old = this.#objects.get(key);
    if (!old) {
      return undefined;
    }
    this.#objects.delete(key);
    for (const [name, indexer] of this.#indexers) {
      this.#reindex(name, indexer, key, old, undefined);
    }
    return old;
  }

  list(namespace?: string): T[] {
    return namespace === undefined ? [...this.#objects.values()] : this.byIndex(namespaceIndex, namespace);
  }

  /** Throws RangeError for an index that was not declared. */
  byIndex(index: string, value: string): T[] {
    const values = this.#indexes.get(index);
    if (!values) {
      throw new RangeError(`there is no index "${index}"`);
    }
    const found: T[] = [];
    for (const key of values.get(value) ?? []) {
      const object = this.#objects.get(key);
      if (object) {
        found.push(object);
      }
    }
    return found;
  }

  #reindex(name: string, indexer: Indexer<T>, key: string, old: T | undefined, now: T | undefined): void {
    const before = old ? this.#valuesOf(name, indexer, old) : none;
    const after = now ? this.#valuesOf(name, indexer, now) : none;
    const values = this.#indexes.get(name);
    if (!values) {
      return;
    }
    for (const value of before) {
      if (after.includes(value)) {
        continue;
      }
      const keys = values.get(value);
      keys?.delete(key);
      if (keys?.size === 0) {
        values.delete(value);
      }
    }
    for (const value of after) {
      const keys = values.get(value);
      if (keys) {
        keys.add(key);
      } else {
        values.set(value, new Set([key]));
      }
    }
  }

  #valuesOf(name: string, indexer: Indexer<T>, object: T): readonly string[] {
    try {
      return indexer(object);
    } catch (error) {
      this.#failed(error, object, name);
      return none;
    }
  }
}

const none: readonly string[] = [];
const namespaceIndex = '\0namespace';
const byNamespace = (object: KubeObject): readonly string[] => [object.metadata.namespace ?? ''];
