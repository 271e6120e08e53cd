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
 * What has to be patched along with an operation where none is: Argo CD would go on from a state that says that one is carried
 * out, instead of beginning the new one. argocd-server takes every state away.
 */
export function withoutStaleState({ status }: Application): MergePatch {
  return isInProgress(status?.operationState) ? { status: { operationState: null } } : {};
}
