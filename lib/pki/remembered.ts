/**
 * Answers of a function that always gives the same one for the same text, and takes long: those asked for most recently are
 * remembered. Not for texts that are secret.
 */
export class Remembered<T> {
  readonly #capacity: number;
  readonly #answers = new Map<string, T>();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** The answer for a text. What throws is not remembered. */
  of(text: string, find: () => T): T {
    const known = this.#answers.get(text);
    const answer = known ?? find();
    if (known !== undefined) {
      this.#answers.delete(text);
    }
    this.#answers.set(text, answer);
    if (this.#answers.size > this.#capacity) {
      const [oldest] = this.#answers.keys();
      if (oldest !== undefined) {
        this.#answers.delete(oldest);
      }
    }
    return answer;
  }
}
