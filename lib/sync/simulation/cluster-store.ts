import { isSkipped } from '../../argocd/index.ts';
import type { MergePatch } from '../../base/index.ts';
import type { ObjectRef, Store, StoreChange } from '../index.ts';
import { type Collection, type Listener, Refused, type SimulatedObject } from './cluster.ts';
import type { SeededDice } from './dice.ts';
import type { VirtualTime } from './virtual-time.ts';

/** One program's access to a cluster: a cache that lags behind, calls that take time and fail. Dies with the program. */
export class ClusterStore<T extends SimulatedObject> implements Store<T> {
  readonly #collection: Collection<T>;
  readonly #time: VirtualTime;
  readonly #dice: SeededDice;
  readonly #cache = new Map<string, T>();
  readonly #listeners = new Set<Listener<T>>();
  readonly #signal: AbortSignal;
  readonly #hasSelector: boolean;
  #watching: () => void = () => undefined;
  #lastDelivery = 0;
  #epoch = 0;

  constructor(collection: Collection<T>, dice: SeededDice, signal: AbortSignal) {
    this.#collection = collection;
    this.#time = collection.cluster.time;
    this.#dice = dice;
    this.#signal = signal;
    this.#hasSelector = (collection as object) === collection.cluster.of('Application');
    // A program does not go on before its first list succeeded.
    this.#list();
    signal.addEventListener('abort', () => this.#watching());
  }

  /** The watch breaks: what it had not delivered is lost, and a list some time later shows the difference. */
  breakWatch(): void {
    this.#watching();
    const epoch = ++this.#epoch;
    this.#time.after(this.#dice.delay(500), () => {
      if (this.#epoch === epoch) {
        this.#relist();
      }
    });
  }

  subscribe(listener: Listener<T>): () => void {
    this.#listeners.add(listener);
    for (const now of this.#cache.values()) {
      listener({ old: undefined, now });
    }
    return () => this.#listeners.delete(listener);
  }

  read(ref: ObjectRef): Promise<T | undefined> {
    return this.#call(() => this.#collection.get(ref));
  }

  create(object: T): Promise<T> {
    return this.#write(() => this.#collection.create(object));
  }

  patch(ref: ObjectRef, patch: MergePatch): Promise<T> {
    return this.#write(() => this.#collection.patch(ref, patch));
  }

  delete(ref: ObjectRef, options: { uid: string; propagation: 'Foreground' | 'Background' }): Promise<void> {
    return this.#write(() => {
      try {
        this.#collection.delete(ref, options);
      } catch (error) {
        if (!(error instanceof Refused) || error.status !== 404) {
          throw error;
        }
      }
    });
  }

  #write<R>(work: () => R): Promise<R> {
    return this.#call(() => {
      if (this.#collection.cluster.forbids) {
        throw new Refused(403, 'Forbidden');
      }
      return work();
    });
  }

  #call<R>(work: () => R): Promise<R> {
    return new Promise((resolve, reject) => {
      const lost = () => reject(new Error('connection reset'));
      this.#time.after(this.#dice.delay(3), () => {
        if (this.#signal.aborted) {
          return;
        }
        if (this.#collection.cluster.down || this.#dice.chance(0.01)) {
          this.#time.after(this.#dice.delay(20), lost);
          return;
        }
        let answer: () => void;
        try {
          const result = work();
          answer = () => resolve(result);
        } catch (error) {
          answer = () => reject(error);
        }
        // The write may be done and its answer lost.
        this.#time.after(this.#dice.delay(3), this.#dice.chance(0.01) ? lost : answer);
      });
    });
  }

  #relist(): void {
    if (this.#signal.aborted) {
      return;
    }
    if (this.#collection.cluster.down) {
      this.#time.after(300, () => this.#relist());
      return;
    }
    this.#list();
  }

  #list(): void {
    const shown = this.#collection.list().filter((object) => this.#isSelected(object));
    const now = new Map(shown.map((object) => [idOf(object), object]));
    for (const [id, old] of [...this.#cache]) {
      if (now.get(id)?.metadata.uid !== old.metadata.uid) {
        this.#notify({ old, now: undefined });
      }
    }
    for (const object of now.values()) {
      this.#notify({ old: undefined, now: object });
    }
    const epoch = this.#epoch;
    this.#watching = this.#collection.watch((change) => {
      this.#lastDelivery = Math.max(this.#lastDelivery, this.#time.now() + this.#dice.delay(4));
      this.#time.after(this.#lastDelivery - this.#time.now(), () => {
        if (this.#epoch === epoch && !this.#signal.aborted) {
          this.#notify(this.#selected(change));
        }
      });
    });
  }

  /** What a watch with a selector makes of a change: what leaves the selection is gone, at the version at which it left. */
  #selected({ old, now }: StoreChange<T>): StoreChange<T> {
    const before = old !== undefined && this.#isSelected(old) ? old : undefined;
    const after = now !== undefined && this.#isSelected(now) ? now : undefined;
    const resourceVersion = now?.metadata.resourceVersion;
    return before === undefined || after !== undefined || resourceVersion === undefined
      ? { old: before, now: after }
      : { old: { ...before, metadata: { ...before.metadata, resourceVersion } }, now: undefined };
  }

  /** Programs list and watch Applications without those that are labelled out of synchronisation. */
  #isSelected(object: T): boolean {
    return !this.#hasSelector || !isSkipped(object);
  }

  #notify(change: StoreChange<T>): void {
    const object = change.now ?? change.old;
    if (object === undefined) {
      return;
    }
    const old = this.#cache.get(idOf(object));
    if (change.now === undefined) {
      this.#cache.delete(idOf(object));
    } else {
      this.#cache.set(idOf(object), change.now);
    }
    for (const listener of this.#listeners) {
      listener({ old: change.now === undefined ? (change.old ?? old) : (old ?? change.old), now: change.now });
    }
  }
}

function idOf(object: SimulatedObject): string {
  return `${object.metadata.namespace}/${object.metadata.name}`;
}
