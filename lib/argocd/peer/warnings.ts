import type { Logger } from '../../base/index.ts';
import { type Clock, systemClock } from '../../sync/index.ts';

const windowMs = 60_000;
const mostPerWindow = 20;

/**
 * Warnings about a peer's messages. A peer could fill the log with them, so at most 20 a minute are written; the next one
 * has the number of suppressed warnings.
 */
export class Warnings {
  readonly #log: Pick<Logger, 'warn'>;
  readonly #clock: Clock;
  #windowEnds = Number.NEGATIVE_INFINITY;
  #written = 0;
  #suppressed = 0;

  constructor(log: Pick<Logger, 'warn'>, clock: Clock = systemClock) {
    this.#log = log;
    this.#clock = clock;
  }

  warn(fields: object, message: string): void {
    const now = this.#clock.now();
    if (now >= this.#windowEnds) {
      this.#windowEnds = now + windowMs;
      this.#written = 0;
    }
    if (this.#written >= mostPerWindow) {
      this.#suppressed++;
      return;
    }
    this.#written++;
    const suppressed = this.#suppressed;
    this.#suppressed = 0;
    this.#log.warn(suppressed === 0 ? fields : { ...fields, suppressedWarnings: suppressed }, message);
  }
}
