import type { Application } from '../../application.ts';
import { copiedFrom } from '../../copied-from.ts';
import { isInProgress, type OperationState } from '../../operation-state.ts';

/** What happens to status and operation when an Application that somebody deleted on the managed cluster is made again. */
export type RecreatePolicy = 'ignore' | 'clear-status' | 'resync';

/**
 * The object to create in place of one that somebody deleted, by what it was when last seen. Of a copy of another source it
 * takes nothing over.
 */
export function recreated(object: Application, lastSeen: Application, policy: RecreatePolicy, now: Date): Application {
  if (copiedFrom(lastSeen) !== copiedFrom(object)) {
    return object;
  }
  // Without the time of the last comparison Argo CD compares at once: its finalizer may have removed the resources.
  const { reconciledAt: _, operationState, ...others } = lastSeen.status ?? {};
  const operation = unfinished(lastSeen);
  const state = stateAfter(operationState, operation !== undefined, now);
  const status = policy === 'clear-status' || state === undefined ? others : { ...others, operationState: state };
  const toDo = operation ?? (policy === 'resync' ? { sync: {} } : undefined);
  return { ...object, status, ...(toDo === undefined ? {} : { operation: toDo }) };
}

/** What was asked for and has not ended is asked for again; what was to be ended has ended by the deletion. */
function unfinished({ operation, status }: Application): Application['operation'] {
  return status?.operationState?.phase === 'Terminating' ? undefined : operation;
}

/**
 * Argo CD ends only what it carries out: a state with a running operation would keep it for ever, and with the next
 * operation Argo CD would go on from there, though the deletion may have removed what was deployed until then.
 */
function stateAfter(state: OperationState | undefined, beginsAnew: boolean, now: Date): OperationState | undefined {
  if (state === undefined || !isInProgress(state)) {
    return state;
  }
  return beginsAnew
    ? undefined
    : {
        ...state,
        phase: 'Failed',
        message: 'the operation ended when the Application was deleted on the managed cluster',
        finishedAt: now.toISOString().replace(/\.\d+Z$/, 'Z'),
      };
}
