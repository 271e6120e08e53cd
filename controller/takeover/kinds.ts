import { type KubeObject, resourceType } from '../../lib/kube/index.ts';
import type { GitOpsCluster } from '../hub/index.ts';

/** addon.open-cluster-management.io/v1alpha1 AddOnTemplate. */
export const addOnTemplates = resourceType<KubeObject>({
  group: 'addon.open-cluster-management.io',
  version: 'v1alpha1',
  kind: 'AddOnTemplate',
  plural: 'addontemplates',
  namespaced: false,
});
/** cluster.open-cluster-management.io/v1beta2 ManagedClusterSetBinding. */
export const clusterSetBindings = resourceType<KubeObject>({
  group: 'cluster.open-cluster-management.io',
  version: 'v1beta2',
  kind: 'ManagedClusterSetBinding',
  plural: 'managedclustersetbindings',
  namespaced: true,
});
/** networking.k8s.io/v1 NetworkPolicy. */
export const networkPolicies = resourceType<KubeObject>({
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'NetworkPolicy',
  plural: 'networkpolicies',
  namespaced: true,
});
/** policy/v1 PodDisruptionBudget. */
export const disruptionBudgets = resourceType<KubeObject>({
  group: 'policy',
  version: 'v1',
  kind: 'PodDisruptionBudget',
  plural: 'poddisruptionbudgets',
  namespaced: true,
});

/** What the commands read of `spec.argoCDAgentAddon`. */
export function addOnSpecOf({ spec }: GitOpsCluster): { argoCD?: string; argoCDCRManifestWork?: unknown } | undefined {
  return (spec as { argoCDAgentAddon?: object } | undefined)?.argoCDAgentAddon;
}

/** OCM's annotation on a ClusterManagementAddOn: `self` keeps its add-on manager away. */
export const lifecycle = 'addon.open-cluster-management.io/lifecycle';

/**
 * Whether OCM's add-on manager leaves an add-on alone. It empties the annotation when it has read `self` of an add-on that it had,
 * and keeps away as long as there is one.
 */
export function isSelfManaged({ metadata }: KubeObject): boolean {
  const value = metadata.annotations?.[lifecycle];
  return value !== undefined && value !== 'addon-manager';
}

/** OCM's add-on manager's finalizer on an add-on with a clean-up Job. */
export const preDelete = 'addon.open-cluster-management.io/addon-pre-delete';
/** On the ClusterManagementAddOn: argocd-pull-integration's Helm release, as `namespace/name`. */
export const adoptedFrom = 'apps.open-cluster-management.io/adopted-from';
