import type { Clock } from './clock.ts';
import {
  decide,
  type Entry,
  type Flight,
  type FlightOutcome,
  type Next,
  type PeerCopy,
  removal,
  settle,
} from './decision.ts';
import { FlightWindow } from './flight-window.ts';
import { keyString, type Link, type ResourceKey, type Source } from './resource.ts';
import { type RetryDelays, retryDelay } from './retry-delay.ts';
import type { Runtime, Tuning } from './runtime.ts';

/** How an {@link Outbox} works. */
export interface OutboxOptions<T> {
  readonly source: Source<T>;
  readonly runtime: Pick<Runtime, 'clock' | 'random'>;
  /** Of a peer that is slow fewer resources are in flight at once than the tuning allows. */
  readonly tuning?: Tuning | undefined;
  /** Whether a resource that is gone at the source is deleted at the peer. Default true. False: nothing is said about it. */
  readonly sendsDeletes?: boolean;
  /**
   * Whether a new incarnation takes the place of the one before at the peer. Default true. False: the peer has to hear first
   * that the one before is gone.
   */
  readonly replaces?: boolean;
  /** Called whenever nothing is left to send or to be acknowledged. */
  readonly onIdle?: () => void;
}

/** Resources that are none of the source's and are being taken away from the peer at once. */
const mostStrays = 50_000;
/** Incarnations of one resource that a peer may claim to have. */
const mostCopies = 100;
/** What is asked for may wait at the peer for what is to be said next. */
const intentPatienceMs = 1_000;
/** As argocd-agent: 5-10 s, then four times as long, at most 2-4 min. */
const defaultResend: RetryDelays = { baseMs: 5_000, factor: 4, capMs: 120_000, jitter: 1 };

/**
 * Keeps one peer in step with a source. It holds no events, only which resources may be out of step and what the peer
 * acknowledged of each; what to send is decided from the source at the moment of sending.
 *
 * Invariants:
 * 1. A resource that may be out of step is queued or in flight. Nothing is forgotten, also not by a lost link.
 * 2. At most one unacknowledged event per resource. A change meanwhile is sent after the acknowledgement or, if none
 *    comes in time, instead of a resend.
 * 3. `held` is what the peer acknowledged last of what was sent last, or its own word; nothing else sets it.
 * 4. An incarnation that was sent is deleted at the peer, or replaced there by another, before its resource is
 *    forgotten: a lost acknowledgement leaves no phantom.
 * 5. The queue is first in, first out. As much is in flight as the peer works off in about a second: what waits, waits
 *    here, where it can still become something newer. What is acknowledged late, while the peer goes on acknowledging what
 *    was sent before, is not sent again. What is never acknowledged takes no place from the others, and is sent again ever
 *    more rarely.
 * 6. An intent is sent when the peer has acknowledged the present state of its resource, and always under the same
 *    event id, so that a peer that gets it twice does it once. A peer may take its time with it: what is to be said
 *    meanwhile does not wait for that, and a late acknowledgement counts.
 * 7. Every method changes state and then calls `#evaluate`, the only place that sends. An event costs O(1).
 * 8. Memory is bounded by what the source has and had, whatever the peer claims.
 */
export class Outbox<T> {
  readonly #source: Source<T>;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #resend: RetryDelays;
  readonly #sendsDeletes: boolean;
  readonly #replaces: boolean;
  readonly #onIdle: (() => void) | undefined;

  readonly #entries = new Map<string, Entry>();
  /** Out of step and not in flight. */
  readonly #queue = new Set<Entry>();
  /** Event → the resource that waits for its acknowledgement, in the order of sending. */
  readonly #flights = new Map<string, Entry>();
  readonly #window: FlightWindow;
  /** Intents that something else has overtaken, by event. */
  readonly #overtaken = new Map<string, { readonly entry: Entry; readonly outcome: FlightOutcome }>();

  #link: Link<T> | undefined;
  /** The link refused; it will call `writable`. */
  #full = false;
  #evaluating = false;
  #again = false;
  #alarm: { readonly at: number; readonly cancel: () => void } | undefined;

