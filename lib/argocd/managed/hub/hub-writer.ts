import type { Logger, MergePatch } from '../../../base/index.ts';
import {
  failureOf,
  type InboxOutcome,
  mayPassLater,
  type ObjectRef,
  type Store,
  type View,
} from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { displayName } from '../../log.ts';

const maxSteps = 6;

/** Writes the hub's Applications, and lets a view know what came of it. */
export class HubWriter {
  readonly #store: Store<Application>;
  readonly #view: View<Application>;
  readonly #log: Logger;

  constructor(options: { store: Store<Application>; view: View<Application>; log: Logger }) {
    this.#store = options.store;
    this.#view = options.view;
    this.#log = options.log;
  }

  /**
   * Plans and writes until the plan has nothing to say, or was written. What the API server refuses for good is said in the
   * log, with `about`, and over. Throws when it cannot be asked now.
   */
  async run(
    ref: ObjectRef,
    plan: (hub: Application | undefined) => MergePatch | undefined,
    about: object,
    signal: AbortSignal,
  ): Promise<InboxOutcome> {
    for (let step = 0; step < maxSteps; step++) {
      const patch = plan(this.#view.get(ref));
      if (patch === undefined) {
        return 'done';
      }
      try {
        this.#view.learn(await this.#store.patch(ref, patch, signal));
        return 'done';
      } catch (error) {
        switch (failureOf(error)) {
          case 'rejected':
            if (mayPassLater(error)) {
              throw error;
            }
            this.#log.error(
              { ...about, application: displayName(ref), err: error },
              'the API server refuses what is to be written',
            );
            return 'done';
          case 'transient':
            throw error;
          default:
            await this.read(ref, signal);
        }
      }
    }
    return 'retry';
  }

  /** Looks at what the API server has. */
  async read(ref: ObjectRef, signal: AbortSignal): Promise<void> {
    const before = this.#view.get(ref);
    const now = await this.#store.read(ref, signal);
    if (now !== undefined) {
      this.#view.learn(now);
    } else if (before !== undefined) {
      this.#view.lost(before);
    }
  }
}
