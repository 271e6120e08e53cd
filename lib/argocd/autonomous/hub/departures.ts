import type { Clock } from '../../../sync/index.ts';
import type { ApplicationMessage } from '../../peer/messages.ts';

/** How long an Application may be on its way out before its agent is asked about it, in milliseconds. */
const patienceMs = 30_000;
/** Applications that are watched. A peer may call any number of them so. */
const mostWatched = 1_000;

/**
 * Applications that their agent is deleting, as it reported last. argocd-agent's agents give a deletion the event id of the state
 * before when their watch broke in between; a late acknowledgement of that state then passes for the deletion's, which is not sent.
 * The agent is asked from time to time, until it has said that the Application is gone.
 */
export class Departures {
  readonly #clock: Clock;
  readonly #ask: (name: string) => void;
  /** Name → what cancels the question. */
  readonly #watched = new Map<string, () => void>();

  constructor(options: { readonly clock: Clock; readonly ask: (name: string) => void }) {
    this.#clock = options.clock;
    this.#ask = options.ask;
  }

  /** The agent said this of an Application. */
  received({ type, object: { metadata } }: ApplicationMessage): void {
    const { name, deletionTimestamp } = metadata;
    this.#watched.get(name)?.();
    this.#watched.delete(name);
    if (type !== 'delete' && deletionTimestamp !== undefined && this.#watched.size < mostWatched) {
      const cancel = this.#clock.after(patienceMs, () => {
        this.#watched.delete(name);
        this.#ask(name);
      });
      this.#watched.set(name, cancel);
    }
  }

  /** Stops all timers. */
  close(): void {
    for (const cancel of this.#watched.values()) {
      cancel();
    }
    this.#watched.clear();
  }
}
