import { type ObjectRef, type RetryDelays, type Runtime, retryDelay } from '../../sync/index.ts';
import { placeOf } from '../place.ts';

/** How a {@link ConflictBackoff} works. */
export interface ConflictBackoffOptions {
  /** How texts name an object of this kind. */
  readonly noun: string;
  /** The fields by which log lines name an object. */
  readonly logFields: (ref: ObjectRef) => object;
  readonly runtime: Runtime;
  /** Called when a conflict about an object begins or ends. */
  readonly changed?: (ref: ObjectRef) => void;
}

/** After this many changes in a row that were put back, a program keeps writing the object: people give up sooner. */
const unsuspicious = 10;
/** A conflict is over when the object stays as it was put back for this long. */
const calmMs = 10_000;
const retreat: RetryDelays = { baseMs: 1_000, factor: 2, capMs: 60_000, jitter: 0.5 };

interface Conflict {
  putBack: number;
  lastAt: number;
  waiting: (() => void) | undefined;
  endsAt: (() => void) | undefined;
}

/**
 * Keeps this program and somebody else who writes the same objects from overwriting each other as fast as the API server
 * allows. An object that is changed again and again is put back ever more rarely, and a warning names the conflict. It ends
 * when the object stays as it was put back for ten seconds.
 */
export class ConflictBackoff {
  readonly #options: ConflictBackoffOptions;
  readonly #conflicts = new Map<string, Conflict>();
  readonly #warning: string;
  #isClosed = false;

  constructor(options: ConflictBackoffOptions) {
    this.#options = options;
    this.#warning = `somebody changes or deletes this ${options.noun} again and again; it is put back, but ever more rarely`;
  }

  /** Objects that somebody keeps changing. */
  get active(): number {
    let count = 0;
    for (const { putBack } of this.#conflicts.values()) {
      count += putBack > unsuspicious ? 1 : 0;
    }
    return count;
  }

  /** The warning about this object; undefined when nobody keeps changing it. */
  warningOf(ref: ObjectRef): string | undefined {
    return (this.#conflicts.get(placeOf(ref))?.putBack ?? 0) > unsuspicious ? this.#warning : undefined;
  }

  /** Calls `putBack`, which restores an object, when it is time: at once, unless that was necessary too often. */
  whenDue(ref: ObjectRef, putBack: () => void): void {
    const { clock, random } = this.#options.runtime;
    const conflict = this.#conflicts.get(placeOf(ref));
    if (conflict === undefined || conflict.putBack <= unsuspicious) {
      putBack();
      return;
    }
    conflict.endsAt?.();
    const due = conflict.lastAt + retryDelay(retreat, conflict.putBack - unsuspicious, random());
    conflict.waiting?.();
    conflict.waiting = clock.after(Math.max(0, due - clock.now()), () => {
      conflict.waiting = undefined;
      // Somebody else may have restored the object meanwhile: then only this timer ends the conflict.
      conflict.endsAt = clock.after(calmMs, () => this.forget(ref));
      putBack();
    });
  }

  /** Records that somebody's change of an object was put back. */
  recordPutBack(ref: ObjectRef): void {
    if (this.#isClosed) {
      return;
    }
    const { logFields, changed } = this.#options;
    const { clock, log } = this.#options.runtime;
    const place = placeOf(ref);
    const conflict = this.#conflicts.get(place) ?? { putBack: 0, lastAt: 0, waiting: undefined, endsAt: undefined };
    conflict.putBack++;
    conflict.lastAt = clock.now();
    conflict.endsAt?.();
    conflict.endsAt = clock.after(calmMs, () => this.forget(ref));
    this.#conflicts.set(place, conflict);
    if (conflict.putBack === unsuspicious + 1) {
      log.warn(logFields(ref), this.#warning);
      changed?.(ref);
    }
  }

  /** Ends the conflict about an object: nothing is desired of it any more, or nobody changes it any more. */
  forget(ref: ObjectRef): void {
    const place = placeOf(ref);
    const conflict = this.#conflicts.get(place);
    if (conflict !== undefined) {
      conflict.waiting?.();
      conflict.endsAt?.();
      this.#conflicts.delete(place);
      if (conflict.putBack > unsuspicious) {
        const { logFields, noun, changed } = this.#options;
        const { log } = this.#options.runtime;
        log.info(logFields(ref), `the ${noun} is left as it was put back`);
        changed?.(ref);
      }
    }
  }

  /** Stops all timers. */
  close(): void {
    this.#isClosed = true;
    for (const { waiting, endsAt } of this.#conflicts.values()) {
      waiting?.();
      endsAt?.();
    }
    this.#conflicts.clear();
  }
}
