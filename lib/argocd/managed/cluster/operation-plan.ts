import type { Application } from '../../application.ts';
import { annotations } from '../../names.ts';
import { askingFor, isSameOperation, withoutFormerState } from '../../operation-state.ts';
import type { Plan } from '../../writing/plan.ts';
import { sourceUidOf } from '../copy.ts';
import { ranUnreported } from '../status.ts';
import { isDeleting, update } from './copy-plan.ts';
import { withoutNote } from './queued-operation-note.ts';

/**
 * Decides what a `set-operation` does. It needs a copy that stays; and Argo CD, when an operation ends, forgets whatever was
 * set meanwhile, so it waits for the end of another one. One that ran since what the hub knows of is what is asked for: a
 * principal that restarted requests again what was not reported as finished.
 * @param before when the operation before this one had started, if an attempt to set this one was already made: its
 * answer may have been lost, and then it shows by having started
 * @param isReported whether the principal knew, when it sent the request, that the operation that began then had ended
 */
export function planOperation(
  hub: Application,
  local: Application | undefined,
  before?: { readonly startedAt: unknown },
  isReported: (startedAt: string) => boolean = () => false,
): Plan | { readonly action: 'later' } {
  if (local === undefined || refusalOf(hub, local) !== undefined || isDeleting(local)) {
    return { action: 'later' };
  }
  const state = local.status?.operationState;
  const hasStarted =
    before !== undefined && state?.startedAt !== before.startedAt && isSameOperation(state?.operation, hub.operation);
  if (
    hub.operation === undefined ||
    isSameOperation(local.operation, hub.operation) ||
    hasStarted ||
    ranUnreported(hub, local, isReported)
  ) {
    return planUnnoted(local);
  }
  if (local.operation !== undefined) {
    return { action: 'later' };
  }
  return update(local, { ...withoutNote(local), ...askingFor(hub.operation), ...withoutFormerState(local) }, true);
}

/** Decides what to do with an operation that has to wait and is to outlive this program: it is noted on its copy. */
export function planNote(hub: Application, note: string, local: Application | undefined): Plan {
  return local === undefined ||
    refusalOf(hub, local) !== undefined ||
    isDeleting(local) ||
    local.metadata.annotations?.[annotations.waitingOperation] === note
    ? { action: 'none' }
    : update(local, { metadata: { annotations: { [annotations.waitingOperation]: note } } });
}

/** Decides what to do when no operation waits for a copy any more. */
export function planUnnoted(local: Application | undefined): Plan {
  const patch = local === undefined ? {} : withoutNote(local);
  return local === undefined || patch.metadata === undefined ? { action: 'none' } : update(local, patch);
}

/**
 * Decides what a `terminate-operation` does. Only an operation that runs is terminated, and only the one that the hub's user
 * saw; the resource version makes sure that it did not end meanwhile.
 */
export function planTermination(hub: Application, local: Application | undefined): Plan {
  const refusal = refusalOf(hub, local);
  if (refusal !== undefined || local === undefined) {
    return { action: 'refuse', message: `operation not terminated: ${refusal}` };
  }
  const { phase, startedAt } = local.status?.operationState ?? {};
  const seen = hub.status?.operationState?.startedAt;
  if (local.operation === undefined || phase !== 'Running' || (seen !== undefined && seen !== startedAt)) {
    return { action: 'none' };
  }
  return update(local, { status: { operationState: { phase: 'Terminating' } } }, true);
}

function refusalOf(hub: Application, local: Application | undefined): string | undefined {
  if (local === undefined) {
    return 'there is no such Application';
  }
  return local.metadata.annotations?.[annotations.sourceUid] === sourceUidOf(hub)
    ? undefined
    : 'the Application belongs to another source';
}
