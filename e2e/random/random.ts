/** Random numbers that are the same for the same seed (mulberry32). Tests say the seed when they fail. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** A number in [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer in [from, to]. */
  integer(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  /** True with the given probability. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** One of several; throws when there is none. */
  pick<T>(items: readonly T[]): T {
    if (items.length === 0) {
      throw new RangeError('nothing to pick from');
    }
    return items[Math.floor(this.next() * items.length)] as T;
  }

  /** The same items in another order. */
  shuffle<T>(items: readonly T[]): T[] {
    const keyed = items.map((item) => ({ item, key: this.next() }));
    return keyed.sort((a, b) => a.key - b.key).map(({ item }) => item);
  }
}
