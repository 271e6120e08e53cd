import { isConflict } from '../../lib/kube/index.ts';
import { type FleetConditionType, type FleetReasons, failed, type StepReport, type StepResult } from '../hub/index.ts';

/** One step of a GitOpsCluster's reconcile. It determines one condition. */
export interface Step<Type extends FleetConditionType = FleetConditionType> {
  readonly condition: Type;
  /** Used as `Failed to <purpose>: <error>` when the step throws. */
  readonly purpose: string;
}

/** The condition types that a step may set when it throws. */
export type FallibleConditionType = {
  [Type in FleetConditionType]: 'Failed' extends FleetReasons[Type] ? Type : never;
}[FleetConditionType];

/** The end of a step. With an `error` the GitOpsCluster is reconciled again, after a back-off. */
export interface StepOutcome<T = unknown> extends StepReport<T, FleetReasons[FleetConditionType]> {
  readonly condition: FleetConditionType;
}

/** Runs one step. A step that throws becomes a failed condition, so that the other steps still run. */
export async function runStep<T, Type extends FallibleConditionType>(
  { condition, purpose }: Step<Type>,
  signal: AbortSignal,
  run: () => Promise<StepReport<T, FleetReasons[Type]>> | StepReport<T, FleetReasons[Type]>,
): Promise<StepOutcome<T>> {
  const report = await attempt(run);
  if (report.error === undefined) {
    return { condition, ...report };
  }
  signal.throwIfAborted();
  return { ...report, condition, result: resultOf(report.error, purpose) };
}

async function attempt<Report extends { readonly error?: unknown }>(
  run: () => Promise<Report> | Report,
): Promise<Report | { readonly result: undefined; readonly error: unknown }> {
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
