import type { Runtime } from './runtime.ts';

/**
 * What is to be looked at, in the order in which it came, within the turns of the process; at once while it has time. Of what came
 * twice the last counts.
 */
export class TurnQueue<T> {
  readonly #runtime: Pick<Runtime, 'clock' | 'turns'>;
  readonly #look: (id: string, item: T) => void;
  readonly #waiting = new Map<string, T>();
  readonly #resume = () => this.#work();

  constructor(runtime: Pick<Runtime, 'clock' | 'turns'>, look: (id: string, item: T) => void) {
    this.#runtime = runtime;
    this.#look = look;
  }

  add(id: string, item: T): void {
    this.#waiting.set(id, item);
    this.#work();
  }

  /** It need not be looked at any more. */
  withdraw(id: string): void {
    this.#waiting.delete(id);
  }

  close(): void {
    this.#waiting.clear();
    this.#runtime.turns?.withdraw(this.#resume);
  }

  #work(): void {
    const { clock, turns } = this.#runtime;
    for (const [id, item] of this.#waiting) {
      if (turns?.tryAcquire(this, this.#resume) === false) {
        return;
      }
      const began = clock.now();
      this.#waiting.delete(id);
      this.#look(id, item);
      turns?.used(this, 0, clock.now() - began);
    }
  }
}
