import { type Condition, type KubeObject, resourceType } from '../../lib/kube/index.ts';

/** A GitOpsCluster as the API server returns it. `parseGitOpsCluster` reads the specification. */
export interface GitOpsCluster extends KubeObject {
  spec?: unknown;
  status?: {
    conditions?: Condition[];
    observedGeneration?: number;
    /** Earlier versions wrote a number here, so the value may have any shape. */
    clusters?: FleetStatus | number | null;
  };
}

/** Counts and failures of the clusters of a GitOpsCluster. */
export interface FleetStatus {
  selected: number;
  enrolled: number;
  available: number;
  connected: number;
  failing: number;
  /** At most ten. */
  failingClusters?: { name: string; step: string; reason: string; message: string; since: string }[];
}

/** A toleration of a Placement. */
export interface Toleration {
  key?: string;
  operator?: string;
  value?: string;
  effect?: string;
  tolerationSeconds?: number;
}

/** A Placement of OCM, with the fields that are read here. */
export interface Placement extends KubeObject {
  spec?: { tolerations?: Toleration[] };
  status?: {
    numberOfSelectedClusters?: number;
    /** `decisions` are the names of the group's pages. */
    decisionGroups?: { clusterCount?: number; decisions?: string[] }[];
    conditions?: Condition[];
  };
}

/**
 * One page of a Placement's decisions. `status` is missing for a moment after its creation, and for good as long as it has no
 * cluster from the beginning.
 */
export interface PlacementDecision extends KubeObject {
  status?: { decisions?: { clusterName: string; reason: string }[] };
}

/** A registered cluster. */
export interface ManagedCluster extends KubeObject {
  status?: { conditions?: Condition[]; clusterClaims?: { name?: string; value?: string }[] };
}

/** Names a configuration object of an add-on. */
export interface ConfigReference {
  group?: string;
  resource: string;
  name: string;
  namespace?: string;
}

/** An add-on on a managed cluster (v1alpha1, the stored version). */
export interface ManagedClusterAddOn extends KubeObject {
  spec?: { installNamespace?: string; configs?: ConfigReference[] };
  status?: {
    conditions?: Condition[];
    namespace?: string;
    healthCheck?: { mode?: string };
    /** Client certificates that the cluster's registration agent requests. */
    registrations?: { signerName: string; subject?: { user?: string; groups?: string[] } }[];
    addOnMeta?: { displayName?: string; description?: string };
    configReferences?: {
      group?: string;
      resource: string;
      name: string;
      namespace?: string;
      desiredConfig?: { name: string; namespace?: string; specHash?: string };
      lastAppliedConfig?: { name: string; namespace?: string; specHash?: string };
    }[];
  };
}

/** The registration of an add-on (v1alpha1). */
export interface ClusterManagementAddOn extends KubeObject {
  spec?: {
    supportedConfigs?: { group?: string; resource: string; defaultConfig?: { name: string; namespace?: string } }[];
  };
}

/** Compute resources of a container. */
export interface ResourceRequirements {
  requests?: Record<string, string>;
  limits?: Record<string, string>;
}

/** Settings for the workloads of an add-on. */
export interface AddOnDeploymentConfig extends KubeObject {
  spec?: {
    agentInstallNamespace?: string;
    customizedVariables?: { name: string; value?: string }[];
    nodePlacement?: { nodeSelector?: Record<string, string>; tolerations?: Toleration[] };
    proxyConfig?: { httpProxy?: string; httpsProxy?: string; noProxy?: string; caBundle?: string };
    registries?: { source?: string; mirror: string }[];
    resourceRequirements?: { containerID: string; resources: ResourceRequirements }[];
  };
}

/** How the work agent applies one manifest of a work. */
export interface ManifestConfig {
  resourceIdentifier: { group?: string; resource: string; namespace?: string; name: string };
  feedbackScrapeType?: 'Poll' | 'Watch';
  feedbackRules?: { type: 'WellKnownStatus' | 'JSONPaths'; jsonPaths?: { name: string; path: string }[] }[];
  updateStrategy?: {
    type: 'Update' | 'CreateOnly' | 'ServerSideApply' | 'ReadOnly';
    serverSideApply?: { fieldManager?: string; force?: boolean };
  };
}

/** An object that stays when its work is deleted. */
export interface OrphaningRule {
  group?: string;
  resource: string;
  namespace?: string;
  name: string;
}

/** A ManifestWork: the objects to apply on one managed cluster. */
export interface ManifestWork extends KubeObject {
  spec: {
    workload: { manifests: KubeObject[] };
    manifestConfigs?: ManifestConfig[];
    deleteOption?: {
      propagationPolicy?: 'Foreground' | 'Orphan' | 'SelectivelyOrphan';
      selectivelyOrphans?: { orphaningRules?: OrphaningRule[] };
    };
  };
  status?: {
    conditions?: Condition[];
    resourceStatus?: {
      manifests?: {
        resourceMeta: { kind?: string; name?: string; namespace?: string; ordinal: number };
        conditions: Condition[];
        statusFeedback?: {
          values?: {
            name: string;
            fieldValue: { type: string; integer?: number; string?: string; boolean?: boolean };
          }[];
        };
      }[];
    };
  };
}

const addOn = { group: 'addon.open-cluster-management.io', version: 'v1alpha1' };
const cluster = { group: 'cluster.open-cluster-management.io', version: 'v1beta1', namespaced: true };

/** apps.open-cluster-management.io/v1alpha1 GitOpsCluster. */
export const gitOpsClusters = resourceType<GitOpsCluster>({
  group: 'apps.open-cluster-management.io',
  version: 'v1alpha1',
  kind: 'GitOpsCluster',
  plural: 'gitopsclusters',
  namespaced: true,
});
/** cluster.open-cluster-management.io/v1beta1 Placement. */
export const placements = resourceType<Placement>({ ...cluster, kind: 'Placement', plural: 'placements' });
/** cluster.open-cluster-management.io/v1beta1 PlacementDecision. */
export const placementDecisions = resourceType<PlacementDecision>({
  ...cluster,
  kind: 'PlacementDecision',
  plural: 'placementdecisions',
});
/** cluster.open-cluster-management.io/v1 ManagedCluster. */
export const managedClusters = resourceType<ManagedCluster>({
  group: cluster.group,
  version: 'v1',
  kind: 'ManagedCluster',
  plural: 'managedclusters',
  namespaced: false,
});
/** addon.open-cluster-management.io/v1alpha1 ManagedClusterAddOn. */
export const managedClusterAddOns = resourceType<ManagedClusterAddOn>({
  ...addOn,
  kind: 'ManagedClusterAddOn',
  plural: 'managedclusteraddons',
  namespaced: true,
});
/** addon.open-cluster-management.io/v1alpha1 ClusterManagementAddOn. */
export const clusterManagementAddOns = resourceType<ClusterManagementAddOn>({
  ...addOn,
  kind: 'ClusterManagementAddOn',
  plural: 'clustermanagementaddons',
  namespaced: false,
});
/** addon.open-cluster-management.io/v1alpha1 AddOnDeploymentConfig. */
export const addOnDeploymentConfigs = resourceType<AddOnDeploymentConfig>({
  ...addOn,
  kind: 'AddOnDeploymentConfig',
  plural: 'addondeploymentconfigs',
  namespaced: true,
});
/** work.open-cluster-management.io/v1 ManifestWork. */
export const manifestWorks = resourceType<ManifestWork>({
  group: 'work.open-cluster-management.io',
  version: 'v1',
  kind: 'ManifestWork',
  plural: 'manifestworks',
  namespaced: true,
});