  constructor(options: OutboxOptions<T>) {
    this.#source = options.source;
    const { clock, random } = options.runtime;
    const { maxInFlight = 256, resend = defaultResend } = options.tuning ?? {};
    this.#clock = clock;
    this.#random = random;
    this.#resend = resend;
    this.#window = new FlightWindow({ most: maxInFlight, resendMs: resend.baseMs });
    this.#sendsDeletes = options.sendsDeletes ?? true;
    this.#replaces = options.replaces ?? true;
    this.#onIdle = options.onIdle;
  }

  /** Resources that may be out of step, sent or not. */
  get pending(): number {
    return this.#queue.size + this.#flights.size;
  }

  /** Resources of which something is known, be they in step or not. */
  get size(): number {
    return this.#entries.size;
  }

  /** Whether anything is known of a resource: that the peer has it, may have it, or is to be told of it. */
  knows(key: ResourceKey): boolean {
    return this.#entries.has(keyString(key));
  }

  /** Resources with an unacknowledged event. */
  get inFlight(): number {
    return this.#flights.size;
  }

  /** The resource may have changed at the source: created, updated, deleted, re-created. */
  changed(key: ResourceKey): void {
    this.#outOfStep(this.#entry(key));
    this.#evaluate();
  }

  /**
   * Tells the peer the present state once more, whatever it acknowledged: it needs to hear it at a later moment, or it may
   * have lost it. What is in flight does not count as told.
   */
  repeat(key: ResourceKey): void {
    this.#forget(this.#entry(key));
    this.#evaluate();
  }

  /**
   * Asks for a one-shot intent about the resource as it is now. It replaces one of the same name that is not
   * acknowledged yet, and is dropped when the resource goes away.
   */
  request(key: ResourceKey, intent: string): void {
    const now = this.#source.read(key);
    if (now !== undefined) {
      const entry = this.#entry(key);
      entry.intents ??= new Map();
      entry.intents.set(intent, { uid: now.uid, version: now.version });
      this.#outOfStep(entry);
    }
    this.#evaluate();
  }

  /** Takes back an intent that is not acknowledged yet. */
  withdraw(key: ResourceKey, intent: string): void {
    this.#entries.get(keyString(key))?.intents?.delete(intent);
  }

  /** Whether an intent was requested and is not acknowledged yet. */
  requested(key: ResourceKey, intent: string): boolean {
    return this.#entries.get(keyString(key))?.intents?.has(intent) ?? false;
  }

  /** What the peer acknowledged last, or said to have; without digest while it may have another state by now. */
  held(key: ResourceKey): PeerCopy | undefined {
    return this.#entries.get(keyString(key))?.held;
  }

  /** A link is there. It replaces an earlier one. */
  connected(link: Link<T>): void {
    this.#land();
    this.#link = link;
    this.#evaluate();
  }

  /** The link is gone. What was in flight is out of step again. */
  disconnected(): void {
    this.#land();
    this.#link = undefined;
    this.#evaluate();
  }

  /** The link takes more after it had refused. */
  writable(): void {
    this.#full = false;
    this.#evaluate();
  }

  /**
   * The peer processed an event. False when nothing waits for it: an older event that a newer one has superseded, one of
   * an earlier link, or none of ours.
   */
  acknowledged(resourceId: string, eventId: string): boolean {
    const event = eventKey(resourceId, eventId);
    const entry = this.#flights.get(event);
    if (entry?.flight === undefined) {
      return this.#acknowledgedLate(event);
    }
    settle(entry, entry.flight.outcome);
    if (!this.#sendsDeletes) {
      entry.copies.clear();
    }
    const now = this.#clock.now();
    this.#window.answered(entry.flight, now - entry.unansweredSince, now);
    this.#endFlight(entry, entry.flight);
    entry.unanswered = '';
    entry.timeouts = 0;
    this.#queue.add(entry);
    this.#evaluate();
    return true;
  }

  /**
   * The peer's own word on what it has; undefined: it has none. While a state or a deletion is in flight, only its
   * existence counts, because the acknowledgement will be newer. What a peer claims beyond any measure is not heard.
   */
  peerHolds(key: ResourceKey, copy: PeerCopy | undefined): void {
    const known = this.#entries.get(keyString(key));
    if (known === undefined && this.pending >= mostStrays && this.#source.read(key) === undefined) {
      return;
    }
    if (known !== undefined && known.copies.size >= mostCopies) {
      return;
    }
    const entry = this.#entry(key);
    if (entry.flight === undefined || entry.flight.outcome.is === 'intent') {
      this.#forget(entry);
      entry.held = copy;
      entry.copies.clear();
    }
    if (copy !== undefined && !entry.copies.has(copy.uid)) {
      entry.copies.set(copy.uid, '');
    }
    this.#outOfStep(entry);
    this.#evaluate();
  }

