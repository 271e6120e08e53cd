import type { Clock } from '../../sync/index.ts';

/** Nobody has to hear of what passes sooner. With the delays between attempts it is told within a minute. */
const graceMs = 20_000;

/** For how long attempts have failed, by name. */
export class LastingFailures {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #since = new Map<string, number>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** An attempt has failed: whether attempts have failed for so long that people have to hear of it. */
  isLasting(name: string): boolean {
    const now = this.#clock.now();
    const since = this.#since.get(name) ?? now;
    this.#since.set(name, since);
    return now - since >= graceMs;
  }

  /** An attempt has succeeded, or none is made any more. */
  solved(name: string): void {
    this.#since.delete(name);
  }
}
