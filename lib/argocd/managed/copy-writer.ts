import { failureOf, type MergePatch, type Store, type View } from '../../sync/index.ts';
import type { Application } from '../application.ts';
import { isEqual } from '../merge-patch.ts';
import type { SyncLog } from './log.ts';
import type { Plan } from './plan.ts';

/** What came of a {@link CopyWriter.run}. */
export type Result =
  /** `copy`: the object as it was written or found to be right; undefined when there is none. */
  | { readonly is: 'done'; readonly copy: Application | undefined }
  /** There is no copy any more of a hub object that is being deleted. */
  | { readonly is: 'gone'; readonly sourceUid: string }
  /** It cannot be done as things are. */
  | { readonly is: 'stopped'; readonly message: string; readonly rejected: boolean }
  /** The object changed under us again and again. */
  | { readonly is: 'unsettled' };

const maxSteps = 6;

/** Carries plans out on the Applications of one namespace, and lets a view know what came of it. */
export class CopyWriter {
  readonly #store: Store<Application>;
  readonly #view: View<Application>;
  readonly #namespace: string;
  readonly #log: SyncLog;

  constructor(store: Store<Application>, view: View<Application>, namespace: string, log: SyncLog) {
    this.#store = store;
    this.#view = view;
    this.#namespace = namespace;
    this.#log = log;
  }

  /** Plans and writes until there is nothing more to do for now. Throws when the API server cannot be asked now. */
  async run(name: string, plan: (local: Application | undefined) => Plan, signal: AbortSignal): Promise<Result> {
    let written: Application | undefined;
    let patch: MergePatch | undefined;
    for (let step = 0; step < maxSteps; step++) {
      const local = this.#view.get({ namespace: this.#namespace, name });
      const next = plan(local);
      try {
        switch (next.action) {
          case 'none':
            return { is: 'done', copy: written ?? local };
          case 'wait':
            return { is: 'done', copy: undefined };
          case 'refuse':
            return { is: 'stopped', message: next.message, rejected: false };
          case 'gone':
            return { is: 'gone', sourceUid: next.sourceUid };
          case 'update':
            if (isEqual(next.patch, patch)) {
              // This API server makes something else of what was written; writing it again would change nothing.
              return { is: 'done', copy: written };
            }
            patch = next.patch;
            written = await this.#write(name, next, signal);
            break;
          case 'create':
            return { is: 'done', copy: await this.#write(name, next, signal) };
          case 'delete':
            await this.#delete(name, next, signal);
            break;
        }
      } catch (error) {
        switch (failureOf(error)) {
          case 'rejected':
            return { is: 'stopped', message: error instanceof Error ? error.message : String(error), rejected: true };
          case 'transient':
            throw error;
          default:
            // The object is not what we thought it was: plan again with what it is.
            await this.read(name, signal);
        }
      }
    }
    return { is: 'unsettled' };
  }

  async #write(name: string, plan: Plan & { action: 'create' | 'update' }, signal: AbortSignal): Promise<Application> {
    const written =
      plan.action === 'create'
        ? await this.#store.create(plan.object, signal)
        : await this.#store.patch({ namespace: this.#namespace, name }, plan.patch, signal);
    const reason = plan.action === 'create' ? 'created' : plan.reason;
    this.#log.info({ application: name, reason }, 'Application written');
    this.#view.learn(written);
    return written;
  }

  async #delete(name: string, plan: Plan & { action: 'delete' }, signal: AbortSignal): Promise<void> {
    const { uid, propagation } = plan;
    await this.#store.delete({ namespace: this.#namespace, name }, { uid, propagation }, signal);
    this.#log.info({ application: name, propagation }, 'Application deleted');
    await this.read(name, signal);
  }

  /** Looks at what the API server has. */
  async read(name: string, signal: AbortSignal): Promise<void> {
    const before = this.#view.get({ namespace: this.#namespace, name });
    const now = await this.#store.read({ namespace: this.#namespace, name }, signal);
    if (now !== undefined) {
      this.#view.learn(now);
    } else if (before !== undefined) {
      this.#view.lost(before);
    }
  }
}
