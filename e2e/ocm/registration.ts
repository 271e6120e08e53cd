import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import {
  Informer,
  isNotFound,
  type KubeClient,
  type KubeObject,
  leases,
  parseKey,
  type Requeue,
  type ResourceType,
  WorkQueue,
} from '../../lib/kube/index.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { applyObjects, hubObjects } from './rbac.ts';
import {
  managedClusterSets,
  type OcmCondition,
  type OcmManagedCluster,
  ocmManagedClusterAddOns,
  ocmManagedClusters,
  ocmManifestWorks,
  withCondition,
} from './types.ts';

const cleanupFinalizers = [
  'cluster.open-cluster-management.io/resource-cleanup',
  'cluster.open-cluster-management.io/api-resource-cleanup',
];
const unreachable = 'cluster.open-cluster-management.io/unreachable';
const clusterSetLabel = 'cluster.open-cluster-management.io/clusterset';
const leaseName = 'managed-cluster-lease';

/** The user as which a managed cluster's agents speak to the hub. */
export function agentIdentity(cluster: string): { user: string; groups: string[] } {
  return {
    user: `system:open-cluster-management:${cluster}:agent`,
    groups: [`system:open-cluster-management:${cluster}`, 'system:open-cluster-management:managed-clusters'],
  };
}

/**
 * Stands in for OCM's registration controller on the hub until the signal aborts: the sets `default` and `global`, the
 * namespace and rights of an accepted cluster, the `unreachable` taint of one whose lease is stale, and the clean-up
 * of one that is deleted.
 */
export async function runRegistrationController(hub: KubeClient, signal: AbortSignal): Promise<void> {
  const logger = createLogger({ name: 'ocm-registration', level: 'warn' });
  await applyObjects(hub, [
    clusterSet('default', { selectorType: 'ExclusiveClusterSetLabel' }),
    clusterSet('global', { selectorType: 'LabelSelector', labelSelector: {} }),
  ]);
  const clusters = new Informer({ client: hub, type: ocmManagedClusters, logger });

  async function reconcile(name: string): Promise<Requeue | undefined> {
    const cluster = clusters.get({ name });
    if (!cluster) {
      return;
    }
    if (cluster.metadata.deletionTimestamp) {
      return await cleanUp(cluster);
    }
    if (!cluster.spec?.hubAcceptsClient) {
      return;
    }
    await mark(cluster);
    if (!condition(cluster, 'HubAcceptedManagedCluster')) {
      await applyObjects(hub, hubObjects(name, agentIdentity(name).user));
      await patchStatus(cluster, 'HubAcceptedManagedCluster', 'True', 'HubClusterAdminAccepted');
    }
    return await checkLease(cluster);
  }

  async function mark(cluster: OcmManagedCluster): Promise<void> {
    const { labels = {}, finalizers = [], resourceVersion } = cluster.metadata;
    const missing = cleanupFinalizers.filter((f) => !finalizers.includes(f));
    if (missing.length === 0 && labels[clusterSetLabel]) {
      return;
    }
    await hub.mergePatch(ocmManagedClusters, cluster.metadata, {
      metadata: {
        finalizers: [...finalizers, ...missing],
        labels: { [clusterSetLabel]: labels[clusterSetLabel] ?? 'default' },
        resourceVersion,
      },
    });
  }

  async function checkLease(cluster: OcmManagedCluster): Promise<Requeue | undefined> {
    const { name } = cluster.metadata;
    const graceMs = 5_000 * (cluster.spec?.leaseDurationSeconds ?? 60);
    const lease = await hub.get(leases, { namespace: name, name: leaseName });
    const renewed = Date.parse(lease?.spec?.renewTime ?? '');
    const taints = cluster.spec?.taints ?? [];
    const isTainted = taints.some((taint) => taint.key === unreachable);
    // Nobody watches the leases: the agent may be about to make its first one.
    if (Number.isNaN(renewed)) {
      return { requeueAfterMs: 1_000 };
    }
    const remaining = renewed + graceMs - Date.now();
    if (remaining <= 0 && !isTainted) {
      await patchStatus(cluster, 'ManagedClusterConditionAvailable', 'Unknown', 'ManagedClusterLeaseUpdateStopped');
      const timeAdded = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
      await patchTaints(cluster, [...taints, { key: unreachable, effect: 'NoSelect', timeAdded }]);
    }
    if (remaining > 0 && isTainted) {
      await patchStatus(cluster, 'ManagedClusterConditionAvailable', 'True', 'ManagedClusterAvailable');
      await patchTaints(
        cluster,
        taints.filter((taint) => taint.key !== unreachable),
      );
    }
    return { requeueAfterMs: Math.max(remaining, 500) };
  }

  const patchTaints = (cluster: OcmManagedCluster, taints: unknown[]) =>
    hub.mergePatch(ocmManagedClusters, cluster.metadata, {
      metadata: { resourceVersion: undefined },
      spec: { taints },
    });

  async function patchStatus(
    cluster: OcmManagedCluster,
    type: string,
    status: OcmCondition['status'],
    reason: string,
    message = reason,
  ) {
    const live = (await hub.get(ocmManagedClusters, cluster.metadata)) ?? cluster;
    const conditions = withCondition(live.status?.conditions, { type, status, reason, message });
    if (isDeepStrictEqual(conditions, live.status?.conditions)) {
      return;
    }
    await hub.mergePatch(ocmManagedClusters, cluster.metadata, { status: { conditions } }, { subresource: 'status' });
  }

  /**
   * OCM's resource clean-up: the add-ons go first, the works when there are no add-ons any more, those with a lower
   * priority first, and the cluster when there is neither. OCM looks again every 5 s.
   */
  async function cleanUp(cluster: OcmManagedCluster): Promise<Requeue | undefined> {
    const { name } = cluster.metadata;
    for (const type of [ocmManagedClusterAddOns, ocmManifestWorks] as ResourceType[]) {
      const objects = await hub.list(type, { namespace: name });
      if (objects.length === 0) {
        continue;
      }
      const first = Math.min(...objects.map(priorityOf));
      for (const object of objects.filter((one) => priorityOf(one) === first)) {
        if (!object.metadata.deletionTimestamp) {
          await hub.delete(type, object.metadata);
        }
      }
      const held = objects.filter(({ metadata }) => metadata.finalizers?.length).length;
      const count = `the remaining count is ${objects.length}, the finalizer pending count is ${held}`;
      const message = `The resource ${type.plural} is remaning, ${count}`;
      await patchStatus(cluster, 'Deleting', 'False', 'ResourceRemaining', message);
      return { requeueAfterMs: 200 };
    }
    await patchStatus(cluster, 'Deleting', 'True', 'NoResource', 'No cleaned resource in cluster ns.');
    const finalizers = (cluster.metadata.finalizers ?? []).filter((f) => !cleanupFinalizers.includes(f));
    await hub.mergePatch(ocmManagedClusters, { name }, { metadata: { finalizers } });
  }

  const queue = new WorkQueue({
    name: 'ocm-registration',
    logger,
    handler: (key) =>
      reconcile(parseKey(key).name).catch((error: unknown) => {
        if (!isNotFound(error)) {
          throw error;
        }
        return undefined;
      }),
  });
  const enqueue = (cluster: OcmManagedCluster) => queue.add(cluster.metadata.name);
  clusters.subscribe({ added: enqueue, updated: (_, now) => enqueue(now) });
  await Promise.all([clusters.run(signal), queue.run(signal)]);
}

