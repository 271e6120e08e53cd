import { onAbort } from './abort.ts';

/** Lets a limited number of pieces of work run at the same time; others wait in the order of the calls. */
export class Semaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(limit: number) {
    this.#free = limit;
  }

  /**
   * Runs the work when a place is free. Settles as the work does.
   * @throws the signal's reason if it is aborted while the work waits for its place; the work is not run then
   */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.#acquire(signal);
    try {
      return await work();
    } finally {
      this.#release();
    }
  }

  async #acquire(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    const unlisten = onAbort(signal, () => {
      this.#waiting.delete(resolve);
      reject(signal?.reason);
    });
    try {
      await promise;
    } finally {
      unlisten();
    }
  }

  #release(): void {
    for (const next of this.#waiting) {
      this.#waiting.delete(next);
      next();
      return;
    }
    this.#free++;
  }
}
