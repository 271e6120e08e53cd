import { isEqual, type Logger, type MergePatch } from '../../base/index.ts';
import { failureOf, mayPassLater, type ObjectRef, type Store, type View } from '../../sync/index.ts';
import type { Application } from '../application.ts';
import { displayName } from '../log.ts';
import { isSkipped } from '../routing.ts';
import type { Plan } from './plan.ts';

/** What came of a {@link CopyWriter.run}. */
export type Result =
  /** `copy`: the object as it was written or found to be right; undefined when there is none. */
  | { readonly is: 'done'; readonly copy: Application | undefined }
  /** There is no copy any more of a hub object that is being deleted. */
  | { readonly is: 'gone'; readonly sourceUid: string }
  /** It cannot be done as things are. `mayPass`: but perhaps later, with nothing else changed. */
  | { readonly is: 'stopped'; readonly message: string; readonly rejected: boolean; readonly mayPass: boolean }
  /** The object changed under us again and again. */
  | { readonly is: 'unsettled' };

const maxSteps = 6;

/** Where and how a {@link CopyWriter} writes. */
export interface CopyWriterOptions {
  readonly store: Store<Application>;
  readonly view: View<Application>;
  /** Why nothing may be made in this namespace; undefined when it may. */
  readonly objection: (namespace: string) => string | undefined;
  /** Makes a namespace that is missing; without it that is an error. */
  readonly ensureNamespace: ((namespace: string, signal: AbortSignal) => Promise<void>) | undefined;
  readonly log: Logger;
}

/** Carries plans out, and lets a view know what came of it. */
export class CopyWriter {
  readonly #options: CopyWriterOptions;

  constructor(options: CopyWriterOptions) {
    this.#options = options;
  }

  /** Plans and writes until there is nothing more to do for now. Throws when the API server cannot be asked now. */
  async run(ref: ObjectRef, plan: (local: Application | undefined) => Plan, signal: AbortSignal): Promise<Result> {
    let written: Application | undefined;
    let patch: MergePatch | undefined;
    for (let step = 0; step < maxSteps; step++) {
      const local = this.#options.view.get(ref);
      const next = plan(local);
      try {
        switch (next.action) {
          case 'none':
            return { is: 'done', copy: written ?? local };
          case 'wait':
            return { is: 'done', copy: undefined };
          case 'refuse':
            return { is: 'stopped', message: next.message, rejected: false, mayPass: false };
          case 'gone':
            return { is: 'gone', sourceUid: next.sourceUid };
          case 'update':
            if (isEqual(next.patch, patch)) {
              // This API server makes something else of what was written; writing it again would change nothing.
              return { is: 'done', copy: written };
            }
            patch = next.patch;
            written = await this.#patch(ref, next, signal);
            break;
          case 'create': {
            const objection = this.#options.objection(ref.namespace);
            return objection === undefined
              ? { is: 'done', copy: await this.#create(ref, next, signal) }
              : { is: 'stopped', message: objection, rejected: false, mayPass: false };
          }
          case 'delete':
            await this.#delete(ref, next, signal);
            break;
        }
      } catch (error) {
        const failure = failureOf(error);
        // Nothing that is created can be missing but the namespace.
        switch (failure === 'not-found' && next.action === 'create' ? 'rejected' : failure) {
          case 'rejected':
            return {
              is: 'stopped',
              message: error instanceof Error ? error.message : String(error),
              rejected: true,
              mayPass: mayPassLater(error),
            };
          case 'transient':
            throw error;
          default:
            // The object is not what we thought it was: plan again with what it is.
            if ((await this.read(ref, signal)) !== undefined && this.#options.view.get(ref) === undefined) {
              const message = `${ref.namespace}/${ref.name} exists, but takes no part in synchronisation (by a label)`;
              return { is: 'stopped', message, rejected: true, mayPass: false };
            }
        }
      }
    }
    return { is: 'unsettled' };
  }

  async #create(ref: ObjectRef, plan: Plan & { action: 'create' }, signal: AbortSignal): Promise<Application> {
    const { store, ensureNamespace } = this.#options;
    try {
      return this.#written(ref, 'created', await store.create(plan.object, signal));
    } catch (error) {
      if (ensureNamespace === undefined || failureOf(error) !== 'not-found') {
        throw error;
      }
      await ensureNamespace(ref.namespace, signal);
      return this.#written(ref, 'created', await store.create(plan.object, signal));
    }
  }

  async #patch(ref: ObjectRef, plan: Plan & { action: 'update' }, signal: AbortSignal): Promise<Application> {
    return this.#written(ref, plan.reason, await this.#options.store.patch(ref, plan.patch, signal));
  }

  #written(ref: ObjectRef, reason: string, written: Application): Application {
    this.#options.log.info({ application: displayName(ref), reason }, 'Application written');
    this.#options.view.learn(written);
    return written;
  }

  async #delete(ref: ObjectRef, plan: Plan & { action: 'delete' }, signal: AbortSignal): Promise<void> {
    const { uid, propagation } = plan;
    await this.#options.store.delete(ref, { uid, propagation }, signal);
    this.#options.log.info({ application: displayName(ref), propagation }, 'Application deleted');
    await this.read(ref, signal);
  }

  /** Looks at what the API server has. What takes no part in synchronisation stays out of the view. */
  async read(ref: ObjectRef, signal: AbortSignal): Promise<Application | undefined> {
    const { store, view } = this.#options;
    const before = view.get(ref);
    const now = await store.read(ref, signal);
    if (now === undefined && before !== undefined) {
      view.lost(before);
    } else if (now !== undefined && !isSkipped(now)) {
      view.learn(now);
    }
    return now;
  }
}
