import { BoundedMap } from '../base/index.ts';

/**
 * Remembers the results of a slow, pure function of a text, up to a number of texts; the least recently used goes first. Not
 * for secret texts.
 */
export class Remembered<T> {
  readonly #results: BoundedMap<string, T>;

  constructor(capacity: number) {
    this.#results = new BoundedMap(capacity);
  }

  /** The result for the text, found by `find` if it is not remembered. An error of `find` is not remembered. */
  of(text: string, find: () => T): T {
    const result = this.#results.get(text) ?? find();
    this.#results.set(text, result);
    return result;
  }
}
