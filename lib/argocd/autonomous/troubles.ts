import { type Backoff, backoffDelay, type Clock } from '../../sync/index.ts';

/** An Application or AppProject of an autonomous agent that cannot be shown on the hub as it is. */
export interface MirrorTrouble {
  readonly agent: string;
  /** Left out: Application. */
  readonly kind?: 'Application' | 'AppProject';
  /** As the agent calls it. */
  readonly name: string;
  readonly message: string;
}

interface Entry {
  readonly message: string;
  readonly attempt: number;
  readonly cancelRetry: () => void;
}

const retry: Backoff = { baseMs: 2_000, factor: 2, capMs: 300_000, jitter: 0.5 };

/** What stands in the way of mirrors, by name, each told once and perhaps tried again from time to time. */
export class Troubles {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #told: (name: string, message: string) => void;
  readonly #entries = new Map<string, Entry>();

  constructor(options: { clock: Clock; random: () => number; told: (name: string, message: string) => void }) {
    this.#clock = options.clock;
    this.#random = options.random;
    this.#told = options.told;
  }

  get size(): number {
    return this.#entries.size;
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  list(): { readonly name: string; readonly message: string }[] {
    return Array.from(this.#entries, ([name, { message }]) => ({ name, message }));
  }

  /** @param again tries again; left out when trying again by itself would not help */
  met(name: string, message: string, again?: () => void): void {
    const before = this.#entries.get(name);
    before?.cancelRetry();
    const attempt = (before?.attempt ?? 0) + 1;
    const cancelRetry =
      again === undefined ? () => undefined : this.#clock.after(backoffDelay(retry, attempt, this.#random()), again);
    this.#entries.set(name, { message, attempt, cancelRetry });
    if (before?.message !== message) {
      this.#told(name, message);
    }
  }

  /** True when there was one. */
  solved(name: string): boolean {
    this.#entries.get(name)?.cancelRetry();
    return this.#entries.delete(name);
  }

  /** Stops all timers. */
  close(): void {
    for (const { cancelRetry } of this.#entries.values()) {
      cancelRetry();
    }
  }
}
