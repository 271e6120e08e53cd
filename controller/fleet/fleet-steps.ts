import { isConflict } from '../../lib/kube/index.ts';
import { authorityStep } from '../trust/authority-step.ts';
import { principalStep, resourceProxyStep } from '../trust/hub-certificates.ts';
import { jwtStep } from '../trust/jwt-step.ts';
import { placementStep, tolerationStep } from './placement-steps.ts';
import { serverStep } from './server-step.ts';
import { failed, type Step, type StepContext, type StepResult, succeeded } from './steps.ts';
import { addOnStep, argoCdStep, cleanUpStep, healthStep, importStep, worksStep } from './summary-steps.ts';

const rbacStep: Step = {
  condition: 'RBACReady',
  purpose: 'ensure RBAC',
  run: () =>
    succeeded('RBAC resources created successfully (the chart grants everything; nothing is needed per GitOpsCluster)'),
};

const templateStep: Step = {
  condition: 'AddOnTemplateReady',
  purpose: 'ensure AddOnTemplate',
  run: () => succeeded('No AddOnTemplate is needed: the controller renders the ManifestWorks itself'),
};

/** What clusters need: the address and the authority. When these are done, work on the clusters can begin. */
export const foundationSteps: readonly (readonly Step[])[] = [[rbacStep, serverStep, authorityStep]];

/** The rest, in order; the steps of one stage do not depend on each other and run together. */
export const remainingSteps: readonly (readonly Step[])[] = [
  [jwtStep, principalStep, resourceProxyStep, templateStep, tolerationStep],
  [placementStep],
  [importStep, worksStep, argoCdStep, addOnStep, cleanUpStep, healthStep],
];

/** The outcome of one step. */
export interface Outcome {
  readonly condition: string;
  readonly result: StepResult;
  /** What the step threw: reconciled again after a while. */
  readonly error?: unknown;
}

/** Runs stages of steps. A step that fails does not keep the others from saying how things stand. */
export async function runSteps(stages: readonly (readonly Step[])[], context: StepContext): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const stage of stages) {
    outcomes.push(
      ...(await Promise.all(
        stage.map(async ({ condition, purpose, run }): Promise<Outcome> => {
          try {
            return { condition, result: await run(context) };
          } catch (error) {
            context.signal.throwIfAborted();
            // Somebody else wrote at the same time: tried again at once, and nothing to tell.
            if (isConflict(error)) {
              return { condition, result: undefined, error };
            }
            return { condition, result: failed(`Failed to ${purpose}: ${(error as Error).message}`), error };
          }
        }),
      )),
    );
  }
  return outcomes;
}
