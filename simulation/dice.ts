/** Random numbers that are the same for the same seed. */
export class SeededDice {
  #state: number;

  constructor(seed: number) {
    this.#state = (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ (seed >>> 3)) | 0;
  }

  /** A number in [0, 1). */
  readonly roll = (): number => {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };

  /** True with the given probability. */
  chance(probability: number): boolean {
    return this.roll() < probability;
  }

  /** An integer in [from, to]. */
  integer(from: number, to: number): number {
    return from + Math.floor(this.roll() * (to - from + 1));
  }

  /** A time in milliseconds: mostly near `ms`, sometimes much longer. */
  delay(ms: number): number {
    return this.chance(0.05) ? this.roll() * ms * 30 : (0.2 + this.roll()) * ms;
  }

  /** One of several. */
  pick<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(this.roll() * items.length)];
  }
}

/** One of several, of which there is at least one; a single one costs no dice. */
export function pickOne<T>(dice: SeededDice, items: readonly T[]): T {
  return (items.length === 1 ? items[0] : dice.pick(items)) as T;
}
