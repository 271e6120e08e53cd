import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { programCommand } from '../../e2e/programs/index.ts';
import { freePort, type SupervisedProcess, spawnSupervised } from '../../e2e/testbed/index.ts';

/** The image that {@link startControllerProgram}'s controllers deliver. */
export const deliveredImage = 'quay.io/open-cluster-management/argocd-fleet:test';
/** Its namespace, and that of its Lease. */
export const programNamespace = 'release';

/** A run of `gitops-controller` as a process of its own. */
export interface ControllerProgram extends SupervisedProcess {
  readonly log: () => Promise<string>;
  /** The port of its health, if it is a controller. */
  readonly health: number;
  /** The port of its metrics, if it is a controller. */
  readonly metrics: number;
}

/** Starts `gitops-controller` on a hub. Its log is in the folder of the hub. */
export async function startControllerProgram(
  hub: { readonly dir: string; readonly kubeconfig: string },
  name: string,
  args: readonly string[],
  options: {
    readonly env?: Readonly<Record<string, string>>;
    /** The port of its metrics. Default: a free one. */
    readonly metrics?: number;
  } = {},
): Promise<ControllerProgram> {
  const logFile = join(hub.dir, `${name}.log`);
  const [health, metrics] = [await freePort(), options.metrics ?? (await freePort())];
  const isController = args[0]?.startsWith('-') ?? true;
  const addresses = isController
    ? [`--health-probe-bind-address=127.0.0.1:${health}`, `--metrics-bind-address=127.0.0.1:${metrics}`]
    : [];
  const [node, file] = programCommand('gitops-controller');
  const started = await spawnSupervised(node, [file, ...args, ...addresses, `--kubeconfig=${hub.kubeconfig}`], {
    logFile,
    env: {
      ...process.env,
      POD_NAME: name,
      POD_NAMESPACE: programNamespace,
      CONTROLLER_IMAGE: deliveredImage,
      ...options.env,
    },
  });
  return Object.assign(started, { health, metrics, log: () => readFile(logFile, 'utf8') });
}
