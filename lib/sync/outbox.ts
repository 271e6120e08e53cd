import { type Backoff, backoffDelay, type Clock, systemClock } from './clock.ts';
import { type Delivery, keyString, type Link, type ResourceKey, type Snapshot, type Source } from './resource.ts';

/** What a peer says it has of a resource. Without `digest` its state is unknown, only its existence. */
export interface PeerCopy {
  readonly uid: string;
  readonly digest?: string | undefined;
}

/** How an {@link Outbox} works. */
export interface OutboxOptions<T> {
  readonly source: Source<T>;
  readonly clock?: Clock;
  /** Numbers in [0, 1), for jitter. */
  readonly random?: () => number;
  /** How many resources may wait for their first acknowledgement at once. */
  readonly maxInFlight?: number;
  /** When to send again what was not acknowledged. Default as argocd-agent: 5-10 s, then four times as long, at most 2-4 min. */
  readonly resend?: Backoff;
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

/** A request for a one-shot intent. Its version makes the event id the same however often it is sent. */
interface Intent {
  readonly uid: string;
  readonly version: string;
}

/** What an acknowledgement of a flight would tell. */
type Outcome =
  | { readonly is: 'held'; readonly copy: PeerCopy; readonly version: string; readonly mark: string }
  | { readonly is: 'gone'; readonly uid: string }
  | { readonly is: 'intent'; readonly name: string; readonly intent: Intent };

interface Flight {
  readonly event: string;
  readonly outcome: Outcome;
  readonly sentAt: number;
  /** When to decide and send again. */
  dueAt: number;
  /** Takes one of the `maxInFlight` places. Resends do not: what is never acknowledged must hold nobody up. */
  readonly counted: boolean;
}

interface Entry {
  readonly key: ResourceKey;
  /** What the peer acknowledged, or said to have. Without digest: it has this uid, in a state that is not known. */
  held: PeerCopy | undefined;
  /** Uid → last sent version of every incarnation that the peer may have. */
  readonly copies: Map<string, string>;
  /** Undefined while there are none, as most of the time. */
  intents: Map<string, Intent> | undefined;
  /** Sets the event ids of a state that is told anew apart from those under which the peer has heard it before. */
  mark: string;
  flight: Flight | undefined;
  /** How often the event named by `unanswered` ran out of time on this link. */
  timeouts: number;
  unanswered: string;
}

/** Resources that are none of the source's and are being taken away from the peer at once. */
const mostStrays = 50_000;
/** Incarnations of one resource that a peer may claim to have. */
const mostCopies = 100;
const defaultResend: Backoff = { baseMs: 5_000, factor: 4, capMs: 120_000, jitter: 1 };

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
 * 5. The queue is first in, first out. What is never acknowledged takes no place from the others, and is sent again
 *    ever more rarely.
 * 6. An intent is sent when the peer has acknowledged the present state of its resource, and always under the same
 *    event id, so that a peer that gets it twice does it once.
 * 7. Every method changes state and then calls `#evaluate`, the only place that sends. An event costs O(1).
 * 8. Memory is bounded by what the source has and had, whatever the peer claims.
 */
export class Outbox<T> {
  readonly #source: Source<T>;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #maxInFlight: number;
  readonly #resend: Backoff;
  readonly #sendsDeletes: boolean;
  readonly #replaces: boolean;
  readonly #onIdle: (() => void) | undefined;

  readonly #entries = new Map<string, Entry>();
  /** Out of step and not in flight. */
  readonly #queue = new Set<Entry>();
  /** Event → the resource that waits for its acknowledgement, in the order of sending. */
  readonly #flights = new Map<string, Entry>();
  #counted = 0;

  #link: Link<T> | undefined;
  /** The link refused; it will call `writable`. */
  #full = false;
  #evaluating = false;
  #again = false;
  #alarm: { readonly at: number; readonly cancel: () => void } | undefined;

  constructor(options: OutboxOptions<T>) {
    this.#source = options.source;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
    this.#maxInFlight = options.maxInFlight ?? 256;
    this.#resend = options.resend ?? defaultResend;
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
    const entry = this.#flights.get(eventKey(resourceId, eventId));
    if (entry?.flight === undefined) {
      return false;
    }
    settle(entry, entry.flight.outcome);
    if (!this.#sendsDeletes) {
      entry.copies.clear();
    }
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
      if (this.#full || this.#counted >= this.#maxInFlight) {
        return;
      }
      const now = this.#source.read(entry.key);
      const next = (this.#replaces ? undefined : removal(entry, now)) ?? decide(entry, now);
      if (next === undefined) {
        this.#queue.delete(entry);
        this.#dropIfEmpty(entry);
      } else {
        this.#send(this.#link, entry, next);
      }
    }
  }

