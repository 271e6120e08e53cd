/** How long a principal may take to take a connection, at first and at most. */
const shortestMs = 15_000;
const longestMs = 60_000;

/**
 * How long an agent waits for a principal to take its connection; for the answer to the login it waits twice as long. A
 * principal that a whole fleet comes back to may be slow: agents that give up come again, and what it has done for them so far
 * was for nothing. So who gave up waits longer the next time.
 */
export class Patience {
  #ms = shortestMs;

  get connectMs(): number {
    return this.#ms;
  }

  get loginMs(): number {
    return 2 * this.#ms;
  }

  /** An attempt failed after so many milliseconds. */
  failedAfter(ms: number): void {
    // One that failed sooner, failed for another reason.
    if (ms >= this.#ms) {
      this.#ms = Math.min(2 * this.#ms, longestMs);
    }
  }

  /** The principal has taken the connection. */
  rewarded(): void {
    this.#ms = shortestMs;
  }
}
