import { BoundedSet } from '../base/index.ts';
import type { Entry } from './decision.ts';
import { keyString } from './resource.ts';

/** Deletions that are remembered: as many as a peer remembers messages ({@link InboxOptions.remembered}). */
const mostDeparted = 4_096;

/**
 * The marks that make event ids of a repeated state differ from those that the peer has processed: it would take the same id for a
 * repetition.
 */
export class EventMarks {
  readonly #random: () => number;
  /** Incarnations whose deletion was sent. */
  readonly #departed = new BoundedSet<string>(mostDeparted);

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Marks a state that is to be sent again. */
  renew(entry: Entry): void {
    entry.mark = `_${Math.floor(this.#random() * 2 ** 40).toString(36)}`;
  }

  /** The deletion of an incarnation was sent. */
  departed(entry: Entry, uid: string): void {
    this.#departed.add(incarnation(entry, uid));
  }

  /** Marks what is to be sent as a new one although it was there before, and left. */
  returns(entry: Entry, uid: string): void {
    const isNew = entry.held === undefined && entry.mark === '';
    if (isNew && this.#departed.size > 0 && this.#departed.has(incarnation(entry, uid))) {
      this.renew(entry);
    }
  }
}

function incarnation({ key }: Entry, uid: string): string {
  return `${keyString(key)}/${uid}`;
}
