import { findCondition, leases, secrets, setCondition } from '../lib/kube/index.ts';
import type { Applier } from './applier.ts';
import type { Caches } from './caches.ts';
import type { ClusterContext } from './cluster-context.ts';
import { isDetaching, isForced } from './cluster-health.ts';
import { addOnName, fieldManager, keys, labelValue } from './names.ts';
import { workParts } from './render/works.ts';
import { managedClusterAddOns, manifestWorks } from './resources.ts';

/** What leaving works with. */
export interface LeaveContext extends Pick<ClusterContext, 'cluster' | 'client' | 'logger' | 'now' | 'signal'> {
  readonly caches: Caches;
  readonly applier: Applier;
}

/** The GitOpsCluster that a cluster belongs to, by what was made for it; undefined when there is nothing of ours. */
export function currentOwnerOf(cluster: string, caches: Caches): string | undefined {
  const marked = [
    ...caches.addOns.list(cluster),
    ...caches.works.list(cluster),
    ...caches.ownSecrets.byIndex('cluster', labelValue(cluster)),
  ];
  return marked.map(({ metadata }) => metadata.annotations?.[keys.owner]).find(Boolean);
}

/**
 * Takes the next step in leaving a cluster: the agent goes first, then Argo CD, so that nobody sees half of it; the CRDs'
 * work goes last (the CRDs stay); then the add-on, Secrets and certificates. Each step waits until the cluster has
 * carried out the one before, unless the cluster is gone or someone forces it.
 * @returns what is being waited for; undefined when nothing is left
 */
export async function leaveCluster(context: LeaveContext): Promise<string | undefined> {
  const { cluster, caches, applier, signal } = context;
  const [addOn] = caches.addOns.list(cluster);
  const owner = currentOwnerOf(cluster, caches);
  const [namespace = '', name = ''] = owner?.split('/') ?? [];
  const gitOpsCluster = caches.gitOpsClusters.get({ namespace, name });
  const managedCluster = caches.managedClusters.get({ name: cluster });
  const mustWait = managedCluster !== undefined && !isForced(addOn, gitOpsCluster);
  if (addOn && !addOn.metadata.deletionTimestamp) await markDetaching(context);
  for (const part of [...workParts].reverse()) {
    const works = caches.works.list(cluster).filter(({ metadata }) => metadata.labels?.[keys.part] === part);
    for (const work of works) await applier.remove(manifestWorks, work, signal);
    if (mustWait && works.length > 0) {
      const available = findCondition(managedCluster?.status?.conditions, 'ManagedClusterConditionAvailable');
      const note = available && available.status !== 'True' ? ' (the cluster does not report)' : '';
      return `cluster ${cluster} must remove ManifestWork ${works[0]?.metadata.name}${note}`;
    }
  }
  if (addOn) await applier.remove(managedClusterAddOns, addOn, signal);
  const own = caches.ownSecrets.byIndex('cluster', labelValue(cluster));
  for (const secret of own) await applier.remove(secrets, secret, signal);
  if (owner) {
    for (const lease of caches.connections.byIndex('agent', `${namespace}/${cluster}`)) {
      await context.client.delete(leases, lease.metadata, { signal });
    }
  }
  if (caches.addOns.list(cluster).length + own.length > 0)
    return `the objects of cluster ${cluster} on the hub are being deleted`;
  return undefined;
}

async function markDetaching({ caches, cluster, client, now, signal, logger }: LeaveContext): Promise<void> {
  const [addOn] = caches.addOns.list(cluster);
  if (!addOn || isDetaching(addOn)) return;
  logger.info({ cluster }, 'leaving the cluster');
  const key = { namespace: cluster, name: addOnName };
  const marked = await client.mergePatch(
    managedClusterAddOns,
    key,
    { metadata: { annotations: { [keys.detaching]: 'true' } } },
    { fieldManager, signal },
  );
  const message = 'the add-on is being removed from the cluster';
  const conditions = setCondition(
    marked.status?.conditions,
    { type: 'Progressing', status: 'True', reason: 'Detaching', message },
    now,
  );
  const { resourceVersion } = marked.metadata;
  await client.mergePatch(
    managedClusterAddOns,
    key,
    { metadata: { resourceVersion }, status: { conditions } },
    { subresource: 'status', fieldManager, signal },
  );
}