/** Stands in for OCM's registration agent of one cluster until the signal aborts: joins the hub and renews its lease. */
export async function runRegistrationAgent(options: {
  hub: KubeClient;
  spoke: KubeClient;
  cluster: string;
  signal: AbortSignal;
}): Promise<void> {
  const { hub, spoke, cluster: name, signal } = options;
  const { body } = await spoke.request('/version', { signal });
  const version = JSON.parse(await body.text()) as { gitVersion: string };
  const live = await hub.get(ocmManagedClusters, { name }, signal);
  if (!live) {
    throw new Error(`ManagedCluster ${name} was not created`);
  }
  let conditions = live.status?.conditions;
  const joined = { status: 'True', message: 'Managed cluster joined' } as const;
  conditions = withCondition(conditions, { type: 'ManagedClusterJoined', reason: 'ManagedClusterJoined', ...joined });
  conditions = withCondition(conditions, {
    type: 'ManagedClusterConditionAvailable',
    status: 'True',
    reason: 'ManagedClusterAvailable',
    message: 'Managed cluster is available',
  });
  const status = {
    conditions,
    version: { kubernetes: version.gitVersion },
    clusterClaims: [{ name: 'id.k8s.io', value: name }],
  };
  await hub.mergePatch(ocmManagedClusters, { name }, { status }, { subresource: 'status' });
  const duration = (live.spec?.leaseDurationSeconds ?? 60) * 1_000;
  while (!signal.aborted) {
    const renewTime = new Date().toISOString().replace('Z', '000Z');
    const lease = { metadata: { namespace: name, name: leaseName }, spec: { renewTime } };
    await hub
      .apply(leases, lease, { fieldManager: 'registration-agent', force: true })
      .catch((error: unknown) => createLogger({ name: 'ocm-registration', level: 'warn' }).warn({ error }, 'lease'));
    await sleep(duration, undefined, { signal }).catch(() => undefined);
  }
}

/** When an object goes, of those in a cluster's namespace: 0 unless it says another number up to 100. */
function priorityOf({ metadata }: KubeObject): number {
  const said = Number(metadata.annotations?.['open-cluster-management.io/cleanup-priority'] ?? 0);
  return Number.isInteger(said) && said >= 0 && said <= 100 ? said : 0;
}

function condition(cluster: OcmManagedCluster, type: string): boolean {
  return cluster.status?.conditions?.some((c) => c.type === type && c.status === 'True') ?? false;
}

function clusterSet(name: string, clusterSelector: object) {
  return {
    apiVersion: `${managedClusterSets.group}/${managedClusterSets.version}`,
    kind: managedClusterSets.kind,
    metadata: { name },
    spec: { clusterSelector },
  };
}
