import type { Logger } from '../../lib/base/index.ts';
import { isForbidden, type KubeClient, namespaces } from '../../lib/kube/index.ts';
import type { ManagedCluster } from './ocm-kinds.ts';

/**
 * The identity of the hub: the UID of its namespace kube-system, which managed clusters report as claim `id.k8s.io`.
 * Undefined without the right to read it. Then only name and label show that a managed cluster is the hub.
 */
export async function identifyHub(
  client: Pick<KubeClient, 'get'>,
  logger: Logger,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    return (await client.get(namespaces, { name: 'kube-system' }, signal))?.metadata.uid;
  } catch (error) {
    if (!isForbidden(error)) {
      throw error;
    }
    logger.warn({ error }, 'the identity of the hub cannot be read');
    return undefined;
  }
}

/**
 * Why a managed cluster gets no Argo CD from this controller: it is the hub. Undefined for every other cluster.
 * @param hubId the UID of the hub's namespace kube-system
 */
export function reasonItIsHub(cluster: ManagedCluster, hubId: string | undefined): string | undefined {
  const { name, labels } = cluster.metadata;
  if (name === 'local-cluster' || labels?.['local-cluster'] === 'true') {
    return 'it is the hub itself';
  }
  const id = cluster.status?.clusterClaims?.find((claim) => claim.name === 'id.k8s.io')?.value;
  if (id !== undefined && id === hubId) {
    return 'it is the hub itself (its claim id.k8s.io is that of the hub)';
  }
  return undefined;
}
