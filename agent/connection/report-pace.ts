import type { Message } from '../../lib/argocd/index.ts';
import type { Logger } from '../../lib/base/index.ts';
import { after } from '../../lib/base/index.ts';

interface Ids {
  readonly resourceId: string;
  readonly eventId: string;
}

/**
 * Spaces reports about one Application (`--buffer-informer-event-interval`): the engine sends the next one, with the
 * current state, after the acknowledgement of the one before, so this passes the acknowledgement on with a delay. The first
 * report after a quiet time is sent at once; creations and deletions are never delayed.
 */
export class ReportPace {
  readonly #intervalMs: number;
  readonly #logger: Pick<Logger, 'debug'>;
  /** The last report about each Application, by `resourceid`. */
  readonly #last = new Map<string, { readonly eventId: string; readonly at: number }>();
  readonly #waiting = new Set<() => void>();

  /** `intervalMs`: 0 holds nothing back. */
  constructor(intervalMs: number, logger: Pick<Logger, 'debug'>) {
    this.#intervalMs = intervalMs;
    this.#logger = logger;
  }

  /** A message was sent, or sent again. */
  sent(message: Message): void {
    if (this.#intervalMs <= 0 || message.target !== 'application') {
      return;
    }
    if (message.type !== 'status-update' && message.type !== 'spec-update') {
      return;
    }
    const { resourceId, eventId } = message;
    if (this.#last.get(resourceId)?.eventId === eventId) {
      return;
    }
    this.#last.set(resourceId, { eventId, at: performance.now() });
  }

  /** The principal acknowledged an event: calls `pass` at once or when the Application may be reported on again. */
  acknowledged(ids: Ids, pass: () => void): void {
    const last = this.#last.get(ids.resourceId);
    const waitMs = last?.eventId === ids.eventId ? last.at + this.#intervalMs - performance.now() : 0;
    if (last?.eventId === ids.eventId) {
      this.#last.delete(ids.resourceId);
    }
    if (waitMs <= 0) {
      pass();
      return;
    }
    this.#logger.debug({ ...ids, waitMs: Math.round(waitMs) }, 'the next report about this Application waits');
    const cancel = after(waitMs, () => {
      this.#waiting.delete(cancel);
      pass();
    });
    this.#waiting.add(cancel);
  }

  /** The connection has ended: pending acknowledgements are dropped. */
  close(): void {
    for (const cancel of this.#waiting) {
      cancel();
    }
    this.#waiting.clear();
    this.#last.clear();
  }
}
