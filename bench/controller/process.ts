import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../e2e/pair/index.ts';
import { type Cluster, spawnSupervised } from '../../e2e/testbed/index.ts';
import { type Usage, usageOf } from '../scale/process-meter.ts';
import { controllerAccount } from './hub.ts';

const entry = new URL('../../bin/gitops-controller.ts', import.meta.url).pathname;

/** The controller under test, a process of its own. */
export interface ControllerProcess {
  /** Seconds from its start until its caches were complete. */
  readonly startSeconds: number;
  usage(): Promise<Usage>;
  /** How often a cluster was reconciled so far. */
  reconciles(): Promise<number>;
  stop(): Promise<void>;
}

/** The limits that the chart sets. Node.js sizes its heap by the available memory. */
const limits = '--max-old-space-size=768 --max-semi-space-size=32';

/**
 * Starts the controller as an installation does, and resolves when its caches are complete. `CONTROLLER_NODE_OPTIONS`
 * replaces the options of its Node.js, for profiles and other limits.
 * @throws Error with the end of its log when it ends early
 */
export async function startControllerProcess(hub: Cluster, args: readonly string[] = []): Promise<ControllerProcess> {
  const [health, metrics] = await Promise.all([freePort(), freePort()]);
  const logFile = join(hub.dir, `controller-${health}.log`);
  const began = performance.now();
  const child = await spawnSupervised(
    process.execPath,
    [
      entry,
      // With a token, like a pod: an administrator's client certificate would be verified again for each request.
      `--kubeconfig=${await hub.kubeconfigFor({ serviceAccount: controllerAccount })}`,
      '--agent-image=quay.io/open-cluster-management/argocd-fleet:bench',
      `--health-probe-bind-address=127.0.0.1:${health}`,
      `--metrics-bind-address=127.0.0.1:${metrics}`,
      ...args,
    ],
    {
      logFile,
      env: {
        PATH: process.env.PATH,
        HOME: '/nonexistent',
        NODE_OPTIONS: process.env.CONTROLLER_NODE_OPTIONS ?? limits,
      },
    },
  );
  const end = async () => (await readFile(logFile, 'utf8')).slice(-4_000);
  for (;;) {
    if (!child.running) {
      throw new Error(`the controller ended:\n${await end()}`);
    }
    if ((await readFile(logFile, 'utf8')).includes('caches are complete')) {
      break;
    }
    await sleep(20);
  }
  return {
    startSeconds: (performance.now() - began) / 1000,
    usage: () => usageOf(child.pid),
    async reconciles() {
      const text = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
      return Number(/gitops_controller_reconciles_done\{queue="clusters"\} (\d+)/.exec(text)?.[1]);
    },
    async stop() {
      await child.stop(20_000);
    },
  };
}
