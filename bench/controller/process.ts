import { join } from 'node:path';
import { freePort } from '../../e2e/pair/index.ts';
import type { Cluster } from '../../e2e/testbed/index.ts';
import { inHalfAGibibyte, type MeasuredProgram, programIn, startMeasured } from '../program.ts';
import { controllerAccount } from './hub.ts';

/** The controller under test, a process of its own. */
export interface ControllerProcess extends MeasuredProgram {
  /** How often a cluster was reconciled so far. */
  reconciles(): Promise<number>;
}

/**
 * Starts the controller as an installation does, and resolves when its caches are complete. `CONTROLLER_NODE_OPTIONS`
 * replaces the options of its Node.js, for profiles and other limits.
 * @param from see {@link programIn}
 * @throws Error with the end of its log when it ends early
 */
export async function startControllerProcess(hub: Cluster, from?: string): Promise<ControllerProcess> {
  const [health, metrics] = await Promise.all([freePort(), freePort()]);
  const program = await startMeasured({
    command: [
      ...programIn('gitops-controller', from),
      // With a token, like a pod: an administrator's client certificate would be verified again for each request.
      `--kubeconfig=${await hub.kubeconfigFor({ serviceAccount: controllerAccount })}`,
      '--agent-image=quay.io/open-cluster-management/argocd-fleet:bench',
      `--health-probe-bind-address=127.0.0.1:${health}`,
      `--metrics-bind-address=127.0.0.1:${metrics}`,
    ],
    logFile: join(hub.dir, `controller-${health}.log`),
    nodeOptions: process.env.CONTROLLER_NODE_OPTIONS ?? inHalfAGibibyte,
    isReady: async (log) => log.includes('caches are complete'),
  });
  return {
    ...program,
    async reconciles() {
      const text = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
      return Number(/gitops_controller_reconciles_done\{queue="clusters"\} (\d+)/.exec(text)?.[1]);
    },
  };
}
