import type { Condition } from '../../lib/kube/index.ts';

/** The status of one condition of a GitOpsCluster. Undefined keeps the condition as it is. */
export type StepResult =
  | { readonly status: Condition['status']; readonly reason: StepReason; readonly message: string }
  | undefined;

/**
 * Condition reasons: those of argocd-pull-integration, four about the hub's Argo CD, `Conflict`: another GitOpsCluster owns
 * a cluster, two about a namespace in which the controller has no rights, and one about settings without effect.
 */
export type StepReason =
  | 'Success'
  | 'Failed'
  | 'InProgress'
  | 'ServerNotDiscovered'
  | 'NoClusters'
  | 'HubReconcilesApplications'
  | 'VersionUnknown'
  | 'VersionNotSupported'
  | 'HubArgoCDNotConfigured'
  | 'Conflict'
  | 'NamespaceNotServed'
  | 'NamespaceNotReadable'
  | 'UnknownParameters';

/** The return value of one step of a reconcile: the status of its condition, and its findings for later steps. */
export interface StepReport<T = undefined> {
  readonly result: StepResult;
  /** The findings for later steps; undefined when there are none. */
  readonly found?: T;
  /** When the step must run again without any change, in milliseconds since the epoch. */
  readonly renewAt?: number;
  /** An error that occurred after `found` was known. It is handled like a thrown error. */
  readonly error?: unknown;
}

/** The result of a step whose input is missing or wrong. */
export const failed = (message: string, reason: StepReason = 'Failed'): StepResult => ({
  status: 'False',
  reason,
  message,
});

/** The result of a step that succeeded. */
export const succeeded = (message: string, reason: StepReason = 'Success'): StepResult => ({
  status: 'True',
  reason,
  message,
});