  /**
   * The peer was seen to have this incarnation, whatever was sent: it may have made it of something that an earlier process
   * sent. Nothing is told because of that, but the incarnation is not forgotten before it is deleted there.
   */
  seen(key: ResourceKey, uid: string): void {
    const copies = this.#entries.get(keyString(key))?.copies;
    if (copies?.has(uid) !== true && (copies?.size ?? 0) < mostCopies) {
      this.#entry(key).copies.set(uid, '');
    }
  }

  /** Repeats everything: the peer may have lost or changed what it acknowledged. */
  repeatAll(): void {
    for (const entry of this.#entries.values()) {
      this.#forget(entry);
    }
    this.#evaluate();
  }

  /** Stops all timers. The outbox must not be used afterwards. */
  close(): void {
    this.#link = undefined;
    this.#alarm?.cancel();
    this.#alarm = undefined;
  }

  #acknowledgedLate(event: string): boolean {
    const late = this.#overtaken.get(event);
    if (late === undefined) {
      return false;
    }
    this.#overtaken.delete(event);
    settle(late.entry, late.outcome);
    if (late.entry.flight === undefined && this.#entries.get(keyString(late.entry.key)) === late.entry) {
      this.#queue.add(late.entry);
    }
    this.#evaluate();
    return true;
  }

  #evaluate(): void {
    if (this.#evaluating) {
      this.#again = true;
      return;
    }
    this.#evaluating = true;
    try {
      do {
        this.#again = false;
        this.#landOverdue();
        this.#sendQueued();
      } while (this.#again);
    } finally {
      this.#evaluating = false;
    }
    if (this.pending === 0) {
      this.#onIdle?.();
    }
  }

  #sendQueued(): void {
    if (this.#link === undefined) {
      return;
    }
    for (const entry of this.#queue) {
      if (this.#full || this.#window.isFull) {
        return;
      }
      const next = this.#next(entry);
      if (next === undefined) {
        this.#queue.delete(entry);
        this.#dropIfEmpty(entry);
      } else {
        this.#send(this.#link, entry, next);
      }
    }
  }

  #next(entry: Entry): Next<T> | undefined {
    const now = this.#source.read(entry.key);
    return (this.#replaces ? undefined : removal(entry, now)) ?? decide(entry, now);
  }

  #send(link: Link<T>, entry: Entry, next: Next<T>): void {
    const event = eventKey(next.delivery.resourceId, next.delivery.eventId);
    const now = this.#clock.now();
    if (entry.unanswered !== event) {
      entry.unanswered = event;
      entry.unansweredSince = now;
      entry.timeouts = 0;
    }
    const flight: Flight = {
      event,
      outcome: next.outcome,
      sentAt: now,
      dueAt: now + retryDelay(this.#resend, entry.timeouts + 1, this.#random()) + this.#usualWait(),
      isRepeated: entry.timeouts > 0,
    };
    entry.flight = flight;
    this.#flights.set(event, entry);
    this.#overtaken.delete(event);
    if (!flight.isRepeated) {
      this.#window.enter(flight);
    }
    if (!link.send(next.delivery)) {
      this.#endFlight(entry, flight);
      if (!flight.isRepeated) {
        entry.unanswered = '';
      }
      this.#full = true;
      return;
    }
    if (entry.flight === flight) {
      // Else it was acknowledged on the spot, and is queued to be looked at again.
      this.#queue.delete(entry);
    }
    if (next.outcome.is === 'held' && entry.flight === flight) {
      // From now on the peer may have the old state or the new one, and only its word tells which.
      entry.held = entry.held === undefined ? undefined : { uid: entry.held.uid };
      if (this.#sendsDeletes) {
        entry.copies.set(next.outcome.copy.uid, next.outcome.version);
      }
    }
    this.#wakeAt(flight.dueAt);
  }

  #forget(entry: Entry): void {
    entry.held = undefined;
    entry.mark = `_${Math.floor(this.#random() * 2 ** 40).toString(36)}`;
    this.#outOfStep(entry);
  }

  #outOfStep(entry: Entry): void {
    const flight = entry.flight;
    if (flight === undefined) {
      this.#queue.add(entry);
      return;
    }
    if (flight.outcome.is === 'intent') {
      const next = this.#next(entry)?.delivery;
      if (next === undefined || eventKey(next.resourceId, next.eventId) !== flight.event) {
        flight.dueAt = Math.min(flight.dueAt, flight.sentAt + intentPatienceMs);
        this.#wakeAt(flight.dueAt);
      }
    } else if (flight.isRepeated) {
      // The peer had its time with the old state. The new one may be what it can take, so it need not wait as long.
      flight.dueAt = Math.min(flight.dueAt, flight.sentAt + this.#resend.baseMs + this.#usualWait());
      this.#wakeAt(flight.dueAt);
    }
  }

  #endFlight(entry: Entry, flight: Flight): void {
    this.#flights.delete(flight.event);
    this.#window.leave(flight);
    entry.flight = undefined;
  }

  /** What was in flight on a link that is no more goes behind what waits, so that none can starve the others. */
  #land(): void {
    this.#full = false;
    this.#overtaken.clear();
    this.#window.reset();
    for (const entry of [...this.#flights.values()]) {
      if (entry.flight !== undefined) {
        entry.unanswered = '';
        this.#endFlight(entry, entry.flight);
        entry.timeouts = 0;
        this.#queue.add(entry);
      }
    }
  }

  #landOverdue(): void {
    const now = this.#clock.now();
    if (this.#alarm === undefined || this.#alarm.at > now) {
      return;
    }
    this.#alarm = undefined;
    let next = Number.POSITIVE_INFINITY;
    const lost: Flight[] = [];
    for (const entry of [...this.#flights.values()]) {
      const flight = entry.flight;
      if (flight !== undefined && flight.dueAt <= now && this.#isLate(flight, now)) {
        flight.dueAt = now + this.#resend.baseMs;
      }
      if (flight !== undefined && flight.dueAt <= now) {
        this.#endFlight(entry, flight);
        if (flight.outcome.is === 'intent') {
          this.#overtaken.set(flight.event, { entry, outcome: flight.outcome });
        } else if (!flight.isRepeated) {
          lost.push(flight);
        }
        entry.timeouts += 1;
        this.#queue.add(entry);
      } else {
        next = Math.min(next, flight?.dueAt ?? next);
      }
    }
    this.#window.lost(lost, now);
    this.#wakeAt(next);
  }

  /** An intent may be overtaken, and what is sent again was given up before. */
  #isLate(flight: Flight, now: number): boolean {
    return flight.outcome.is !== 'intent' && !flight.isRepeated && this.#window.isLate(flight, now);
  }

  /** What the peer may take for an answer, by what it took lately. */
  #usualWait(): number {
    return Math.min(2 * this.#window.latencyMs, this.#resend.capMs);
  }

  #wakeAt(at: number): void {
    if (at === Number.POSITIVE_INFINITY || (this.#alarm !== undefined && this.#alarm.at <= at)) {
      return;
    }
    this.#alarm?.cancel();
    const cancel = this.#clock.after(Math.max(0, at - this.#clock.now()), () => this.#evaluate());
    this.#alarm = { at, cancel };
  }

  #entry(key: ResourceKey): Entry {
    const id = keyString(key);
    let entry = this.#entries.get(id);
    if (entry === undefined) {
      entry = {
        key,
        held: undefined,
        copies: new Map(),
        intents: undefined,
        mark: '',
        flight: undefined,
        timeouts: 0,
        unanswered: '',
        unansweredSince: 0,
      };
      this.#entries.set(id, entry);
    }
    return entry;
  }

  #dropIfEmpty(entry: Entry): void {
    if (entry.held === undefined && entry.copies.size === 0 && (entry.intents?.size ?? 0) === 0) {
      this.#entries.delete(keyString(entry.key));
    }
  }
}

function eventKey(resourceId: string, eventId: string): string {
  return `${resourceId}/${eventId}`;
}
