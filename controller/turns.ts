/** Work on one thing at a time: what is shared is not made twice by those who find it missing together. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Does the work when everybody who asked before with this key has finished, however that ended. */
  take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#last.get(key) ?? Promise.resolve()).then(work, work);
    this.#last.set(key, turn);
    const leave = () => {
      if (this.#last.get(key) === turn) {
        this.#last.delete(key);
      }
    };
    turn.then(leave, leave);
    return turn;
  }
}
