import { join } from 'node:path';
import { argoCdCrds, installCrds, ocmCrds, readCrds } from '../../e2e/hub/index.ts';
import {
  type OcmPlacementDecision,
  ocmManagedClusters,
  ocmPlacementDecisions,
  ocmPlacements,
} from '../../e2e/ocm/index.ts';
import { type Cluster, startCluster } from '../../e2e/testbed/index.ts';
import {
  clusterRoleBindings,
  type KubeClient,
  namespaces,
  resourceType,
  serviceAccounts,
} from '../../lib/kube/index.ts';
import { inParallel } from '../in-parallel.ts';

/** Namespace of the GitOpsCluster. */
export const fleetNamespace = 'argocd';
/** Name of the Placement. */
const placement = 'fleet';
/** The service account of the controller. */
export const controllerAccount = { namespace: fleetNamespace, name: 'gitops-controller' } as const;
/** Number of concurrent requests that a small API server handles without queueing. */
const width = 32;
/** OCM's placement controller writes at most this many clusters into one decision. */
const pageSize = 100;

/** The resource that enrolls the fleet. */
export const benchGitOpsClusters = resourceType({
  group: 'apps.open-cluster-management.io',
  version: 'v1alpha1',
  kind: 'GitOpsCluster',
  plural: 'gitopsclusters',
  namespaced: true,
});

/** The add-on of each cluster. */
export const benchAddOns = resourceType({
  group: 'addon.open-cluster-management.io',
  version: 'v1alpha1',
  kind: 'ManagedClusterAddOn',
  plural: 'managedclusteraddons',
  namespaced: true,
});

/** Starts a hub's API server with the kinds of OCM and Argo CD. */
export async function startControllerHub(): Promise<Cluster> {
  const cluster = await startCluster({ name: 'hub' });
  try {
    const own = await readCrds(join(import.meta.dirname, '../../charts/argocd-agent-addon/crds'));
    await installCrds(cluster.client, [...own, ...(await ocmCrds('hub')), ...(await argoCdCrds())]);
    await cluster.client.create(namespaces, { metadata: { name: fleetNamespace } });
    await cluster.client.create(serviceAccounts, { metadata: { ...controllerAccount } });
    await cluster.client.create(clusterRoleBindings, {
      metadata: { name: controllerAccount.name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ kind: 'ServiceAccount', ...controllerAccount }],
    });
    // The controller manager would make accounts and certificates in hundreds of namespaces. Nothing here needs them.
    await cluster.controllerManager.kill();
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  return cluster;
}

/** The names of the fleet's clusters. */
export function clusterNames(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `cluster-${String(index).padStart(4, '0')}`);
}

/** Registers clusters: each has its namespace, and reports. */
export async function register(client: KubeClient, names: readonly string[]): Promise<void> {
  await inParallel(names, width, async (name) => {
    await client.create(namespaces, { metadata: { name } });
    await client.create(ocmManagedClusters, { metadata: { name }, spec: { hubAcceptsClient: true } });
    const status = { type: 'ManagedClusterConditionAvailable', status: 'True', reason: 'Bench', message: '' };
    const conditions = [{ ...status, lastTransitionTime: '2026-01-01T00:00:00Z' }];
    await client.mergePatch(ocmManagedClusters, { name }, { status: { conditions } }, { subresource: 'status' });
  });
}

/** Writes a Placement with these clusters, in as many decisions as OCM makes of them. */
export async function select(client: KubeClient, names: readonly string[]): Promise<void> {
  const pages = Array.from({ length: Math.ceil(names.length / pageSize) }, (_, page) =>
    names.slice(page * pageSize, (page + 1) * pageSize),
  );
  const fieldManager = 'bench';
  const desired = { metadata: { namespace: fleetNamespace, name: placement }, spec: {} };
  await client.apply(ocmPlacements, desired, { fieldManager });
  for (const [page, clusters] of pages.entries()) {
    const key = { namespace: fleetNamespace, name: `${placement}-decision-${page + 1}` };
    const labels = { 'cluster.open-cluster-management.io/placement': placement };
    await client.apply(ocmPlacementDecisions, { metadata: { ...key, labels } }, { fieldManager });
    const status: OcmPlacementDecision['status'] = {
      decisions: clusters.map((clusterName) => ({ clusterName, reason: '' })),
    };
    await client.mergePatch(ocmPlacementDecisions, key, { status }, { subresource: 'status' });
  }
  const status = { numberOfSelectedClusters: names.length };
  await client.mergePatch(
    ocmPlacements,
    { namespace: fleetNamespace, name: placement },
    { status },
    { subresource: 'status' },
  );
}

/** How many clusters the GitOpsCluster says are enrolled. */
export async function enrolledClusters(client: KubeClient): Promise<number> {
  const found = await client.get(benchGitOpsClusters, { namespace: fleetNamespace, name: 'fleet' });
  return (found as { status?: { clusters?: { enrolled?: number } } } | undefined)?.status?.clusters?.enrolled ?? 0;
}

/** Creates the GitOpsCluster that enrolls the fleet, as a user would. */
export async function enroll(client: KubeClient): Promise<void> {
  await client.create(benchGitOpsClusters, {
    metadata: { namespace: fleetNamespace, name: 'fleet' },
    spec: {
      placementRef: { kind: 'Placement', name: placement },
      argoCDAgentAddon: { principalServerAddress: 'principal.example.com', principalServerPort: '443' },
    },
  } as { metadata: { namespace: string; name: string } });
}
