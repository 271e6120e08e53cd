import { type KubeObject, resourceType } from '../../lib/kube/index.ts';

/** A condition as every OCM kind carries it. */
export interface OcmCondition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason: string;
  message: string;
  lastTransitionTime?: string;
  observedGeneration?: number;
}

/** A standard label selector. */
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'; values?: string[] }[];
}

/** A taint of a managed cluster. */
export interface Taint {
  key: string;
  value?: string;
  effect: 'NoSelect' | 'PreferNoSelect' | 'NoSelectIfNew';
  timeAdded?: string | null;
}

/** cluster.open-cluster-management.io/v1 ManagedCluster, as far as tests use it. */
export interface OcmManagedCluster extends KubeObject {
  spec?: { hubAcceptsClient?: boolean; leaseDurationSeconds?: number; taints?: Taint[] };
  status?: {
    conditions?: OcmCondition[];
    clusterClaims?: { name: string; value: string }[];
    version?: { kubernetes?: string };
    [field: string]: unknown;
  };
}

/** cluster.open-cluster-management.io/v1beta2 ManagedClusterSetBinding. */
export interface ManagedClusterSetBinding extends KubeObject {
  spec?: { clusterSet?: string };
}

/** Selects clusters by their labels and their claims. */
export interface ClusterSelector {
  labelSelector?: LabelSelector;
  claimSelector?: LabelSelector;
}

/** One term of a Placement. */
export interface ClusterPredicate {
  requiredClusterSelector?: ClusterSelector & { celSelector?: unknown };
}

/** A toleration of a Placement. */
export interface OcmToleration {
  key?: string;
  operator?: 'Exists' | 'Equal';
  value?: string;
  effect?: Taint['effect'];
  tolerationSeconds?: number;
}

/** How the decisions of a Placement are grouped. */
export interface GroupStrategy {
  decisionGroups?: { groupName: string; groupClusterSelector: ClusterSelector }[];
  /** A number or a percentage of all that are selected; everything in one group when not given. */
  clustersPerDecisionGroup?: number | string;
}

/** cluster.open-cluster-management.io/v1beta1 Placement. */
export interface OcmPlacement extends KubeObject {
  spec?: {
    clusterSets?: string[];
    numberOfClusters?: number;
    predicates?: ClusterPredicate[];
    tolerations?: OcmToleration[];
    decisionStrategy?: { groupStrategy?: GroupStrategy };
  };
  status?: { conditions?: OcmCondition[]; numberOfSelectedClusters?: number; decisionGroups?: unknown[] };
}

/** cluster.open-cluster-management.io/v1beta1 PlacementDecision. */
export interface OcmPlacementDecision extends KubeObject {
  status?: { decisions: { clusterName: string; reason: string }[] };
}

/** Selects manifests of a work; name and namespace may be `*` wildcards. */
export interface ResourceIdentifier {
  group?: string;
  resource: string;
  namespace?: string;
  name: string;
}

/** How a feedback value is read. */
export interface FeedbackRule {
  type: 'WellKnownStatus' | 'JSONPaths';
  jsonPaths?: { name: string; path: string; version?: string }[];
}

/** Per-manifest options of a work. */
export interface OcmManifestConfig {
  resourceIdentifier: ResourceIdentifier;
  feedbackRules?: FeedbackRule[];
  feedbackScrapeType?: 'Poll' | 'Watch';
  updateStrategy?: {
    type: 'Update' | 'CreateOnly' | 'ServerSideApply' | 'ReadOnly';
    serverSideApply?: {
      fieldManager?: string;
      force?: boolean;
      ignoreFields?: { condition?: 'OnSpokePresent' | 'OnSpokeChange'; jsonPaths?: string[] }[];
    };
  };
}

/** What remains when a work is deleted. */
export interface DeleteOption {
  propagationPolicy?: 'Foreground' | 'Orphan' | 'SelectivelyOrphan';
  selectivelyOrphans?: { orphaningRules?: ResourceIdentifier[] };
}

