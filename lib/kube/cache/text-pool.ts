/** V8's JSON parser shares texts up to this length by itself. */
const sharedByParser = 10;
/** Longer texts are rarely repeated. */
const longest = 1_024;

/**
 * Shares equal texts of different objects in memory. Objects of one kind repeat many texts: Argo CD
 * repeats the source of an Application eight times in it, and many Applications have the same repository. A text that was not seen
 * for long is forgotten, so that the pool itself stays small.
 */
export class TextPool {
  readonly #maxTexts: number;
  /** The recent texts. When it is full it replaces the old generation. */
  #young = new Map<string, string>();
  #old = new Map<string, string>();

  /** @param maxTexts most texts of a generation; the pool holds two */
  constructor(maxTexts = 100_000) {
    this.#maxTexts = Math.ceil(maxTexts / 2);
  }

  /** Replaces texts within a value of JSON, in place, by equal ones seen before. Returns the value. */
  share<T>(value: T): T {
    return this.#shared(value) as T;
  }

  #shared(value: unknown): unknown {
    if (typeof value === 'string') {
      return value.length <= sharedByParser || value.length > longest ? value : this.#known(value);
    }
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index++) {
        value[index] = this.#shared(value[index]);
      }
    } else if (typeof value === 'object' && value !== null) {
      const object = value as Record<string, unknown>;
      for (const key in object) {
        const field = object[key];
        // Assigns only where the text changes: a write costs more than a comparison.
        if (typeof field === 'string') {
          if (field.length > sharedByParser && field.length <= longest) {
            object[key] = this.#known(field);
          }
        } else if (typeof field === 'object') {
          this.#shared(field);
        }
      }
    }
    return value;
  }

  #known(text: string): string {
    const known = this.#young.get(text);
    if (known !== undefined) {
      return known;
    }
    if (this.#young.size >= this.#maxTexts) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    const kept = this.#old.get(text) ?? text;
    this.#young.set(kept, kept);
    return kept;
  }
}
