import type { Condition } from '../../lib/kube/index.ts';

/** The status of one condition of a GitOpsCluster. Undefined leaves the condition as it is. */
export type StepResult =
  | { readonly status: Condition['status']; readonly reason: StepReason; readonly message: string }
  | undefined;

/** Reasons of argocd-pull-integration. */
export type StepReason = 'Success' | 'Failed' | 'InProgress' | 'ServerNotDiscovered' | 'NoClusters';

/** What one step of a reconcile returns: the status of its condition, and what later steps use. */
export interface StepReport<T = undefined> {
  readonly result: StepResult;
  /** What the step found for later steps; undefined when it could not find it. */
  readonly found?: T;
  /** When the step must run again although nothing changed, in milliseconds since the epoch. */
  readonly renewAt?: number;
  /** An error that occurred after `found` was known. It counts as if it had been thrown. */
  readonly error?: unknown;
}

/** The result of a step whose input is missing or wrong. */
export const failed = (message: string, reason: StepReason = 'Failed'): StepResult => ({
  status: 'False',
  reason,
  message,
});

/** The result of a step that did its work. */
export const succeeded = (message: string, reason: StepReason = 'Success'): StepResult => ({
  status: 'True',
  reason,
  message,
});
