import { type Condition, type KubeObject, resourceType } from '../lib/kube/index.ts';

/** An object whose status has conditions, and perhaps counts. */
export interface Conditioned extends KubeObject {
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: { readonly conditions?: Condition[]; readonly clusters?: unknown };
}

/** A NetworkPolicy, as far as it says who may connect to Redis. */
export interface NetworkPolicy extends KubeObject {
  readonly spec?: {
    readonly podSelector?: { readonly matchLabels?: Record<string, string> };
    readonly ingress?: {
      readonly from?: { readonly podSelector?: { readonly matchLabels?: Record<string, string> } }[];
    }[];
  };
}

/** networking.k8s.io/v1 NetworkPolicy. */
export const redisPolicies = resourceType<NetworkPolicy>({
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'NetworkPolicy',
  plural: 'networkpolicies',
  namespaced: true,
});

/** argoproj.io/v1beta1 ArgoCD, of argocd-operator. */
export const argoCdInstances = resourceType<Conditioned>({
  group: 'argoproj.io',
  version: 'v1beta1',
  kind: 'ArgoCD',
  plural: 'argocds',
  namespaced: true,
});

/** route.openshift.io/v1 Route. */
export const openShiftRoutes = resourceType<Conditioned>({
  group: 'route.openshift.io',
  version: 'v1',
  kind: 'Route',
  plural: 'routes',
  namespaced: true,
});

/** GitOpsCluster of this project's controller, for its conditions. */
export const fleetKind = resourceType<Conditioned>({
  group: 'apps.open-cluster-management.io',
  version: 'v1alpha1',
  kind: 'GitOpsCluster',
  plural: 'gitopsclusters',
  namespaced: true,
});

/** OCM's ManagedClusterAddOn, for its conditions. */
export const addOnKind = resourceType<Conditioned>({
  group: 'addon.open-cluster-management.io',
  version: 'v1alpha1',
  kind: 'ManagedClusterAddOn',
  plural: 'managedclusteraddons',
  namespaced: true,
});
