import { applyMergePatch, isEqual, type MergePatch } from '../base/index.ts';
import type { Application } from './application.ts';

/** What Argo CD says of the operation that it carries out, or carried out last. */
export type OperationState = NonNullable<NonNullable<Application['status']>['operationState']>;

/** Whether Argo CD takes an operation for one that is carried out, or tried again, as it does by the phase alone. */
export function isInProgress(state: OperationState | undefined): boolean {
  return state?.phase === 'Running' || state?.phase === 'Terminating';
}

/** Whether an operation runs. A Go agent also has one that is over called terminating, which it then is for good. */
export function isRunning(application: Application): boolean {
  const state = application.status?.operationState;
  return isInProgress(state) && state?.finishedAt === undefined;
}

/** Whether what Argo CD says to have started is this operation; it may have added to it. */
export function isSameOperation(started: unknown, operation: Readonly<Record<string, unknown>>): boolean {
  return started !== undefined && isEqual(applyMergePatch(started, operation), started);
}

/**
 * The patch that goes with a new operation, as argocd-server makes it: the state of the one before is taken away. Argo CD's
 * application controller merges the new state into an old one, so an operation that waits (for a sync window) would later
 * resume with the former results, and end without applying anything; one that seems to run would be resumed at once.
 */
export function withoutFormerState({ status }: Application): MergePatch {
  return status?.operationState === undefined ? {} : { status: { operationState: null } };
}
