import type { EventWriter } from '../peer/index.ts';
import { extensionOf, type GoEvent, targetOf, typeOf } from './go-event.ts';

/** How fast a {@link GoEventWriter} works. The originals: 100 ms, 5 s, four times as long, at most 2 min, up to twice that. */
export interface Pace {
  readonly tickMs: number;
  readonly resendMs: number;
}

/** A tenth of the originals' times, so that tests see resends. */
export const fastPace: Pace = { tickMs: 10, resendMs: 500 };

interface Sent {
  readonly event: GoEvent;
  retryAt: number;
  waitMs: number;
}

const factor = 4;
const capOfBase = 24;

/**
 * Delivery as both originals do it: every tick the resources that have something to send in random order, of each at most
 * one event that is not acknowledged, which is repeated ever more rarely and again at once on a new stream. Also with their
 * faults: what is superseded is not taken back once sent, and acknowledgements wait behind events with the same `resourceid`.
 */
export class GoEventWriter implements EventWriter<GoEvent> {
  readonly #pace: Pace;
  readonly #random: () => number;
  readonly #unsent = new Map<string, GoEvent[]>();
  readonly #sent = new Map<string, Sent>();
  #send: ((event: GoEvent) => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** How often an event was sent again because no acknowledgement came in time. */
  resends = 0;

  constructor(options: { readonly pace: Pace; readonly random: () => number }) {
    this.#pace = options.pace;
    this.#random = options.random;
  }

  get isIdle(): boolean {
    return this.#sent.size === 0 && this.#unsent.size === 0;
  }

  get unacknowledged(): GoEvent[] {
    return [...this.#sent.values()].map(({ event }) => event);
  }

  add(event: GoEvent): void {
    const resource = extensionOf(event, 'resourceid');
    if (resource === '') {
      return;
    }
    const type = typeOf(event);
    let queue = this.#unsent.get(resource) ?? [];
    if (type === 'delete') {
      this.#sent.delete(resource);
      queue = [];
    } else if (type === 'spec-update' || type === 'status-update') {
      queue = queue.filter((other) => other.type !== event.type);
    }
    this.#unsent.set(resource, [...queue, event]);
  }

  remove(acknowledgement: GoEvent): boolean {
    const resource = extensionOf(acknowledgement, 'resourceid');
    const id = extensionOf(acknowledgement, 'eventid');
    const sent = this.#sent.get(resource);
    if (sent !== undefined && extensionOf(sent.event, 'eventid') === id) {
      return this.#sent.delete(resource);
    }
    const [front, ...rest] = this.#unsent.get(resource) ?? [];
    if (front === undefined || extensionOf(front, 'eventid') !== id) {
      return false;
    }
    this.#keep(resource, rest);
    return true;
  }

  /** Sends over a (new) stream from now on; what was not acknowledged is due at once. */
  start(send: (event: GoEvent) => void): void {
    this.stop();
    this.#send = send;
    for (const sent of this.#sent.values()) {
      sent.retryAt = 0;
    }
    this.#timer = setInterval(() => this.#tick(), this.#pace.tickMs);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#send = undefined;
  }

  #tick(): void {
    const resources = [...new Set([...this.#unsent.keys(), ...this.#sent.keys()])];
    const shuffled = resources.map((resource) => ({ resource, at: this.#random() })).sort((a, b) => a.at - b.at);
    for (const { resource } of shuffled) {
      this.#sendOne(resource);
    }
  }

  #sendOne(resource: string): void {
    const waiting = this.#sent.get(resource);
    if (waiting !== undefined) {
      if (waiting.retryAt > Date.now()) {
        return;
      }
      if (waiting.retryAt > 0) {
        this.resends += 1;
      }
      this.#schedule(waiting);
      this.#send?.(waiting.event);
      return;
    }
    const [front, ...rest] = this.#unsent.get(resource) ?? [];
    if (front === undefined) {
      return;
    }
    this.#keep(resource, rest);
    if (targetOf(front) === 'eventProcessed' || targetOf(front) === 'heartbeat') {
      this.#send?.(front);
      return;
    }
    const attributes = new Map(front.attributes).set('sentat', { ceString: nanoseconds(new Date(), this.#random) });
    const sent = { event: { ...front, attributes }, retryAt: 0, waitMs: this.#pace.resendMs };
    this.#schedule(sent);
    this.#sent.set(resource, sent);
    this.#send?.(sent.event);
  }

  #schedule(sent: Sent): void {
    sent.retryAt = Date.now() + sent.waitMs * (1 + this.#random());
    sent.waitMs = Math.min(sent.waitMs * factor, this.#pace.resendMs * capOfBase);
  }

  #keep(resource: string, queue: GoEvent[]): void {
    if (queue.length === 0) {
      this.#unsent.delete(resource);
    } else {
      this.#unsent.set(resource, queue);
    }
  }
}

/** RFC 3339 with nanoseconds, as Go writes it. */
function nanoseconds(now: Date, random: () => number): string {
  const fraction = `${now.getUTCMilliseconds()}`.padStart(3, '0') + `${Math.floor(random() * 1e6)}`.padStart(6, '0');
  return `${now.toISOString().slice(0, 19)}.${fraction}`.replace(/\.?0+$/, '').concat('Z');
}
