/** Serialises work by key: pieces of work with the same key run one after the other, in the order of the calls. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs the work when all earlier work with this key has settled, whether it succeeded or failed. Settles as the work does. */
  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#last.get(key) ?? Promise.resolve()).then(work, work);
    this.#last.set(key, turn);
    const release = () => {
      if (this.#last.get(key) === turn) {
        this.#last.delete(key);
      }
    };
    turn.then(release, release);
    return turn;
  }
}
