import { type InboxOutcome, type ObjectRef, type Runtime, refOf, type View } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { annotations } from '../../names.ts';
import { isSameOperation } from '../../operation-state.ts';
import type { ApplicationMessage } from '../../peer/messages.ts';
import { placeOf } from '../../place.ts';
import { sourceUidOf } from '../copy.ts';
import type { CopyActions } from './copy-actions.ts';
import { notedOn, noteFor } from './queued-operation-note.ts';

/** How {@link Operations} work. */
export interface OperationsOptions {
  readonly runtime: Runtime;
  readonly view: View<Application>;
  readonly actions: CopyActions;
  /** Has {@link Operations.resume} called, in its turn. */
  readonly again: (ref: ObjectRef, message: ApplicationMessage) => void;
}

interface Waiting {
  readonly message: ApplicationMessage;
  isLate: boolean;
  /** It is getting its turn. */
  isCalled: boolean;
  readonly cancel: () => void;
}

/** How long an operation waits for a copy to be made. Later nobody expects it any more. */
const patienceMs = 600_000;
/** Beyond any number of Applications that users have operated at once. */
const most = 10_000;

/**
 * Operations that the hub's users ask for. Some cannot be set on their copies yet: there is no copy, or another operation is
 * there, with whose end Argo CD would forget this one. They wait, at most one for each place: as on the hub, a newer one
 * takes the place of one that has not begun. They are acknowledged when they are set, so that no restart loses one; those of
 * a principal that cannot wait for that are noted on their copies (it sends those that wait for a copy again with the copy).
 */
export class Operations {
  readonly #options: OperationsOptions;
  readonly #waiting = new Map<string, Waiting>();

  constructor(options: OperationsOptions) {
    this.#options = options;
  }

  /** Operations that wait. */
  get size(): number {
    return this.#waiting.size;
  }

  /** The hub's user requests an operation, or withdraws one. */
  async start(ref: ObjectRef, message: ApplicationMessage, signal: AbortSignal): Promise<InboxOutcome> {
    if (message.object.operation === undefined) {
      // What has begun goes on.
      this.forget(ref, sourceUidOf(message.object));
      return this.#options.actions.unnote(ref, signal);
    }
    const { actions, view } = this.#options;
    const { log } = this.#options.runtime;
    const outcome = await actions.operate(ref, message, signal);
    if (outcome !== 'later') {
      if (outcome === 'done') {
        this.#settledCopy(ref, message);
      }
      return outcome;
    }
    const application = placeOf(ref);
    if (this.#wait(ref, message)) {
      log.info(
        { application },
        'an operation waits for the Application to be made, or for the end of another operation',
      );
      const note = isAwaited(message) ? undefined : noteFor(message);
      const noted =
        note === undefined ? await actions.unnote(ref, signal) : await actions.note(ref, message, note, signal);
      // What it waits for may have come while this was decided.
      this.localChange(ref, view.get(ref));
      return noted;
    } else {
      log.warn({ application }, 'operation not started: there is no such Application');
      this.#settledCopy(ref, message);
    }
    return 'done';
  }

  /** Continues with what an earlier process noted on a copy. */
  found(copy: Application): void {
    const ref = refOf(copy);
    const message = notedOn(copy);
    if (message !== undefined && this.#wait(ref, message)) {
      this.localChange(ref, copy);
    }
  }

  /** It is the turn of an operation that waited. */
  async resume(ref: ObjectRef, message: ApplicationMessage, signal: AbortSignal): Promise<InboxOutcome> {
    return this.#message(ref) === message ? this.start(ref, message, signal) : 'done';
  }

  /** What is at this place changed: what waits may be set now. */
  localChange(ref: ObjectRef, local: Application | undefined): void {
    const message = this.#message(ref);
    if (
      message !== undefined &&
      isCopyOf(local, message) &&
      (local?.operation === undefined || isSameOperation(local.operation, message.object.operation))
    ) {
      this.#call(ref);
    }
  }

  /** Drops the operation of this source. */
  forget(ref: ObjectRef, sourceUid: string): void {
    const message = this.#message(ref);
    if (message !== undefined && sourceUidOf(message.object) === sourceUid) {
      this.#drop(ref);
    }
  }

  /** Whether the message must not be acknowledged yet. */
  isOpen(ref: ObjectRef, message: ApplicationMessage): boolean {
    return isAwaited(message) && this.#message(ref)?.eventId === message.eventId;
  }

  /** Stops all timers. */
  close(): void {
    for (const { cancel } of this.#waiting.values()) {
      cancel();
    }
    this.#waiting.clear();
  }

  #wait(ref: ObjectRef, message: ApplicationMessage): boolean {
    const { view } = this.#options;
    const { clock } = this.#options.runtime;
    const known = this.#waiting.get(placeOf(ref));
    if (known?.message === message && (!known.isLate || !isCopyOf(view.get(ref), message))) {
      // Only for a copy the wait has an end: where there is one, it gets its turn.
      known.isCalled = false;
      return !known.isLate;
    }
    if (known === undefined && this.#waiting.size >= most) {
      return false;
    }
    known?.cancel();
    const cancel = clock.after(patienceMs, () => {
      one.isLate = true;
      this.#call(ref);
    });
    const one = { message, isLate: false, isCalled: false, cancel };
    this.#waiting.set(placeOf(ref), one);
    return true;
  }

  #call(ref: ObjectRef): void {
    const waiting = this.#waiting.get(placeOf(ref));
    if (waiting?.isCalled === false) {
      waiting.isCalled = true;
      this.#options.again(ref, waiting.message);
    }
  }

  #message(ref: ObjectRef): ApplicationMessage | undefined {
    return this.#waiting.get(placeOf(ref))?.message;
  }

  #settledCopy(ref: ObjectRef, message: ApplicationMessage): void {
    if (this.#message(ref) === message) {
      this.#drop(ref);
    }
  }

  #drop(ref: ObjectRef): void {
    this.#waiting.get(placeOf(ref))?.cancel();
    this.#waiting.delete(placeOf(ref));
  }
}

/**
 * Whether the acknowledgement of this request means that it is carried out, and can wait for that. argocd-agent's principal,
 * whose requests have the event id of the object's state, sends nothing else about an Application before it: it could
 * neither terminate the running operation nor correct what prevents a copy. It gets the acknowledgement of an operation that
 * waits with the note, and that of a refused request at once.
 */
export function isAwaited({ type, resourceId, eventId, object }: ApplicationMessage): boolean {
  return (
    (type === 'set-operation' || type === 'terminate-operation') &&
    eventId !== `${resourceId}_${object.metadata.resourceVersion}`
  );
}

/** Whether the local object is a copy of what the message is about, and stays. */
function isCopyOf(local: Application | undefined, { object }: ApplicationMessage): boolean {
  return (
    local !== undefined &&
    local.metadata.deletionTimestamp === undefined &&
    local.metadata.annotations?.[annotations.sourceUid] === sourceUidOf(object)
  );
}
