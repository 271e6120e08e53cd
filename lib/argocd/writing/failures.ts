import { type Clock, type RetryDelays, retryDelay } from '../../sync/index.ts';

interface Entry {
  readonly message: string;
  readonly source: string;
  readonly attempt: number;
  readonly bytes: number;
  readonly cancelRetry: () => void;
}

const retry: RetryDelays = { baseMs: 2_000, factor: 2, capMs: 300_000, jitter: 0.5 };

/** What stands in the way of objects being as they should, by name. What may pass is tried again ever more rarely. */
export class Failures {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;

  constructor(options: { clock: Clock; random: () => number }) {
    this.#clock = options.clock;
    this.#random = options.random;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** What is remembered for the sake of another attempt, in all. */
  get bytes(): number {
    return this.#bytes;
  }

  /** What is remembered for the sake of another attempt at this one. */
  bytesOf(name: string): number {
    return this.#entries.get(name)?.bytes ?? 0;
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  /** What stands in the way; undefined: nothing that is known. */
  of(name: string): string | undefined {
    return this.#entries.get(name)?.message;
  }

  list(): { readonly name: string; readonly message: string }[] {
    return Array.from(this.#entries, ([name, { message }]) => ({ name, message }));
  }

  /**
   * Something stands in the way; true when it is not what did before.
   * @param again tries again; left out when trying again by itself would not help
   * @param bytes how much is remembered of the object for the sake of another attempt
   * @param source what it stands in the way of: another object of this name has not been told of it
   */
  met(name: string, message: string, again?: () => void, bytes = 0, source = ''): boolean {
    const before = this.#entries.get(name);
    before?.cancelRetry();
    const attempt = (before?.attempt ?? 0) + 1;
    const cancelRetry =
      again === undefined ? () => undefined : this.#clock.after(retryDelay(retry, attempt, this.#random()), again);
    this.#bytes += bytes - (before?.bytes ?? 0);
    this.#entries.set(name, { message, source, attempt, bytes, cancelRetry });
    return before?.message !== message || before.source !== source;
  }

  /** True when there was one. */
  solved(name: string): boolean {
    const entry = this.#entries.get(name);
    entry?.cancelRetry();
    this.#bytes -= entry?.bytes ?? 0;
    return this.#entries.delete(name);
  }

  /** Stops all timers. */
  close(): void {
    for (const { cancelRetry } of this.#entries.values()) {
      cancelRetry();
    }
  }
}
