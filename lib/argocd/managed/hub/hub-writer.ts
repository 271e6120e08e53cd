import type { Logger, MergePatch } from '../../../base/index.ts';
import { type InboxOutcome, mayPassLater, type ObjectRef, type Store, type View } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { placeOf } from '../../place.ts';
import { isSkipped } from '../../routing.ts';
import { ObjectWriter } from '../../writing/object-writer.ts';

/** Patches the hub's Applications. */
export class HubWriter {
  readonly #writer: ObjectWriter<Application>;
  readonly #log: Logger;

  constructor(options: { store: Store<Application>; view: View<Application>; log: Logger }) {
    // The cache leaves them out: the view would wait for them there.
    this.#writer = new ObjectWriter({ ...options, isHidden: isSkipped });
    this.#log = options.log;
  }

  /**
   * Plans and patches until the plan asks for nothing, or was written. What the API server refuses for good is logged, with
   * the fields `about`, and given up. Throws when it cannot be asked now.
   */
  async run(
    ref: ObjectRef,
    plan: (hub: Application | undefined) => MergePatch | undefined,
    about: object,
    signal: AbortSignal,
  ): Promise<InboxOutcome> {
    const result = await this.#writer.run<{ is: 'done' }>(
      ref,
      (hub) => {
        const patch = plan(hub);
        return patch === undefined
          ? { result: { is: 'done' } }
          : { write: { action: 'update', patch }, after: () => ({ is: 'done' }) };
      },
      signal,
    );
    if (result.is !== 'rejected') {
      return result.is === 'done' ? 'done' : 'retry';
    }
    if (mayPassLater(result.error)) {
      throw result.error;
    }
    this.#log.error(
      { ...about, application: placeOf(ref), error: result.error },
      'the API server refuses what is to be written',
    );
    return 'done';
  }

  /** Looks at what the API server has, for a view that doubts what it has. A failure is only logged. */
  check(ref: ObjectRef, signal: AbortSignal): Promise<void> {
    return this.#writer.check(ref, signal);
  }
}
