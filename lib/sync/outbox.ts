import type { Clock } from './clock.ts';
import {
  decide,
  type Entry,
  eventKey,
  type Flight,
  type FlightOutcome,
  type Next,
  newEntry,
  type PeerCopy,
  removal,
  sentVersion,
  settle,
  takeTurns,
} from './decision.ts';
import { EventMarks } from './event-marks.ts';
import { FlightWindow } from './flight-window.ts';
import { beInStep, catchUp, fallBehind, type LateEntry, lateEntries, oldestLag } from './lag.ts';
import { keyString, type Link, type ResourceKey, type Source } from './resource.ts';
import { type RetryDelays, retryDelay } from './retry-delay.ts';
import type { Runtime, Tuning } from './runtime.ts';

/** How an {@link Outbox} works. */
export interface OutboxOptions<T> {
  readonly source: Source<T>;
  readonly runtime: Pick<Runtime, 'clock' | 'random' | 'delivered' | 'turns'>;
  /** A slow peer has fewer resources in flight at once than the tuning allows. */
  readonly tuning?: Tuning | undefined;
  /** Whether a resource that is gone at the source is deleted at the peer. Default true. False: nothing is sent about it. */
  readonly sendsDeletes?: boolean;
  /**
   * Whether a new incarnation replaces the previous one at the peer. Default true. False: the deletion of the previous one
   * is sent first.
   */
  readonly replaces?: boolean;
  /** Called whenever nothing is left to send or to be acknowledged. */
  readonly onIdle?: () => void;
}

/** Resources unknown to the source that are being deleted at the peer at once. */
const mostStrays = 50_000;
/** Incarnations of one resource that a peer may report. */
const mostCopies = 100;
/** An unacknowledged intent delays a newer state for at most this time. */
const intentPatienceMs = 1_000;
/** As argocd-agent: 5-10 s, then four times as long, at most 2-4 min. */
const defaultResend: RetryDelays = { baseMs: 5_000, factor: 4, capMs: 120_000, jitter: 1 };

/**
 * Keeps one peer equal to a source. It stores no events. It stores which resources may differ and which state of each the
 * peer acknowledged. It reads the source at the moment of sending to decide what to send.
 *
 * Invariants:
 * 1. A resource that may differ is queued or in flight, also after a lost link.
 * 2. At most one unacknowledged event per resource. A change meanwhile is sent after the acknowledgement or, if none
 *    comes in time, instead of a resend.
 * 3. `held` is the state that the peer acknowledged last or reported; nothing else sets it.
 * 4. The record of a resource is dropped only after each incarnation that was sent is deleted or replaced at the peer. A
 *    lost acknowledgement leaves no orphan there.
 * 5. The queue is first in, first out. The events in flight are those that the peer processes in about a second. The rest
 *    waits here, where it can still become newer. A late event is not resent while the peer acknowledges earlier ones. An
 *    event that is never acknowledged does not block others, and is resent with growing delays.
 * 6. An intent is sent when the peer has acknowledged the present state of its resource, and always under the same
 *    event id, so that a peer that receives it twice executes it once. The peer may acknowledge it late; newer states do
 *    not wait for that, nor do other intents, and the late acknowledgement counts.
 * 7. Every method changes state and then calls `#evaluate`, the only place that sends. An event costs O(1). When the process has
 *    used up its turn of the event loop, the rest of the queue is looked at in a later one.
 * 8. Nothing is sent about what the source withholds. Its record and its intents stay.
 * 9. Memory is bounded by the objects that the source has and had, whatever the peer reports.
 */
export class Outbox<T> {
  readonly #source: Source<T>;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #resend: RetryDelays;
  readonly #sendsDeletes: boolean;
  readonly #replaces: boolean;
  readonly #onIdle: (() => void) | undefined;
  readonly #delivered: Runtime['delivered'];

  readonly #entries = new Map<string, Entry>();
  /** Resources that may differ and are not in flight. */
  readonly #queue = new Set<Entry>();
  /** Event → the resource that waits for its acknowledgement, in the order of sending. */
  readonly #flights = new Map<string, Entry>();
  readonly #window: FlightWindow;
  /** Unacknowledged intents that no longer block their resource, by event. */
  readonly #overtaken = new Map<string, { readonly entry: Entry; readonly outcome: FlightOutcome }>();

