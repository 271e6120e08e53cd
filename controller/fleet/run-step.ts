import { isConflict } from '../../lib/kube/index.ts';
import { failed, type StepReport, type StepResult } from '../hub/index.ts';

/** One step of a GitOpsCluster's reconcile. It determines one condition. */
export interface Step {
  readonly condition: string;
  /** Used as `Failed to <purpose>: <error>` when the step throws. */
  readonly purpose: string;
}

/** The end of a step. With an `error` the GitOpsCluster is reconciled again, after a back-off. */
export interface StepOutcome<T = unknown> extends StepReport<T> {
  readonly condition: string;
}

/** Runs one step. A step that throws becomes a failed condition, so that the other steps still run. */
export async function runStep<T>(
  { condition, purpose }: Step,
  signal: AbortSignal,
  run: () => Promise<StepReport<T>> | StepReport<T>,
): Promise<StepOutcome<T>> {
  const report = await attempt(run);
  if (report.error === undefined) {
    return { condition, ...report };
  }
  signal.throwIfAborted();
  return { ...report, condition, result: resultOf(report.error, purpose) };
}

async function attempt<T>(run: () => Promise<StepReport<T>> | StepReport<T>): Promise<StepReport<T>> {
  try {
    return await run();
  } catch (error) {
    return { result: undefined, error };
  }
}

/** A conflict is retried at once and changes no condition. */
function resultOf(error: unknown, purpose: string): StepResult {
  return isConflict(error) ? undefined : failed(`Failed to ${purpose}: ${(error as Error).message}`);
}
