/** A set of texts that counts how often each was added. */
export class CountedSet {
  readonly #counts = new Map<string, number>();

  has(text: string): boolean {
    return this.#counts.has(text);
  }

  /** Adds or removes a text once. Returns whether it was added for the first time, or removed for the last. */
  add(text: string, by: 1 | -1): boolean {
    const before = this.#counts.get(text) ?? 0;
    const count = before + by;
    if (count > 0) {
      this.#counts.set(text, count);
    } else {
      this.#counts.delete(text);
    }
    return before === 0 || count <= 0;
  }
}
