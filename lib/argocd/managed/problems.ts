import { type Backoff, backoffDelay, type Clock, type ObjectRef } from '../../sync/index.ts';
import { placeOf } from '../place.ts';

interface Problem {
  readonly message: string;
  readonly attempt: number;
  readonly cancelRetry: () => void;
}

const retryRefused: Backoff = { baseMs: 2_000, factor: 2, capMs: 300_000, jitter: 0.5 };

/** What stands in the way of Applications being as they should, by place. What may pass is tried again ever more rarely. */
export class Problems {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #again: (ref: ObjectRef) => void;
  readonly #problems = new Map<string, Problem>();

  constructor(options: { clock: Clock; random: () => number; again: (ref: ObjectRef) => void }) {
    this.#clock = options.clock;
    this.#random = options.random;
    this.#again = options.again;
  }

  /** Applications that something stands in the way of. */
  get size(): number {
    return this.#problems.size;
  }

  /** What stands in the way; undefined: nothing that is known. */
  of(ref: ObjectRef): string | undefined {
    return this.#problems.get(placeOf(ref))?.message;
  }

  /** Something stands in the way; true when it is not what did before. */
  add(ref: ObjectRef, message: string, mayPass: boolean): boolean {
    const place = placeOf(ref);
    const before = this.#problems.get(place);
    before?.cancelRetry();
    const attempt = (before?.attempt ?? 0) + 1;
    const cancelRetry = mayPass
      ? this.#clock.after(backoffDelay(retryRefused, attempt, this.#random()), () => this.#again(ref))
      : () => undefined;
    this.#problems.set(place, { message, attempt, cancelRetry });
    return before?.message !== message;
  }

  /** Nothing stands in the way any more; true when something did. */
  remove(ref: ObjectRef): boolean {
    this.#problems.get(placeOf(ref))?.cancelRetry();
    return this.#problems.delete(placeOf(ref));
  }

  /** Stops all timers. */
  close(): void {
    for (const { cancelRetry } of this.#problems.values()) {
      cancelRetry();
    }
  }
}
