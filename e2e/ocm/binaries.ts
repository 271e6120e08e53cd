import { access, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort, type SharedCluster, spawnSupervised } from '../testbed/index.ts';

/** The folder with OCM's own executables (`placement`, `work`), from `OCM_BIN`; undefined: the stand-ins are used. */
export function ocmBinaries(environment: NodeJS.ProcessEnv = process.env): string | undefined {
  return environment.OCM_BIN || undefined;
}

/** OCM's placement controller as a process, until the signal aborts. */
export async function runPlacementBinary(folder: string, hub: SharedCluster, signal: AbortSignal): Promise<void> {
  await runBinary(folder, 'placement', hub, signal, ['controller', '--kubeconfig', hub.kubeconfig]);
}

/** OCM's work agent of one cluster as a process, until the signal aborts. Both kubeconfigs are the agent's own. */
export async function runWorkAgentBinary(
  folder: string,
  cluster: SharedCluster,
  kubeconfigs: { hub: string; spoke: string },
  statusSyncIntervalMs: number,
  signal: AbortSignal,
): Promise<void> {
  await runBinary(folder, 'work', cluster, signal, [
    'agent',
    ...['--kubeconfig', kubeconfigs.spoke],
    ...['--spoke-kubeconfig', kubeconfigs.spoke],
    ...['--spoke-cluster-name', cluster.name],
    ...['--workload-source-driver', 'kube'],
    ...['--workload-source-config', kubeconfigs.hub],
    ...['--status-sync-interval', `${statusSyncIntervalMs}ms`],
  ]);
}

async function runBinary(
  folder: string,
  name: string,
  cluster: SharedCluster,
  signal: AbortSignal,
  args: string[],
): Promise<void> {
  const path = join(folder, name);
  await access(path).catch(() => {
    throw new Error(`OCM_BIN=${folder} has no executable "${name}"; unset OCM_BIN to use the stand-ins`);
  });
  const dir = join(cluster.dir, `ocm-${name}`);
  await mkdir(dir, { recursive: true });
  const config = join(dir, 'config.yaml');
  // Without it OCM's commands ask the API server to authenticate whoever reads their health, which needs more rights.
  await writeFile(
    config,
    `apiVersion: operator.openshift.io/v1alpha1
kind: GenericOperatorConfig
authentication: { disabled: true }
authorization: { disabled: true }
`,
  );
  const common = ['--namespace', 'default', '--disable-leader-election', '--config', config];
  const listen = ['--listen', `127.0.0.1:${await freePort()}`];
  const running = await spawnSupervised(path, [...args, ...common, ...listen], { logFile: join(dir, 'log') });
  const stop = () => void running.stop();
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) {
    stop();
  }
  const { code } = await running.exited;
  if (!signal.aborted) {
    throw new Error(`OCM's ${name} ended with code ${code}; its log is ${join(dir, 'log')}`);
  }
}
