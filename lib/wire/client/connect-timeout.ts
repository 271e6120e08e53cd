/** The timeout for a connection: at first, and at most. */
const shortestMs = 15_000;
const longestMs = 60_000;

/**
 * How long an agent waits for its connection to a principal; for the answer to the login it waits twice as long. A principal
 * may be slow while a whole fleet reconnects, and an agent that gives up costs it the work done so far. Therefore the timeout
 * doubles after an attempt that ran into it.
 */
export class ConnectTimeout {
  #ms = shortestMs;

  get connectMs(): number {
    return this.#ms;
  }

  get loginMs(): number {
    return 2 * this.#ms;
  }

  /** An attempt failed after this time. */
  failedAfter(ms: number): void {
    // An earlier failure has another reason than the timeout.
    if (ms >= this.#ms) {
      this.#ms = Math.min(2 * this.#ms, longestMs);
    }
  }

  /** The principal has accepted the connection. */
  succeeded(): void {
    this.#ms = shortestMs;
  }
}