  #send(link: Link<T>, entry: Entry, next: Next<T>): void {
    const event = eventKey(next.delivery.resourceId, next.delivery.eventId);
    if (entry.unanswered !== event) {
      entry.unanswered = event;
      entry.timeouts = 0;
    }
    const now = this.#clock.now();
    const flight: Flight = {
      event,
      outcome: next.outcome,
      sentAt: now,
      dueAt: now + backoffDelay(this.#resend, entry.timeouts + 1, this.#random()),
      counted: entry.timeouts === 0,
    };
    entry.flight = flight;
    this.#flights.set(event, entry);
    this.#counted += flight.counted ? 1 : 0;
    if (!link.send(next.delivery)) {
      this.#endFlight(entry, flight);
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
    if (!flight.counted) {
      // The peer had its time with the old state. The new one may be what it can take, so it need not wait as long.
      flight.dueAt = Math.min(flight.dueAt, flight.sentAt + this.#resend.baseMs);
      this.#wakeAt(flight.dueAt);
    }
  }

  #endFlight(entry: Entry, flight: Flight): void {
    this.#flights.delete(flight.event);
    this.#counted -= flight.counted ? 1 : 0;
    entry.flight = undefined;
  }

  /** What was in flight on a link that is no more goes behind what waits, so that none can starve the others. */
  #land(): void {
    this.#full = false;
    for (const entry of [...this.#flights.values()]) {
      if (entry.flight !== undefined) {
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
    for (const entry of [...this.#flights.values()]) {
      const flight = entry.flight;
      if (flight !== undefined && flight.dueAt <= now) {
        this.#endFlight(entry, flight);
        entry.timeouts += 1;
        this.#queue.add(entry);
      } else {
        next = Math.min(next, flight?.dueAt ?? next);
      }
    }
    this.#wakeAt(next);
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

interface Next<T> {
  readonly delivery: Delivery<T>;
  readonly outcome: Outcome;
}

/** What the peer has to be told about incarnations that another one has taken the place of. */
function removal<T>(entry: Entry, now: Snapshot<T> | undefined): Next<T> | undefined {
  for (const [uid, version] of entry.copies) {
    if (now !== undefined && uid !== now.uid) {
      return deletion(entry, uid, version);
    }
  }
  return undefined;
}

/** What the peer has to be told about a resource, or undefined when the two are in step. */
function decide<T>(entry: Entry, now: Snapshot<T> | undefined): Next<T> | undefined {
  if (now === undefined) {
    entry.intents = undefined;
    entry.held = undefined;
    const [copy] = entry.copies;
    return copy === undefined ? undefined : deletion(entry, copy[0], copy[1]);
  }
  if (entry.held?.uid !== now.uid || entry.held.digest !== now.digest) {
    return state(entry, now);
  }
  for (const [name, intent] of entry.intents ?? []) {
    if (intent.uid === now.uid) {
      return oneShot(entry.key, name, intent, now);
    }
    entry.intents?.delete(name);
  }
  return undefined;
}

function state<T>({ key, held, mark }: Entry, now: Snapshot<T>): Next<T> {
  const resourceId = `${key.name}_${now.uid}`;
  const eventId = `${resourceId}_${now.version}${mark}`;
  return {
    delivery: { key, type: held?.uid === now.uid ? 'update' : 'create', resourceId, eventId, snapshot: now },
    outcome: { is: 'held', copy: { uid: now.uid, digest: now.digest }, version: now.version, mark },
  };
}

/**
 * Deletions and intents get an event id of their own, where argocd-agent repeats the id of the state: a second
 * acknowledgement of a state that was sent twice must not pass for theirs. To a peer the id is opaque.
 */
function deletion<T>({ key, mark }: Entry, uid: string, version: string): Next<T> {
  const resourceId = `${key.name}_${uid}`;
  return {
    delivery: { key, type: 'delete', resourceId, eventId: `${resourceId}_${version}${mark}_delete`, uid, version },
    outcome: { is: 'gone', uid },
  };
}

function oneShot<T>(key: ResourceKey, name: string, intent: Intent, now: Snapshot<T>): Next<T> {
  const resourceId = `${key.name}_${now.uid}`;
  const eventId = `${resourceId}_${intent.version}_${name}`;
  return {
    delivery: { key, type: 'intent', intent: name, resourceId, eventId, snapshot: now },
    outcome: { is: 'intent', name, intent },
  };
}

function settle(entry: Entry, outcome: Outcome): void {
  switch (outcome.is) {
    case 'held':
      // It was told before it was forgotten; what is to be told again is not told yet.
      if (outcome.mark === entry.mark) {
        entry.held = outcome.copy;
        entry.mark = '';
      }
      entry.copies.clear();
      entry.copies.set(outcome.copy.uid, outcome.version);
      break;
    case 'gone':
      entry.copies.delete(outcome.uid);
      break;
    case 'intent':
      if (entry.intents?.get(outcome.name) === outcome.intent) {
        entry.intents.delete(outcome.name);
      }
  }
}

function eventKey(resourceId: string, eventId: string): string {
  return `${resourceId}/${eventId}`;
}
