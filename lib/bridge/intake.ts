import type { WireEvent } from '../wire/index.ts';

/** How much a peer may send before it must wait for what it sent to be worked off. */
export interface IntakeLimits {
  readonly maxEvents: number;
  readonly maxBytes: number;
}

/** What a peer has sent on a connection and we have not acknowledged yet. A copy of an event counts once. */
export class Intake {
  readonly #limits: IntakeLimits;
  readonly #unanswered = new Map<string, number>();
  #bytes = 0;

  constructor(limits: IntakeLimits) {
    this.#limits = limits;
  }

  /** Whether the peer should wait. One event may be larger than the limit. */
  get isFull(): boolean {
    return this.#unanswered.size >= this.#limits.maxEvents || this.#bytes >= this.#limits.maxBytes;
  }

  received(event: WireEvent): void {
    const key = keyOf(event);
    this.#forget(key);
    this.#unanswered.set(key, event.data.byteLength);
    this.#bytes += event.data.byteLength;
  }

  acknowledged(event: Pick<WireEvent, 'resourceId' | 'eventId'>): void {
    this.#forget(keyOf(event));
  }

  #forget(key: string): void {
    this.#bytes -= this.#unanswered.get(key) ?? 0;
    this.#unanswered.delete(key);
  }
}

function keyOf({ resourceId, eventId }: Pick<WireEvent, 'resourceId' | 'eventId'>): string {
  return `${resourceId}\n${eventId}`;
}
