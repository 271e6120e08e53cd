import type { Cluster } from '../testbed/index.ts';
import { helm, hubArgoCdChart } from './helm.ts';

export { argoCdCrds, installCrds, ocmCrds, originalCrds, readCrds } from './crds.ts';
export {
  addonChart,
  agentChart,
  HelmError,
  type HelmOptions,
  helm,
  hubArgoCdChart,
  principalChart,
  pullChart,
  withoutHub,
} from './helm.ts';
export { kustomize, manifestsFolder } from './kustomize.ts';
export { type PodOf, restrictedRefusals } from './pod-security.ts';
export { applyPublishedArgoCd } from './published-argocd.ts';
export { argoCdSource, type CrdPublisher, publishedCrds } from './published-crds.ts';
export { idRefusals, podsIn, rootPods } from './scc.ts';

/**
 * Installs Argo CD on a hub the way an operator has it before the add-on comes: API server, repo server,
 * application-set controller, Redis and the CRDs, as a Helm release of their own in `argocd`. Resolves when every
 * Deployment is available. The API server looks for its cache where the add-on's principal will be.
 * @throws HelmError
 */
export async function installHubArgoCd(hub: Pick<Cluster, 'kubeconfig'>, signal?: AbortSignal): Promise<void> {
  await helm(
    [
      ...['install', 'argocd', hubArgoCdChart, '--namespace', 'argocd', '--create-namespace'],
      ...['--set', 'serverRedisAddress=argocd-agent-redis-proxy:6379', '--wait', '--timeout', '8m'],
    ],
    { kubeconfig: hub.kubeconfig, ...(signal && { signal }) },
  );
}
