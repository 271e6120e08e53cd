import type { Condition } from '../../lib/kube/index.ts';
import type { FleetReasons } from './condition-types.ts';

/** A reason of a GitOpsCluster's condition. */
type StepReason = FleetReasons[keyof FleetReasons];
/** The reasons of most conditions. */
type UsualReason = 'Success' | 'Failed';

/** The status of one condition of a GitOpsCluster. Undefined keeps the condition as it is. */
export type StepResult<Reason extends StepReason = UsualReason> =
  | { readonly status: Condition['status']; readonly reason: Reason; readonly message: string }
  | undefined;

/** The return value of one step of a reconcile: the status of its condition, and its findings for later steps. */
export interface StepReport<T = undefined, Reason extends StepReason = UsualReason> {
  readonly result: StepResult<Reason>;
  /** The findings for later steps; undefined when there are none. */
  readonly found?: T;
  /** When the step must run again without any change, in milliseconds since the epoch. */
  readonly renewAt?: number;
  /** An error that occurred after `found` was known. It is handled like a thrown error. */
  readonly error?: unknown;
}

/** The result of a step whose input is missing or wrong. */
export const failed = <Reason extends StepReason = 'Failed'>(
  message: string,
  reason: Reason = 'Failed' as Reason,
): StepResult<Reason> => ({ status: 'False', reason, message });

/** The result of a step that succeeded. */
export const succeeded = <Reason extends StepReason = 'Success'>(
  message: string,
  reason: Reason = 'Success' as Reason,
): StepResult<Reason> => ({ status: 'True', reason, message });
