import { isEqual, type MergePatch } from '../../base/index.ts';
import type { InboxOutcome, ObjectRef, Runtime, Store, StoredObject, View } from '../../sync/index.ts';
import { placeOf } from '../place.ts';
import { failureText } from './failure-text.ts';
import type { KindNames } from './kind-names.ts';
import { MissingNamespace } from './missing-namespace.ts';
import { ObjectWriter, type WriteStep } from './object-writer.ts';
import type { Plan } from './plan.ts';

/** The result of {@link PlanWriter.run}. */
export type Result<T> =
  /** `copy`: the object as it was written or found to be right; undefined: there is none. */
  | { readonly is: 'done'; readonly copy: T | undefined; readonly isWritten: boolean }
  /** There is no copy any more of a source's object that is being deleted. */
  | { readonly is: 'gone'; readonly sourceUid: string }
  /** Not possible as things are. `rejected`: by the API server. `mayPass`: possible later, perhaps, with nothing else changed. `error`: the API server's. */
  | { readonly is: 'stopped'; readonly message: string; readonly rejected: boolean; readonly mayPass: boolean }
  /** The object changed after every write. */
  | { readonly is: 'unsettled' };

/** How a {@link PlanWriter} works. */
export interface PlanWriterOptions<T extends StoredObject> {
  readonly names: KindNames;
  readonly store: Store<T>;
  /** What is known of the objects; it learns of every write. */
  readonly view: View<T>;
  /** Why nothing may be created in this namespace; undefined: it may. Default: it may everywhere. */
  readonly objection?: ((namespace: string) => string | undefined) | undefined;
  /** Whether an object that the API server has must not come into the view. Default: none. */
  readonly isHidden?: ((object: T) => boolean) | undefined;
  /** Makes a namespace that is missing; without it that is a rejection. It may throw a {@link MissingNamespace}. */
  readonly ensureNamespace?: ((namespace: string, signal: AbortSignal) => Promise<void>) | undefined;
  readonly runtime: Pick<Runtime, 'log'>;
}

/** Carries out plans for objects of one kind. */
export class PlanWriter<T extends StoredObject> {
  readonly #options: PlanWriterOptions<T>;
  readonly #writer: ObjectWriter<T>;

  constructor(options: PlanWriterOptions<T>) {
    this.#options = options;
    this.#writer = new ObjectWriter({ ...options, log: options.runtime.log });
  }

  /** Plans and writes until there is nothing more to do for now. Throws when the API server cannot be asked now. */
  async run(ref: ObjectRef, plan: (now: T | undefined) => Plan<T>, signal: AbortSignal): Promise<Result<T>> {
    let written: T | undefined;
    let patch: MergePatch | undefined;
    const done = (copy: T | undefined): Result<T> => ({ is: 'done', copy, isWritten: written !== undefined });
    const step = (now: T | undefined): WriteStep<T, Result<T>> => {
      const next = plan(now);
      switch (next.action) {
        case 'none':
          return { result: done(written ?? now) };
        case 'wait':
          return { result: done(undefined) };
        case 'refuse':
          return { result: stopped(next.message, next) };
        case 'gone':
          return { result: { is: 'gone', sourceUid: next.sourceUid } };
        case 'update':
          if (isEqual(next.patch, patch)) {
            // This API server makes something else of what was written; writing it again would change nothing.
            return { result: done(written) };
          }
          return {
            write: next,
            after: (object) => {
              patch = next.patch;
              written = object;
              this.#log(ref, { reason: next.reason }, 'written');
              return undefined;
            },
          };
        case 'create': {
          const objection = this.#options.objection?.(ref.namespace);
          return objection === undefined
            ? {
                write: next,
                after: (object) => {
                  written = object;
                  this.#log(ref, { reason: 'created' }, 'written');
                  return next.verifies === true ? undefined : done(object);
                },
              }
            : { result: stopped(objection) };
        }
        case 'delete':
          return {
            write: next,
            after: async () => {
              this.#log(ref, { propagation: next.propagation }, 'deleted');
              await this.read(ref, signal);
              return undefined;
            },
          };
      }
    };
    const conflicted = (found: T | undefined): Result<T> | undefined => {
      // Somebody else has changed it: the same patch may be needed again.
      patch = undefined;
      return found !== undefined && this.#options.view.get(ref) === undefined
        ? stopped(`${placeOf(ref)} exists, but takes no part in synchronisation (by a label)`, { rejected: true })
        : undefined;
    };
    try {
      const result = await this.#writer.run(ref, step, signal, conflicted);
      if (result.is !== 'rejected') {
        return result;
      }
      return stopped(failureText(result.error), { rejected: true, error: result.error });
    } catch (error) {
      if (error instanceof MissingNamespace) {
        return stopped(error.message, { mayPass: true });
      }
      throw error;
    }
  }

  /**
   * As {@link run}, for a request. What the plan refuses is logged. Throws also when the API server refuses: the caller keeps
   * the request, and tries again.
   */
  async once(ref: ObjectRef, plan: (now: T | undefined) => Plan<T>, signal: AbortSignal): Promise<InboxOutcome> {
    const { names, runtime } = this.#options;
    const result = await this.run(ref, plan, signal);
    if ('error' in result && result.error !== undefined) {
      throw result.error;
    }
    if (result.is === 'stopped') {
      runtime.log.warn(names.logFields(ref), result.message);
    }
    return result.is === 'unsettled' || (result.is === 'stopped' && result.mayPass) ? 'retry' : 'done';
  }

  /** Reads what the API server has, past the cache. What is hidden stays out of the view. */
  read(ref: ObjectRef, signal: AbortSignal): Promise<T | undefined> {
    return this.#writer.read(ref, signal);
  }

  /** As {@link read}, for a view that doubts what it has: a failure is only logged, as the view asks again. */
  check(ref: ObjectRef, signal: AbortSignal): Promise<void> {
    return this.#writer.check(ref, signal);
  }

  #log(ref: ObjectRef, fields: object, done: 'written' | 'deleted'): void {
    const { names, runtime } = this.#options;
    runtime.log.info({ ...names.logFields(ref), ...fields }, `${names.noun} ${done}`);
  }
}

function stopped<T>(
  message: string,
  how: { readonly rejected?: boolean; readonly mayPass?: boolean; readonly error?: unknown } = {},
): Result<T> {
  return { is: 'stopped', message, rejected: false, mayPass: false, ...how };
}
