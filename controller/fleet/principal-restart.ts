import { createHash } from 'node:crypto';
import { deployments, isForbidden, secrets } from '../../lib/kube/index.ts';
import { isOriginalImage } from '../../lib/manifests/index.ts';
import { RestartRefusedError } from '../argocd/index.ts';
import { fieldManager, hubNames } from '../hub/index.ts';
import type { Fleet, FleetDeps } from './fleet-deps.ts';

/** On the principal's pod template: a checksum of what argocd-agent's own image reads only when it starts. */
const checksumKey = 'checksum/argocd-agent-principal-certificates';

/**
 * Replaces the pods of a principal that has argocd-agent's own image when its certificates or its token key have changed.
 * @throws RestartRefusedError without the right to do so; the message has the command
 */
export async function restartPrincipal(
  { applier, caches, client, events, mutex }: Pick<FleetDeps, 'applier' | 'caches' | 'client' | 'events' | 'mutex'>,
  { namespace, gitOpsCluster, signal }: Pick<Fleet, 'namespace' | 'gitOpsCluster' | 'signal'>,
): Promise<void> {
  const cached = caches.principalDeployment(namespace);
  if (cached === undefined || !isOriginalImage(cached.spec?.template?.spec?.containers[0]?.image ?? '')) {
    return;
  }
  await mutex.run(`principal ${namespace}`, async () => {
    const hash = createHash('sha256');
    for (const name of [hubNames.principalTls, hubNames.resourceProxyTls, hubNames.jwt]) {
      const shared = caches.sharedSecret(namespace, name);
      const secret = await applier.current(secrets, { namespace, name }, shared, signal);
      hash.update(JSON.stringify([name, secret?.data?.['tls.crt'], secret?.data?.['jwt.key']]));
    }
    const checksum = hash.digest('hex');
    const live = (await applier.current(deployments, cached.metadata, cached, signal)) ?? cached;
    if (live.spec?.template?.metadata?.annotations?.[checksumKey] === checksum) {
      return;
    }
    const patch = { spec: { template: { metadata: { annotations: { [checksumKey]: checksum } } } } };
    const what = `deployment/${live.metadata.name}`;
    try {
      applier.wrote(deployments, await client.mergePatch(deployments, live.metadata, patch, { fieldManager, signal }));
    } catch (error) {
      if (isForbidden(error)) {
        throw new RestartRefusedError([
          `kubectl -n ${namespace} patch ${what} --type merge -p '${JSON.stringify(patch)}'`,
        ]);
      }
      throw error;
    }
    events.normal(gitOpsCluster, 'PrincipalRestarted', `${what} of namespace ${namespace} reads renewed certificates`);
  });
}
