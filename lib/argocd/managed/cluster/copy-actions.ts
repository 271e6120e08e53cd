import type { Logger } from '../../../base/index.ts';
import type { InboxOutcome, ObjectRef, View } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import type { ApplicationMessage } from '../../peer/messages.ts';
import { placeOf } from '../../place.ts';
import { Terminations } from '../../terminations.ts';
import type { ApplicationWriter } from '../../writing/application-writer.ts';
import type { Plan } from '../../writing/plan.ts';
import { planDeletion, planStuckDeletion } from './copy-plan.ts';
import { isUnmarked } from './desired-copy.ts';
import { planNote, planOperation, planTermination, planUnnoted } from './operation-plan.ts';

/**
 * What is done to a copy once, as opposed to a state that is kept. What cannot be done is said in the log, and over unless
 * it may pass later.
 */
export class CopyActions {
  readonly #writer: ApplicationWriter;
  readonly #view: View<Application>;
  readonly #log: Logger;
  /** What had started last when an operation was first tried. */
  readonly #operations = new WeakMap<ApplicationMessage, { readonly startedAt: unknown }>();

  readonly #terminations = new Terminations<ApplicationMessage>();

  constructor(options: { writer: ApplicationWriter; view: View<Application>; log: Logger }) {
    this.#writer = options.writer;
    this.#view = options.view;
    this.#log = options.log;
  }

  /** Starts an operation; `later`: it has to wait. */
  async operate(ref: ObjectRef, message: ApplicationMessage, signal: AbortSignal): Promise<InboxOutcome | 'later'> {
    const before = this.#operations.get(message);
    const startedAt = this.#view.get(ref)?.status?.operationState?.startedAt;
    this.#operations.set(message, before ?? { startedAt });
    let isLater = false;
    const plan = (local: Application | undefined): Plan => {
      const next = planOperation(message.object, local, before);
      isLater = next.action === 'later';
      return next.action === 'later' ? { action: 'none' } : next;
    };
    const outcome = await this.#run(ref, plan, signal);
    return isLater && outcome === 'done' ? 'later' : outcome;
  }

  /** Notes on its copy an operation that waits, so that it outlives this program. */
  note(ref: ObjectRef, { object }: ApplicationMessage, note: string, signal: AbortSignal): Promise<InboxOutcome> {
    return this.#run(ref, (local) => planNote(object, note, local), signal);
  }

  /** No operation waits any more. */
  unnote(ref: ObjectRef, signal: AbortSignal): Promise<InboxOutcome> {
    return this.#run(ref, planUnnoted, signal);
  }

  /** Ends the operation that runs. */
  terminate(ref: ObjectRef, message: ApplicationMessage, signal: AbortSignal): Promise<InboxOutcome> {
    const plan = (local: Application | undefined): Plan => {
      const next = planTermination(message.object, local);
      if (next.action === 'update' && local !== undefined) {
        this.#terminations.carriedOut(placeOf(ref), local, message);
      }
      return next;
    };
    return this.#run(ref, plan, signal);
  }

  /** The termination that has to be carried out again, now that a copy is like this. */
  overruled(ref: ObjectRef, local: Application | undefined): ApplicationMessage | undefined {
    return this.#terminations.overruled(placeOf(ref), local);
  }

  /** Deletes the copy of a source. `last` is what the source was, if that is known. */
  delete(ref: ObjectRef, sourceUid: string, last: Application | undefined, signal: AbortSignal): Promise<InboxOutcome> {
    return this.#run(ref, (local) => planDeletion(sourceUid, local, last), signal);
  }

  /** Makes Argo CD look at a deletion that takes long. */
  nudge(ref: ObjectRef, now: Date, signal: AbortSignal): Promise<InboxOutcome> {
    let isDone = false;
    const plan = (local: Application | undefined): Plan => {
      const next: Plan =
        isDone || local === undefined || isUnmarked(local) ? { action: 'none' } : planStuckDeletion(local, now);
      isDone = true;
      return next;
    };
    return this.#run(ref, plan, signal);
  }

  async #run(
    ref: ObjectRef,
    plan: (local: Application | undefined) => Plan,
    signal: AbortSignal,
  ): Promise<InboxOutcome> {
    const result = await this.#writer.run(ref, plan, signal);
    if (result.is === 'stopped') {
      this.#log.warn({ application: placeOf(ref) }, result.message);
    }
    return result.is === 'unsettled' || (result.is === 'stopped' && result.mayPass) ? 'retry' : 'done';
  }
}
