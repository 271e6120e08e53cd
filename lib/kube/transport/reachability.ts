import { becomes } from '../../base/index.ts';
import { ConnectionError } from '../errors.ts';

/** Whether an API server can be reached, as the requests to it show. */
export class Reachability {
  #isAway = false;
  readonly #onAnswer = new Set<() => void>();

  /** Takes note of an attempt that failed. One that may have reached the server says nothing. */
  failed(error: unknown): void {
    this.#isAway ||= error instanceof ConnectionError && !error.sent;
  }

  /** The server has answered, whatever it said. */
  answered(): void {
    if (!this.#isAway) {
      return;
    }
    this.#isAway = false;
    for (const look of [...this.#onAnswer]) {
      look();
    }
  }

  /** Resolves with true as soon as the server answers, at once if it is not away; with false after `ms` or when aborted. */
  returns(ms: number, signal: AbortSignal): Promise<boolean> {
    return becomes(
      () => !this.#isAway,
      (look) => {
        this.#onAnswer.add(look);
        return () => this.#onAnswer.delete(look);
      },
      ms,
      signal,
    );
  }
}
