import type { OutboundEvent, ResourceKey, Snapshot } from './resource.ts';

/** What a peer says it has of a resource. Without `digest` its state is unknown, only its existence. */
export interface PeerCopy {
  readonly uid: string;
  readonly digest?: string | undefined;
}

/** A request for a one-shot intent. Its version makes the event id the same however often it is sent. */
export interface Intent {
  readonly uid: string;
  readonly version: string;
}

/** What an acknowledgement of a flight would tell. */
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

/** What is known of one resource at the peer. */
export interface Entry {
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
  /** How often the event named by `unanswered`, first sent at `unansweredSince`, ran out of time on this link. */
  timeouts: number;
  unanswered: string;
  unansweredSince: number;
}

/** Something to tell the peer, and what its acknowledgement would mean. */
export interface Next<T> {
  readonly delivery: OutboundEvent<T>;
  readonly outcome: FlightOutcome;
}

/** What the peer has to be told about incarnations that another one has taken the place of. */
export function removal<T>(entry: Entry, now: Snapshot<T> | undefined): Next<T> | undefined {
  for (const [uid, version] of entry.copies) {
    if (now !== undefined && uid !== now.uid) {
      return deletion(entry, uid, version);
    }
  }
  return undefined;
}

/** What the peer has to be told about a resource, or undefined when the two are in step. */
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

/** The peer acknowledged a flight with this outcome. */
export function settle(entry: Entry, outcome: FlightOutcome): void {
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