/** One value that feedback brought back. */
export interface FeedbackValue {
  name: string;
  fieldValue: { type: 'Integer' | 'String' | 'Boolean'; integer?: number; string?: string; boolean?: boolean };
}

/** The state of one manifest of a work. */
export interface ManifestStatus {
  resourceMeta: {
    ordinal: number;
    group: string;
    version: string;
    kind: string;
    resource: string;
    name: string;
    namespace: string;
  };
  conditions: OcmCondition[];
  statusFeedback: { values?: FeedbackValue[] };
}

/** work.open-cluster-management.io/v1 ManifestWork. */
export interface OcmManifestWork extends KubeObject {
  spec: {
    workload?: { manifests?: KubeObject[] };
    deleteOption?: DeleteOption;
    manifestConfigs?: OcmManifestConfig[];
    executor?: unknown;
  };
  status?: { conditions?: OcmCondition[]; resourceStatus?: { manifests?: ManifestStatus[] } };
}

/** An object that a work put on the managed cluster. */
export interface AppliedResource {
  group: string;
  version: string;
  resource: string;
  namespace?: string;
  name: string;
  uid: string;
}

/** work.open-cluster-management.io/v1 AppliedManifestWork, on the managed cluster. */
export interface AppliedManifestWork extends KubeObject {
  spec?: { hubHash: string; agentID?: string; manifestWorkName: string };
  status?: { appliedResources?: AppliedResource[] };
}

/** addon.open-cluster-management.io/v1alpha1 ManagedClusterAddOn, as far as agents of a cluster read it. */
export interface OcmManagedClusterAddOn extends KubeObject {
  status?: { namespace?: string; registrations?: AddOnRegistration[] };
}

/** A client certificate that an add-on needs. */
export interface AddOnRegistration {
  signerName: string;
  subject?: { user?: string; groups?: string[] };
}

const cluster = 'cluster.open-cluster-management.io';
const work = 'work.open-cluster-management.io';

/** The kinds of OCM that tests read and write. */
export const ocmManagedClusters = resourceType<OcmManagedCluster>({
  group: cluster,
  version: 'v1',
  kind: 'ManagedCluster',
  plural: 'managedclusters',
  namespaced: false,
});
/** See {@link ocmManagedClusters}. */
export const managedClusterSetBindings = resourceType<ManagedClusterSetBinding>({
  group: cluster,
  version: 'v1beta2',
  kind: 'ManagedClusterSetBinding',
  plural: 'managedclustersetbindings',
  namespaced: true,
});
/** See {@link ocmManagedClusters}. */
export const ocmPlacements = resourceType<OcmPlacement>({
  group: cluster,
  version: 'v1beta1',
  kind: 'Placement',
  plural: 'placements',
  namespaced: true,
});
/** See {@link ocmManagedClusters}. */
export const ocmPlacementDecisions = resourceType<OcmPlacementDecision>({
  group: cluster,
  version: 'v1beta1',
  kind: 'PlacementDecision',
  plural: 'placementdecisions',
  namespaced: true,
});
/** See {@link ocmManagedClusters}. */
export const ocmManifestWorks = resourceType<OcmManifestWork>({
  group: work,
  version: 'v1',
  kind: 'ManifestWork',
  plural: 'manifestworks',
  namespaced: true,
});
/** See {@link ocmManagedClusters}. */
export const ocmManagedClusterAddOns = resourceType<OcmManagedClusterAddOn>({
  group: 'addon.open-cluster-management.io',
  version: 'v1alpha1',
  kind: 'ManagedClusterAddOn',
  plural: 'managedclusteraddons',
  namespaced: true,
});
/** See {@link ocmManagedClusters}. */
export const appliedManifestWorks = resourceType<AppliedManifestWork>({
  group: work,
  version: 'v1',
  kind: 'AppliedManifestWork',
  plural: 'appliedmanifestworks',
  namespaced: false,
});
