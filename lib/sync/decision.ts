import type { OutboundEvent, ResourceKey, Snapshot } from './resource.ts';

/** The peer's copy of a resource. Without `digest` only its existence is known, not its state. */
export interface PeerCopy {
  readonly uid: string;
  readonly digest?: string | undefined;
}

/** A request for a one-shot intent. Its version makes the event id the same however often it is sent. */
export interface Intent {
  readonly uid: string;
  readonly version: string;
}

/** The meaning of a flight's acknowledgement. */
export type FlightOutcome =
  | { readonly is: 'held'; readonly copy: PeerCopy; readonly version: string; readonly mark: string }
  | { readonly is: 'gone'; readonly uid: string }
  | { readonly is: 'intent'; readonly name: string; readonly intent: Intent };

/** An event that waits for its acknowledgement. */
export interface Flight {
  readonly event: string;
  readonly outcome: FlightOutcome;
  readonly sentAt: number;
  /** When to decide and send again. */
  dueAt: number;
  /** The event was sent before on this link, and not acknowledged in time. */
  readonly isRepeated: boolean;
}

/** The known state of one resource at the peer. */
export interface Entry {
  readonly key: ResourceKey;
  /** The state that the peer acknowledged or reported. Without digest: it has this uid, in an unknown state. */
  held: PeerCopy | undefined;
  /**
   * Uid → last sent version of every incarnation that the peer may have, with the mark of its event: a deletion after a state that
   * was sent again is another one than the deletion before.
   */
  readonly copies: Map<string, string>;
  /** Undefined while there are none, as most of the time. */
  intents: Map<string, Intent> | undefined;
  /** Suffix that makes the event ids of a repeated state differ from those that the peer received before. */
  mark: string;
  flight: Flight | undefined;
  /** How often the event named by `unanswered`, first sent at `unansweredSince`, ran out of time on this link. */
  timeouts: number;
  unanswered: string;
  unansweredSince: number;
  /** Since when the peer may lack the present state, by the clock; undefined while both sides are equal. */
  behindSince: number | undefined;
  /** The same of a change that came while an event was in flight. */
  changedSince: number | undefined;
}

/** The record of a resource of which nothing is known yet. */
export function newEntry(key: ResourceKey): Entry {
  return {
    key,
    held: undefined,
    copies: new Map(),
    intents: undefined,
    mark: '',
    flight: undefined,
    timeouts: 0,
    unanswered: '',
    unansweredSince: 0,
    behindSince: undefined,
    changedSince: undefined,
  };
}

/** An event to send, and the meaning of its acknowledgement. */
export interface Next<T> {
  readonly delivery: OutboundEvent<T>;
  readonly outcome: FlightOutcome;
}

/** The deletion of an incarnation that another one replaced, or undefined when there is none. */
export function removal<T>(entry: Entry, now: Snapshot<T> | undefined): Next<T> | undefined {
  for (const [uid, version] of entry.copies) {
    if (now !== undefined && uid !== now.uid) {
      return deletion(entry, uid, version);
    }
  }
  return undefined;
}

/** The next event to send about a resource, or undefined when both sides are equal. */
export function decide<T>(entry: Entry, now: Snapshot<T> | undefined): Next<T> | undefined {
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

/** What an entry remembers of a state that was sent. */
export function sentVersion({ version, mark }: FlightOutcome & { readonly is: 'held' }): string {
  return version + mark;
}

/** The peer acknowledged a flight with this outcome. */
export function settle(entry: Entry, outcome: FlightOutcome): void {
  switch (outcome.is) {
    case 'held':
      // With another mark the event was sent before the repetition was requested, so the state is still to be sent.
      if (outcome.mark === entry.mark) {
        entry.held = outcome.copy;
        entry.mark = '';
      }
      entry.copies.clear();
      entry.copies.set(outcome.copy.uid, sentVersion(outcome));
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

/** An intent is not acknowledged: the others of its resource do not wait for it. */
export function takeTurns({ intents }: Entry, { name, intent }: FlightOutcome & { readonly is: 'intent' }): void {
  if (intents?.get(name) === intent) {
    intents.delete(name);
    intents.set(name, intent);
  }
}

/** Tells the events of an outbox apart, from what an acknowledgement repeats. */
export function eventKey(resourceId: string, eventId: string): string {
  return `${resourceId}/${eventId}`;
}
