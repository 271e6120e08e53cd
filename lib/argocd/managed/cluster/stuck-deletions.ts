import { type ObjectRef, type RetryDelays, type Runtime, retryDelay } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { placeOf } from '../../place.ts';

/** How {@link StuckDeletions} work. */
export interface StuckDeletionsOptions {
  readonly runtime: Runtime;
  /** The deletion of this one takes long: Argo CD may have to be made to look. */
  readonly onStuck: (ref: ObjectRef) => void;
  /** {@link StuckDeletions.isLong} is true from now on. */
  readonly onLong: (ref: ObjectRef) => void;
}

interface Leaving {
  readonly uid: string | undefined;
  /** How often Argo CD had to be made to look. */
  times: number;
  cancel: () => void;
}

/** After 60 to 90 s. */
const timesUntilLong = 2;
const patience: RetryDelays = { baseMs: 20_000, factor: 2, capMs: 300_000, jitter: 0.5 };

/**
 * Knows which copies are being deleted, and for how long. A cascade that an outage of the API server interrupted is taken up
 * by Argo CD only at its next periodic comparison, or when the object changes.
 */
export class StuckDeletions {
  readonly #options: StuckDeletionsOptions;
  readonly #leaving = new Map<string, Leaving>();
  #isClosed = false;

  constructor(options: StuckDeletionsOptions) {
    this.#options = options;
  }

  /** What is at a place now. */
  follow(ref: ObjectRef, local: Application | undefined): void {
    const place = placeOf(ref);
    const known = this.#leaving.get(place);
    const isDeleting = local?.metadata.deletionTimestamp !== undefined;
    if (known !== undefined && (!isDeleting || local?.metadata.uid !== known.uid)) {
      known.cancel();
      this.#leaving.delete(place);
    }
    if (isDeleting && !this.#leaving.has(place) && !this.#isClosed) {
      const one: Leaving = { uid: local?.metadata.uid, times: 0, cancel: () => undefined };
      this.#leaving.set(place, one);
      this.#wait(ref, one);
    }
  }

  /** Whether the copy has been going for about a minute or longer. */
  isLong(ref: ObjectRef): boolean {
    return (this.#leaving.get(placeOf(ref))?.times ?? 0) >= timesUntilLong;
  }

  /** Stops all timers. */
  close(): void {
    this.#isClosed = true;
    for (const { cancel } of this.#leaving.values()) {
      cancel();
    }
    this.#leaving.clear();
  }

  #wait(ref: ObjectRef, one: Leaving): void {
    const { onStuck, onLong } = this.#options;
    const { clock, random } = this.#options.runtime;
    one.cancel = clock.after(retryDelay(patience, one.times + 1, random()), () => {
      one.times++;
      this.#wait(ref, one);
      onStuck(ref);
      if (one.times === timesUntilLong) {
        onLong(ref);
      }
    });
  }
}
