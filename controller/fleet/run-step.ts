import { isConflict } from '../../lib/kube/index.ts';
import { failed, type StepReport, type StepResult } from '../hub/index.ts';

/** One step of a GitOpsCluster's reconcile: it owns one condition. */
export interface Step {
  readonly condition: string;
  /** Used as `Failed to <purpose>: <error>` when the step throws. */
  readonly purpose: string;
}

/** How a step ended. An `error` makes the GitOpsCluster be reconciled again after a while. */
export interface StepOutcome<T = unknown> extends StepReport<T> {
  readonly condition: string;
}

/** Runs one step. A step that throws becomes a failed condition, so that the other steps still report. */
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

/** A conflict is retried at once. It says nothing to users. */
function resultOf(error: unknown, purpose: string): StepResult {
  return isConflict(error) ? undefined : failed(`Failed to ${purpose}: ${(error as Error).message}`);
}
