import {
  clusterRoleBindings,
  clusterRoles,
  deployments,
  type KubeClient,
  type KubeObject,
  namespaces,
  type ResourceType,
  resourceType,
  secrets,
  statefulSets,
} from '../../lib/kube/index.ts';
import { fleetApplications, fleetGitOpsClusters } from '../fleet/index.ts';
import { appliedManifestWorks, ocmManifestWorks } from '../ocm/index.ts';
import type { Cluster } from '../testbed/index.ts';
import { waitForObject, waitForObjects } from '../testbed/index.ts';
import type { WaitsFor } from './progress.ts';

const managedClusterAddOns = resourceType({
  group: 'addon.open-cluster-management.io',
  version: 'v1alpha1',
  kind: 'ManagedClusterAddOn',
  plural: 'managedclusteraddons',
  namespaced: true,
});

/** Resolves when nothing of ours is on the cluster, and nothing of the cluster on the hub. */
export async function leftClean(
  hub: KubeClient,
  { name, client }: Pick<Cluster, 'name' | 'client'>,
  app: { namespace: string; name: string },
  waitsFor: WaitsFor,
  signal: AbortSignal,
): Promise<void> {
  const wait = { signal, timeoutMs: 120_000 };
  const none = (objects: KubeObject[]) => objects.length === 0;
  waitsFor('its Application to go from the hub');
  await waitForObject(hub, fleetApplications, app, (a) => a === undefined, wait);
  waitsFor(`namespace argocd of ${name} to go`);
  await waitForObject(client, namespaces, { name: 'argocd' }, (n) => n === undefined, wait);
  waitsFor(`what the add-on brought to ${name} to go`);
  await waitForObjects(client, appliedManifestWorks, wait, none);
  await waitForObjects(client, namespaces, wait, (all) => !all.some(isOurs));
  for (const type of [deployments, statefulSets, clusterRoles, clusterRoleBindings] as ResourceType[]) {
    await waitForObjects(client, type, wait, (all) => !all.some(isOurs));
  }
  waitsFor(`the hub's records of ${name} to go`);
  await waitForObjects(hub, ocmManifestWorks, { ...wait, namespace: name }, none);
  await waitForObjects(hub, managedClusterAddOns, { ...wait, namespace: name }, none);
  await waitForObject(hub, secrets, { namespace: 'argocd', name: `cluster-${name}` }, (s) => s === undefined, wait);
  await waitForObjects(hub, fleetGitOpsClusters, wait, ([g]) => g?.status?.clusters?.selected === 2);
}

const isOurs = ({ metadata }: KubeObject) => metadata.labels?.['app.kubernetes.io/managed-by'] === 'argocd-agent-addon';
