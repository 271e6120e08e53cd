/** Waiting times that double up to a limit, each random between its half and its whole. */
export class Backoff {
  readonly #initialMs: number;
  readonly #maxMs: number;
  readonly #random: () => number;
  #currentMs: number;

  constructor(options: { readonly initialMs: number; readonly maxMs: number; readonly random?: () => number }) {
    this.#initialMs = options.initialMs;
    this.#maxMs = options.maxMs;
    this.#random = options.random ?? Math.random;
    this.#currentMs = options.initialMs;
  }

  /** The next waiting time in milliseconds. */
  next(): number {
    const whole = this.#currentMs;
    this.#currentMs = Math.min(whole * 2, this.#maxMs);
    return Math.round(whole / 2 + (this.#random() * whole) / 2);
  }

  /** Starts over, after something worked. */
  reset(): void {
    this.#currentMs = this.#initialMs;
  }
}
