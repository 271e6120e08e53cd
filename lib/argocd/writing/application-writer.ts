import { isEqual, type Logger, type MergePatch } from '../../base/index.ts';
import { mayPassLater, type ObjectRef, type Store, type View } from '../../sync/index.ts';
import type { Application } from '../application.ts';
import { placeOf } from '../place.ts';
import { isSkipped } from '../routing.ts';
import { ObjectWriter, type WriteStep } from './object-writer.ts';
import type { Plan } from './plan.ts';

/** What came of an {@link ApplicationWriter.run}. */
export type Result =
  /** `copy`: the object as it was written or found to be right; undefined when there is none. */
  | { readonly is: 'done'; readonly copy: Application | undefined }
  /** There is no copy any more of a hub object that is being deleted. */
  | { readonly is: 'gone'; readonly sourceUid: string }
  /** It cannot be done as things are. `mayPass`: but perhaps later, with nothing else changed. */
  | { readonly is: 'stopped'; readonly message: string; readonly rejected: boolean; readonly mayPass: boolean }
  /** The object changed under us again and again. */
  | { readonly is: 'unsettled' };

/** Where and how an {@link ApplicationWriter} writes. */
export interface ApplicationWriterOptions {
  readonly store: Store<Application>;
  readonly view: View<Application>;
  /** Why nothing may be made in this namespace; undefined when it may. */
  readonly objection: (namespace: string) => string | undefined;
  /** Makes a namespace that is missing; without it that is an error. */
  readonly ensureNamespace: ((namespace: string, signal: AbortSignal) => Promise<void>) | undefined;
  readonly log: Logger;
}

/** Carries out plans for Applications. */
export class ApplicationWriter {
  readonly #options: ApplicationWriterOptions;
  readonly #writer: ObjectWriter<Application>;

  constructor(options: ApplicationWriterOptions) {
    this.#options = options;
    this.#writer = new ObjectWriter({ ...options, isHidden: isSkipped });
  }

  /** Plans and writes until there is nothing more to do for now. Throws when the API server cannot be asked now. */
  async run(ref: ObjectRef, plan: (local: Application | undefined) => Plan, signal: AbortSignal): Promise<Result> {
    let written: Application | undefined;
    let patch: MergePatch | undefined;
    const step = (local: Application | undefined): WriteStep<Application, Result> => {
      const next = plan(local);
      switch (next.action) {
        case 'none':
          return { result: { is: 'done', copy: written ?? local } };
        case 'wait':
          return { result: { is: 'done', copy: undefined } };
        case 'refuse':
          return { result: stopped(next.message) };
        case 'gone':
          return { result: { is: 'gone', sourceUid: next.sourceUid } };
        case 'update':
          if (isEqual(next.patch, patch)) {
            // This API server makes something else of what was written; writing it again would change nothing.
            return { result: { is: 'done', copy: written } };
          }
          patch = next.patch;
          return {
            write: next,
            after: (now) => {
              written = now;
              this.#logWritten(ref, next.reason);
              return undefined;
            },
          };
        case 'create': {
          const objection = this.#options.objection(ref.namespace);
          return objection === undefined
            ? {
                write: next,
                after: (copy) => {
                  this.#logWritten(ref, 'created');
                  return { is: 'done', copy };
                },
              }
            : { result: stopped(objection) };
        }
        case 'delete':
          return {
            write: next,
            after: async () => {
              const { propagation } = next;
              this.#options.log.info({ application: placeOf(ref), propagation }, 'Application deleted');
              await this.read(ref, signal);
              return undefined;
            },
          };
      }
    };
    const conflicted = (found: Application | undefined): Result | undefined =>
      found !== undefined && this.#options.view.get(ref) === undefined
        ? stopped(`${placeOf(ref)} exists, but takes no part in synchronisation (by a label)`, { rejected: true })
        : undefined;
    const result = await this.#writer.run(ref, step, signal, conflicted);
    if (result.is !== 'rejected') {
      return result;
    }
    const { error } = result;
    const message = error instanceof Error ? error.message : String(error);
    return stopped(message, { rejected: true, mayPass: mayPassLater(error) });
  }

  /** Looks at what the API server has. What takes no part in synchronisation stays out of the view. */
  read(ref: ObjectRef, signal: AbortSignal): Promise<Application | undefined> {
    return this.#writer.read(ref, signal);
  }

  #logWritten(ref: ObjectRef, reason: string): void {
    this.#options.log.info({ application: placeOf(ref), reason }, 'Application written');
  }
}

function stopped(message: string, { rejected = false, mayPass = false } = {}): Result {
  return { is: 'stopped', message, rejected, mayPass };
}
