import type { Logger, MergePatch } from '../../../base/index.ts';
import type { InboxOutcome, ObjectRef, Store, View } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { isSkipped } from '../../routing.ts';
import { ObjectWriter } from '../../writing/object-writer.ts';

/** Patches the hub's Applications. */
export class HubWriter {
  readonly #writer: ObjectWriter<Application>;

  constructor(options: { store: Store<Application>; view: View<Application>; log: Logger }) {
    // The cache leaves them out: the view would wait for them there.
    this.#writer = new ObjectWriter({ ...options, isHidden: isSkipped });
  }

  /**
   * Plans and patches until the plan asks for nothing, or was written. Throws when the API server refuses it or cannot be
   * asked now: the caller keeps what is to be written, and tries again.
   */
  async run(
    ref: ObjectRef,
    plan: (hub: Application | undefined) => MergePatch | undefined,
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
    if (result.is === 'rejected') {
      throw result.error;
    }
    return result.is === 'done' ? 'done' : 'retry';
  }

  /** Looks at what the API server has, for a view that doubts what it has. A failure is only logged. */
  check(ref: ObjectRef, signal: AbortSignal): Promise<void> {
    return this.#writer.check(ref, signal);
  }
}
