import type { InboxOutcome, ObjectRef, View } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import type { ApplicationMessage } from '../../peer/messages.ts';
import { placeOf } from '../../place.ts';
import { Terminations } from '../../terminations.ts';
import type { Plan } from '../../writing/plan.ts';
import type { PlanWriter } from '../../writing/plan-writer.ts';
import { planStuckDeletion } from './copy-plan.ts';
import { isUnmarked } from './desired-copy.ts';
import { planNote, planOperation, planTermination, planUnnoted } from './operation-plan.ts';

/**
 * Changes of a copy that are made once, as opposed to a state that is kept. What is not possible is logged. What the API
 * server refuses throws.
 */
export class CopyActions {
  readonly #writer: PlanWriter<Application>;
  readonly #view: View<Application>;
  /** What had started last when an operation was first tried. */
  readonly #operations = new WeakMap<ApplicationMessage, { readonly startedAt: unknown }>();

  readonly #terminations = new Terminations<ApplicationMessage>();

  readonly #reportedEnd: (ref: ObjectRef) => string | undefined;
  /** When the last operation had begun whose end the principal knew when it sent a message. */
  readonly #knownEnds = new WeakMap<ApplicationMessage, string | undefined>();

  constructor(options: {
    writer: PlanWriter<Application>;
    view: View<Application>;
    /** When the last operation began whose end the principal has acknowledged. */
    reportedEnd: (ref: ObjectRef) => string | undefined;
  }) {
    this.#writer = options.writer;
    this.#view = options.view;
    this.#reportedEnd = options.reportedEnd;
  }

  /**
   * A message has come, which may ask for an operation. Acknowledgements that came before it were sent before it, so what they
   * are of the principal knew; those that come while it waits for its turn say nothing about it.
   */
  received(ref: ObjectRef, message: ApplicationMessage): void {
    if (message.object.operation !== undefined) {
      this.#knownEnds.set(message, this.#reportedEnd(ref));
    }
  }

  /** Starts an operation; `later`: it has to wait. */
  async operate(ref: ObjectRef, message: ApplicationMessage, signal: AbortSignal): Promise<InboxOutcome | 'later'> {
    let before = this.#operations.get(message);
    const startedAt = this.#view.get(ref)?.status?.operationState?.startedAt;
    this.#operations.set(message, before ?? { startedAt });
    let isLater = false;
    const plan = (local: Application | undefined): Plan => {
      const next = planOperation(message.object, local, before, (time) => this.#knownEnds.get(message) === time);
      isLater = next.action === 'later';
      if (next.action === 'update') {
        // If the answer to this attempt is lost, the operation may have run before the next one.
        before ??= { startedAt: local?.status?.operationState?.startedAt };
      }
      return next.action === 'later' ? { action: 'none' } : next;
    };
    const outcome = await this.#writer.once(ref, plan, signal);
    return isLater && outcome === 'done' ? 'later' : outcome;
  }

  /** Notes on its copy an operation that waits, so that it outlives this program. */
  note(ref: ObjectRef, { object }: ApplicationMessage, note: string, signal: AbortSignal): Promise<InboxOutcome> {
    return this.#writer.once(ref, (local) => planNote(object, note, local), signal);
  }

  /** No operation waits any more. */
  unnote(ref: ObjectRef, signal: AbortSignal): Promise<InboxOutcome> {
    return this.#writer.once(ref, planUnnoted, signal);
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
    return this.#writer.once(ref, plan, signal);
  }

  /** The termination that has to be carried out again, now that a copy is like this. */
  overruled(ref: ObjectRef, local: Application | undefined): ApplicationMessage | undefined {
    return this.#terminations.overruled(placeOf(ref), local);
  }

  /** Makes Argo CD reconcile a deletion that takes long. */
  reconcileStuck(ref: ObjectRef, now: Date, signal: AbortSignal): Promise<InboxOutcome> {
    let isDone = false;
    const plan = (local: Application | undefined): Plan => {
      const next: Plan =
        isDone || local === undefined || isUnmarked(local) ? { action: 'none' } : planStuckDeletion(local, now);
      isDone = true;
      return next;
    };
    return this.#writer.once(ref, plan, signal);
  }
}
