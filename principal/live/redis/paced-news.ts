import { after } from '../../../lib/base/index.ts';

/** Shortest time between two messages of one channel, in milliseconds. Argo CD's server reads the whole tree again at each. */
const newsIntervalMs = 250;

/**
 * Paces messages by name: the first one is told at once; those that come within the interval after it are told together as one, when
 * it is over. A message says only that something is new, so that none is lost.
 */
export class PacedNews {
  readonly #tell: (name: string) => void;
  /** Names that were told a moment ago, with what ends the interval, and whether there was news in it. */
  readonly #resting = new Map<string, { readonly cancel: () => void; isPending: boolean }>();

  constructor(tell: (name: string) => void) {
    this.#tell = tell;
  }

  /** There is news of this name. */
  news(name: string): void {
    const resting = this.#resting.get(name);
    if (resting === undefined) {
      this.#begin(name);
    } else {
      resting.isPending = true;
    }
  }

  /** Nobody wants to know of this name any more. */
  forget(name: string): void {
    this.#resting.get(name)?.cancel();
    this.#resting.delete(name);
  }

  /** Nobody wants to know anything any more. */
  close(): void {
    for (const name of [...this.#resting.keys()]) {
      this.forget(name);
    }
  }

  #begin(name: string): void {
    const end = () => {
      const isPending = this.#resting.get(name)?.isPending === true;
      this.#resting.delete(name);
      if (isPending) {
        this.#begin(name);
      }
    };
    this.#resting.set(name, { cancel: after(newsIntervalMs, end, { unref: true }), isPending: false });
    this.#tell(name);
  }
}
