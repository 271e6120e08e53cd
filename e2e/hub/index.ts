import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Cluster } from '../testbed/index.ts';
import { toolPath } from '../tools/index.ts';

export { argoCdCrds, installCrds, ocmCrds } from './crds.ts';

const run = promisify(execFile);
const chart = new URL('../../charts/argocd-agent-addon/charts/argocd-hub', import.meta.url).pathname;

/**
 * Installs Argo CD on a hub the way an operator has it before the add-on comes: API server, repo server,
 * application-set controller, Redis and the CRDs, as a Helm release of their own in `argocd`. Resolves when every
 * Deployment is available.
 * @throws Error with what Helm printed
 */
export async function installHubArgoCd(hub: Cluster, signal?: AbortSignal): Promise<void> {
  await run(
    await toolPath('helm'),
    ['install', 'argocd', chart, '--namespace', 'argocd', '--create-namespace', '--wait', '--timeout', '3m'],
    { env: { ...process.env, KUBECONFIG: hub.kubeconfig }, ...(signal && { signal }) },
  );
}
