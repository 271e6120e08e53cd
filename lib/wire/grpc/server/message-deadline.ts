/** The time that a peer has for one message. It passes only while the peer is waited for. */
export class MessageDeadline {
  readonly #mostMs: number;
  readonly #expired: () => void;
  #leftMs: number;
  #since = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param expired called once the time is over */
  constructor(mostMs: number, expired: () => void) {
    this.#mostMs = mostMs;
    this.#leftMs = mostMs;
    this.#expired = expired;
  }

  /** The peer is waited for. */
  run(): void {
    if (this.#timer === undefined) {
      this.#since = performance.now();
      this.#timer = setTimeout(this.#expired, this.#leftMs).unref();
    }
  }

  /** This side is waited for. */
  suspend(): void {
    if (this.#timer !== undefined) {
      this.#leftMs -= performance.now() - this.#since;
      clearTimeout(this.#timer);
      this.#timer = undefined;
    }
  }

  /** No message has begun. */
  reset(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#leftMs = this.#mostMs;
  }
}
