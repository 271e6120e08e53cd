import {
  acknowledgement,
  type EventStream,
  isAcknowledgement,
  type SessionHandlers,
  type WireEvent,
} from '../../lib/wire/index.ts';
import type { EventWriter, Manners } from './manners.ts';
import { ScriptedPeer } from './peer.ts';

const resendMs = { least: 5_000, spread: 5_000 };

/** Sends at once, and what was not acknowledged again on each new stream, or when that takes too long. */
export class PromptWriter implements EventWriter<WireEvent> {
  readonly #isForgetful: boolean;
  /** Event id → what waits for its acknowledgement. */
  readonly #waiting = new Map<string, { readonly event: WireEvent; dueAt: number }>();
  #send: ((event: WireEvent) => void) | undefined;

  /** @param isForgetful it forgets what it has sent */
  constructor(isForgetful = false) {
    this.#isForgetful = isForgetful;
  }

  get isIdle(): boolean {
    return this.#waiting.size === 0;
  }

  get unacknowledged(): WireEvent[] {
    return Array.from(this.#waiting.values(), ({ event }) => event);
  }

  add(event: WireEvent): void {
    const isKept = this.#send === undefined || !this.#isForgetful;
    if (isKept && !isAcknowledgement(event)) {
      const dueAt = performance.now() + resendMs.least + Math.random() * resendMs.spread;
      this.#waiting.set(event.eventId, { event, dueAt });
    }
    this.#send?.(event);
  }

  remove({ eventId }: WireEvent): boolean {
    return this.#waiting.delete(eventId);
  }

  start(send: (event: WireEvent) => void): void {
    this.#send = send;
    const waiting = this.unacknowledged;
    if (this.#isForgetful) {
      this.#waiting.clear();
    }
    waiting.forEach(send);
  }

  stop(): void {
    this.#send = undefined;
  }

  /** Sends again what was not acknowledged in time. */
  repeat(now = performance.now()): void {
    for (const one of this.#waiting.values()) {
      if (one.dueAt <= now) {
        one.dueAt = now + 4 * resendMs.least;
        this.#send?.(one.event);
      }
    }
  }
}

/** A peer that speaks the events of `lib/wire`. */
export type WirePeer = ScriptedPeer<WireEvent, PromptWriter>;

/** What a {@link WirePeer} does otherwise than an honest one. */
export interface WireManners extends Partial<Manners<WireEvent>> {
  readonly isForgetful?: boolean;
  readonly remembers?: boolean;
}

/** A peer that acknowledges everything, unless its manners are others. */
export function wirePeer(source: string, { isForgetful, remembers = true, ...manners }: WireManners = {}): WirePeer {
  return new ScriptedPeer({
    writer: new PromptWriter(isForgetful),
    reader: {
      targetOf: ({ target }) => target,
      describe: ({ target, type, eventId }) => `${target} ${type} ${eventId}`,
    },
    manners: { acknowledge: (event) => acknowledgement(event, source), ...manners },
    remembers,
  });
}

/** The peer on a stream that was opened: for `onConnected` and `subscribe`. */
export function speakOn(peer: WirePeer, stream: EventStream): SessionHandlers {
  peer.start((event) => stream.send(event));
  return { event: (event) => peer.take(event), closed: () => undefined };
}
