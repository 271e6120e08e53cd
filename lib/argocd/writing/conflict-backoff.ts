import { type Backoff, backoffDelay, type Clock, type ObjectRef } from '../../sync/index.ts';
import { displayName, type SyncLog } from '../log.ts';
import { placeOf } from '../place.ts';

/** How {@link Fights} work. */
export interface FightsOptions {
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: SyncLog;
  /** A fight about this one began or ended. */
  readonly changed: (ref: ObjectRef) => void;
}

/** After so many changes in a row that were put back, somebody else wants it otherwise for good: people tire sooner. */
const unsuspicious = 10;
/** Whoever fights changes what was put back at once; what is left alone for so long is settled. */
const calmMs = 10_000;
const foughtAbout =
  'somebody changes or deletes this Application again and again; it is put back, but ever more rarely';
const retreat: Backoff = { baseMs: 1_000, factor: 2, capMs: 60_000, jitter: 0.5 };

interface Fight {
  putBack: number;
  lastAt: number;
  waiting: (() => void) | undefined;
  endsAt: (() => void) | undefined;
}

/**
 * Keeps the agent and somebody else who writes the same objects from outdoing each other as fast as the API server lets
 * them: what is changed again and again is put back ever more rarely, and said to be fought about. It ends when nothing
 * was to put back for a while.
 */
export class Fights {
  readonly #options: FightsOptions;
  readonly #fights = new Map<string, Fight>();
  #isClosed = false;

  constructor(options: FightsOptions) {
    this.#options = options;
  }

  /** Places that are fought about. */
  get active(): number {
    let count = 0;
    for (const { putBack } of this.#fights.values()) {
      count += putBack > unsuspicious ? 1 : 0;
    }
    return count;
  }

  /** That somebody changes this one as fast as it is put back, in words; undefined when nobody does. */
  about(ref: ObjectRef): string | undefined {
    return (this.#fights.get(placeOf(ref))?.putBack ?? 0) > unsuspicious ? foughtAbout : undefined;
  }

  /** Calls `putBack`, which makes a place right, when it is time: at once, unless it has been necessary too often. */
  whenDue(ref: ObjectRef, putBack: () => void): void {
    const { clock, random } = this.#options;
    const fight = this.#fights.get(placeOf(ref));
    if (fight === undefined || fight.putBack <= unsuspicious) {
      putBack();
      return;
    }
    fight.endsAt?.();
    const due = fight.lastAt + backoffDelay(retreat, fight.putBack - unsuspicious, random());
    fight.waiting?.();
    fight.waiting = clock.after(Math.max(0, due - clock.now()), () => {
      fight.waiting = undefined;
      // Somebody else may have put it right meanwhile: then this is all that ends the fight.
      fight.endsAt = clock.after(calmMs, () => this.forget(ref));
      putBack();
    });
  }

  /** Somebody's change of a place was put back. */
  putBack(ref: ObjectRef): void {
    if (this.#isClosed) {
      return;
    }
    const { clock } = this.#options;
    const place = placeOf(ref);
    const fight = this.#fights.get(place) ?? { putBack: 0, lastAt: 0, waiting: undefined, endsAt: undefined };
    fight.putBack++;
    fight.lastAt = clock.now();
    fight.endsAt?.();
    fight.endsAt = clock.after(calmMs, () => this.forget(ref));
    this.#fights.set(place, fight);
    if (fight.putBack === unsuspicious + 1) {
      this.#options.log.warn({ application: displayName(ref) }, foughtAbout);
      this.#options.changed(ref);
    }
  }

  /** Nothing is wanted of this place any more, or it is calm. */
  forget(ref: ObjectRef): void {
    const place = placeOf(ref);
    const fight = this.#fights.get(place);
    if (fight !== undefined) {
      fight.waiting?.();
      fight.endsAt?.();
      this.#fights.delete(place);
      if (fight.putBack > unsuspicious) {
        this.#options.log.info({ application: displayName(ref) }, 'the Application is left as it was put back');
        this.#options.changed(ref);
      }
    }
  }

  /** Stops all timers. */
  close(): void {
    this.#isClosed = true;
    for (const { waiting, endsAt } of this.#fights.values()) {
      waiting?.();
      endsAt?.();
    }
    this.#fights.clear();
  }
}
