/**
 * A map of limited size that forgets its oldest entries. Setting a key again makes its entry the newest. `evicted` is called
 * for each entry that had to make room.
 */
export class BoundedMap<K, V> {
  readonly #max: number;
  readonly #evicted: ((key: K, value: V) => void) | undefined;
  readonly #entries = new Map<K, V>();

  constructor(max: number, evicted?: (key: K, value: V) => void) {
    this.#max = max;
    this.#evicted = evicted;
  }

  get size(): number {
    return this.#entries.size;
  }

  has(key: K): boolean {
    return this.#entries.has(key);
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  set(key: K, value: V): this {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size > this.#max) {
      const [oldest] = this.#entries;
      if (oldest) {
        this.#entries.delete(oldest[0]);
        this.#evicted?.(...oldest);
      }
    }
    return this;
  }

  delete(key: K): boolean {
    return this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }

  /** Oldest first. */
  keys(): MapIterator<K> {
    return this.#entries.keys();
  }

  /** Oldest first. */
  values(): MapIterator<V> {
    return this.#entries.values();
  }

  /** Oldest first. */
  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.#entries[Symbol.iterator]();
  }
}

/** A set of limited size that forgets its oldest values. Adding a value again makes it the newest. */
export class BoundedSet<T> {
  readonly #entries: BoundedMap<T, undefined>;

  constructor(max: number) {
    this.#entries = new BoundedMap(max);
  }

  get size(): number {
    return this.#entries.size;
  }

  has(value: T): boolean {
    return this.#entries.has(value);
  }

  add(value: T): this {
    this.#entries.set(value, undefined);
    return this;
  }

  delete(value: T): boolean {
    return this.#entries.delete(value);
  }

  clear(): void {
    this.#entries.clear();
  }

  /** Oldest first. */
  [Symbol.iterator](): MapIterator<T> {
    return this.#entries.keys();
  }
}