  readonly #marks: EventMarks;
  readonly #turns: Runtime['turns'];
  readonly #nextTurn = () => this.#evaluate();

  #link: Link<T> | undefined;
  /** The link refused; it will call `writable`. */
  #full = false;
  #evaluating = false;
  #again = false;
  #alarm: { readonly at: number; readonly cancel: () => void } | undefined;

  constructor(options: OutboxOptions<T>) {
    this.#source = options.source;
    const { clock, random, delivered, turns } = options.runtime;
    const { maxInFlight = 256, resend = defaultResend } = options.tuning ?? {};
    this.#clock = clock;
    this.#random = random;
    this.#marks = new EventMarks(random);
    this.#delivered = delivered;
    this.#turns = turns;
    this.#resend = resend;
    this.#window = new FlightWindow({ most: maxInFlight, resendMs: resend.baseMs });
    this.#sendsDeletes = options.sendsDeletes ?? true;
    this.#replaces = options.replaces ?? true;
    this.#onIdle = options.onIdle;
  }

  /** Resources that may differ at the peer, sent or not. */
  get pending(): number {
    return this.#queue.size + this.#flights.size;
  }

  /** For how long the oldest of these has been one, in milliseconds. */
  get oldestMs(): number {
    const now = this.#clock.now();
    return Math.max(oldestLag(this.#queue, now), oldestLag(this.#flights.values(), now));
  }

  /** Some of these that have been one for longer than `afterMs`, at most `most`, and for how long, in milliseconds. */
  late(afterMs: number, most: number): LateEntry[] {
    return lateEntries([this.#queue, this.#flights.values()], this.#clock.now(), afterMs, most);
  }

  /** Resources with a record, whether equal at the peer or not. */
  get size(): number {
    return this.#entries.size;
  }

  /** Whether a resource has a record: the peer has it, may have it, or will receive it. */
  knows(key: ResourceKey): boolean {
    return this.#entries.has(keyString(key));
  }

  /** Whether the peer has a resource, or may have it: it reported it, or it was sent. */
  isHeld(key: ResourceKey): boolean {
    const entry = this.#entries.get(keyString(key));
    return entry !== undefined && (entry.held !== undefined || entry.copies.size > 0);
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
   * Sends the present state once more, whatever the peer acknowledged: the peer needs it at a later moment, or may have
   * lost it. An event in flight does not count.
   * @param copy the copy that the peer certainly has, in whatever state: it is updated. Default: the peer may have none.
   */
  repeat(key: ResourceKey, copy?: Pick<PeerCopy, 'uid'>): void {
    const entry = this.#entry(key);
    this.#forget(entry);
    entry.held = copy;
    this.#evaluate();
  }

  /** Whether the present state was sent, acknowledged or not, and is not to be sent once more. */
  isSent(key: ResourceKey): boolean {
    const entry = this.#entries.get(keyString(key));
    const now = this.#source.read(key);
    const outcome = entry?.flight?.outcome;
    const sent = outcome?.is === 'held' && outcome.mark === entry?.mark ? outcome.copy : entry?.held;
    return now !== undefined && sent?.uid === now.uid && sent.digest === now.digest;
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
      if (entry.flight?.outcome.is === 'intent') {
        takeTurns(entry, entry.flight.outcome);
      }
      this.#outOfStep(entry);
    }
    this.#evaluate();
  }

  /** Withdraws an intent that is not acknowledged yet. */
  withdraw(key: ResourceKey, intent: string): void {
    this.#entries.get(keyString(key))?.intents?.delete(intent);
  }

  /** Whether an intent was requested and is not acknowledged yet. */
  requested(key: ResourceKey, intent: string): boolean {
    return this.#entries.get(keyString(key))?.intents?.has(intent) ?? false;
  }

  /** The state that the peer acknowledged or reported last; without digest while it may have another state by now. */
  held(key: ResourceKey): PeerCopy | undefined {
    return this.#entries.get(keyString(key))?.held;
  }

  /** A link is there. It replaces an earlier one. */
  connected(link: Link<T>): void {
    this.#land();
    this.#link = link;
    this.#evaluate();
  }

  /** The link is gone. Resources in flight are queued again. */
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
    const lagMs = catchUp(entry, entry.flight.outcome, now);
    if (lagMs !== undefined) {
      this.#delivered?.({ key: entry.key, lagMs, object: this.#source.read(entry.key)?.object });
    }
    this.#endFlight(entry, entry.flight);
    entry.unanswered = '';
    entry.timeouts = 0;
    this.#queue.add(entry);
    this.#evaluate();
    return true;
  }

  /**
   * The peer reported its copy; undefined: it has none. While a state or a deletion is in flight, only the existence
   * counts, because the acknowledgement will be newer. A report of none may be older than what the peer acknowledged: what
   * was sent is sent again, and if the resource goes away first, the deletion is. Reports beyond the bounds are ignored.
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
      if (copy !== undefined) {
        entry.copies.clear();
      }
    }
    if (copy !== undefined && !entry.copies.has(copy.uid)) {
      entry.copies.set(copy.uid, '');
    }
    this.#outOfStep(entry);
    this.#evaluate();
  }

  /**
   * The peer has this incarnation, whatever this process sent: it may come from an event of an earlier process. This sends
   * nothing, but the record stays until the incarnation is deleted at the peer.
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
    this.#turns?.withdraw(this.#nextTurn);
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
      if (this.#full || this.#window.isFull || this.#turns?.tryAcquire(this, this.#nextTurn) === false) {
        return;
      }
      const began = this.#clock.now();
      const next = this.#next(entry);
      if (next === undefined) {
        this.#queue.delete(entry);
        beInStep(entry);
        this.#dropIfEmpty(entry);
      } else {
        this.#send(this.#link, entry, next);
      }
      this.#turns?.used(this, 0, this.#clock.now() - began);
    }
  }

  #next(entry: Entry): Next<T> | undefined {
    if (this.#source.withholds?.(entry.key)) {
      return undefined;
    }
    const now = this.#source.read(entry.key);
    if (now !== undefined) {
      this.#marks.returns(entry, now.uid);
    }
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
      // Else `send` acknowledged it synchronously, and the entry is queued again.
      this.#queue.delete(entry);
    }
    if (next.outcome.is === 'gone') {
      this.#marks.departed(entry, next.outcome.uid);
    }
    if (next.outcome.is === 'held' && entry.flight === flight) {
      // The peer may now have the old state or the new one, until it acknowledges or reports.
      entry.held = entry.held === undefined ? undefined : { uid: entry.held.uid };
      if (this.#sendsDeletes) {
        entry.copies.set(next.outcome.copy.uid, sentVersion(next.outcome));
      }
    }
    this.#wakeAt(flight.dueAt);
  }

  #forget(entry: Entry): void {
    entry.held = undefined;
    this.#marks.renew(entry);
    this.#outOfStep(entry);
  }

  #outOfStep(entry: Entry): void {
    fallBehind(entry, this.#clock.now());
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
      // The peer may accept the new state where it did not acknowledge the old one, so the wait is shorter.
      flight.dueAt = Math.min(flight.dueAt, flight.sentAt + this.#resend.baseMs + this.#usualWait());
      this.#wakeAt(flight.dueAt);
    }
  }

  #endFlight(entry: Entry, flight: Flight): void {
    this.#flights.delete(flight.event);
    this.#window.leave(flight);
    entry.flight = undefined;
  }

  /** Resources in flight on a lost link go to the end of the queue, so that none can starve the others. */
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
    if (this.#flights.size === 0 || (this.#alarm !== undefined && this.#alarm.at > now)) {
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
          takeTurns(entry, flight.outcome);
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

  /** Intents and resent events never count as merely late. */
  #isLate(flight: Flight, now: number): boolean {
    return flight.outcome.is !== 'intent' && !flight.isRepeated && this.#window.isLate(flight, now);
  }

  /** An allowance for the peer's recent latency, in milliseconds. */
  #usualWait(): number {
    return Math.min(2 * this.#window.latencyMs, this.#resend.capMs);
  }

  #wakeAt(at: number): void {
    if (at === Number.POSITIVE_INFINITY || (this.#alarm !== undefined && this.#alarm.at <= at)) {
      return;
    }
    this.#alarm?.cancel();
    const cancel = this.#clock.after(Math.max(0, at - this.#clock.now()), () => {
      // It may ring a little early, by rounding: then it is set once more.
      this.#alarm = undefined;
      this.#evaluate();
    });
    this.#alarm = { at, cancel };
  }

  #entry(key: ResourceKey): Entry {
    const id = keyString(key);
    let entry = this.#entries.get(id);
    if (entry === undefined) {
      entry = newEntry(key);
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
