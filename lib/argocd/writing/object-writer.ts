import { abortable, BoundedSet, type Logger, type MergePatch } from '../../base/index.ts';
import { failureOf, type ObjectRef, type Store, type StoredObject, type View } from '../../sync/index.ts';
import { placeOf } from '../place.ts';

/** One write of one object. */
export type Write<T> =
  | { readonly action: 'create'; readonly object: T }
  | { readonly action: 'update'; readonly patch: MergePatch }
  | { readonly action: 'delete'; readonly uid: string; readonly propagation: 'Foreground' | 'Background' };

/** What a plan decides for an object as it is now. */
export type WriteStep<T, R> =
  /** Nothing is to be written: this is the result. */
  | { readonly result: R }
  /**
   * This is to be written. `after` gets the object as it was written (undefined: deleted) and gives the result; without a
   * result the plan is asked again.
   */
  | { readonly write: Write<T>; readonly after?: (written: T | undefined) => R | undefined | Promise<R | undefined> };

/** Why an {@link ObjectWriter} came to no result. */
export type Unfinished =
  /** The API server understood the write and refuses it ({@link failureOf}). */
  | { readonly is: 'rejected'; readonly error: unknown }
  /** The object changed after every write. */
  | { readonly is: 'unsettled' };

/** How an {@link ObjectWriter} works. */
export interface ObjectWriterOptions<T extends StoredObject> {
  readonly store: Store<T>;
  /** What is known of the objects; it learns of every write. */
  readonly view: View<T>;
  /** Whether an object that the API server has must not come into the view. Default: none. */
  readonly isHidden?: ((object: T) => boolean) | undefined;
  /** Makes a namespace that is missing for a creation; without it that is a rejection. */
  readonly ensureNamespace?: ((namespace: string, signal: AbortSignal) => Promise<void>) | undefined;
  readonly log: Pick<Logger, 'debug'>;
}

/** Writes of one run. An object that somebody changes in between each of them is left for a later run. */
const maxSteps = 6;

/** Objects of which it is remembered that nobody knows what became of the last write. */
const mostUnsure = 10_000;

/** Makes objects what a plan decides: plan, write, and on a conflict read the object and plan again. */
export class ObjectWriter<T extends StoredObject> {
  readonly #options: ObjectWriterOptions<T>;
  /** Places of objects whose last write had no answer. The API server may have executed it, and the cache may be older. */
  readonly #unsure = new BoundedSet<string>(mostUnsure);

  constructor(options: ObjectWriterOptions<T>) {
    this.#options = options;
  }

  /**
   * Plans and writes until there is a result, or the signal ends it. Throws when the API server cannot be asked now, or answers
   * that the object changed under every write.
   * @param conflicted called with what the API server has after a write met something else; a result ends the run
   */
  async run<R>(
    ref: ObjectRef,
    plan: (now: T | undefined) => WriteStep<T, R>,
    signal: AbortSignal,
    conflicted: (found: T | undefined) => R | undefined = () => undefined,
  ): Promise<R | Unfinished> {
    let conflict: unknown;
    for (let step = 0; step < maxSteps && !signal.aborted; step++) {
      const now = this.#options.view.get(ref);
      const next = plan(now);
      if ('result' in next) {
        if (!this.#unsure.has(placeOf(ref))) {
          return next.result;
        }
        await this.#becomeSure(ref, signal);
        continue;
      }
      let result: R | undefined;
      try {
        const written = await this.#write(ref, next.write, now, signal);
        this.#unsure.delete(placeOf(ref));
        result = await next.after?.(written);
      } catch (error) {
        const failure = failureOf(error);
        if (failure === 'transient') {
          this.#unsure.add(placeOf(ref));
          throw error;
        }
        // Nothing that a creation needs can be missing but the namespace.
        if (failure === 'rejected' || (failure === 'not-found' && next.write.action === 'create')) {
          return { is: 'rejected', error };
        }
        conflict = error;
        result = conflicted(await this.read(ref, signal));
      }
      if (result !== undefined) {
        return result;
      }
    }
    if (conflict !== undefined && !signal.aborted) {
      // A webhook may call its refusal a conflict.
      throw conflict;
    }
    return { is: 'unsettled' };
  }

  /** Reads what the API server has, past the cache. */
  async read(ref: ObjectRef, signal: AbortSignal): Promise<T | undefined> {
    const { store, view, isHidden } = this.#options;
    const before = view.get(ref);
    const now = await store.read(ref, signal);
    if (now === undefined) {
      if (before !== undefined) {
        view.lost(before);
      }
    } else if (isHidden?.(now) === true) {
      view.left(now, before);
    } else {
      view.learn(now, before);
    }
    return now;
  }

  /** As {@link read}, for a view that doubts what it has: a failure is only logged, as the view asks again. */
  async check(ref: ObjectRef, signal: AbortSignal): Promise<void> {
    try {
      await this.read(ref, signal);
    } catch (error) {
      this.#options.log.debug({ object: placeOf(ref), error }, 'not in the cache, and not readable now');
    }
  }

  /** Waits for the end of what was given up, and reads what came of it. */
  async #becomeSure(ref: ObjectRef, signal: AbortSignal): Promise<void> {
    const end = this.#options.store.settled?.(ref);
    await (end && abortable(end, signal));
    await this.read(ref, signal);
    this.#unsure.delete(placeOf(ref));
  }

  async #write(ref: ObjectRef, write: Write<T>, now: T | undefined, signal: AbortSignal): Promise<T | undefined> {
    const { store, view } = this.#options;
    if (write.action === 'delete') {
      const { uid, propagation } = write;
      // It goes as it was planned for, with these finalizers and this spec: Argo CD removes a workload as they say.
      const { resourceVersion } = now?.metadata ?? {};
      await store.delete(ref, { uid, propagation, ...(resourceVersion && { resourceVersion }) }, signal, now);
      return undefined;
    }
    const written =
      write.action === 'create'
        ? await this.#create(ref, write.object, signal)
        : await store.patch(ref, write.patch, signal, now);
    view.learn(written);
    return written;
  }

  async #create(ref: ObjectRef, object: T, signal: AbortSignal): Promise<T> {
    const { store, ensureNamespace } = this.#options;
    try {
      return await store.create(object, signal);
    } catch (error) {
      if (ensureNamespace === undefined || failureOf(error) !== 'not-found') {
        throw error;
      }
      await ensureNamespace(ref.namespace, signal);
      return store.create(object, signal);
    }
  }
}
