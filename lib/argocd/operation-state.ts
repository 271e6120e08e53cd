import type { MergePatch } from '../sync/index.ts';
import type { Application } from './application.ts';

/** What Argo CD says of the operation that it carries out, or carried out last. */
export type OperationState = NonNullable<NonNullable<Application['status']>['operationState']>;

/** Whether Argo CD takes an operation for one that is carried out, or tried again, as it does by the phase alone. */
export function isInProgress(state: OperationState | undefined): boolean {
  return state?.phase === 'Running' || state?.phase === 'Terminating';
}

/**
 * What has to be patched along with an operation where none is: Argo CD would go on from a state that says that one is carried
 * out, instead of beginning the new one. argocd-server takes every state away.
 */
export function withoutStaleState({ status }: Application): MergePatch {
  return isInProgress(status?.operationState) ? { status: { operationState: null } } : {};
}
