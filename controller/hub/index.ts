export { type AddOnCondition, agentConnected } from './agent-connection.ts';
export { Applier, ForeignObjectError, isOurs } from './applier.ts';
export { applicationsCrd, Caches } from './caches.ts';
export { deliverableCrd, kindsOf, operatorKinds } from './crds.ts';
export { clustersOf, type HubApplication, slimApplication } from './hub-application.ts';
export { identifyHub, reasonItIsHub } from './hub-identity.ts';
export { isDetaching, isForced, isRetaining } from './markers.ts';
export {
  addOnName,
  agentSubject,
  cleanUpWork,
  clusterClientName,
  clusterSecretName,
  connectionLeaseName,
  deliveredSecretName,
  fieldManager,
  finalizer,
  formerWork,
  hubNames,
  keys,
  labelValue,
  managedBy,
  signerName,
  workName,
} from './names.ts';
export { namesText } from './names-text.ts';
export type { Parsed } from './parsed.ts';
export { untilRenewal } from './renewal.ts';
export {
  type AddOnDeploymentConfig,
  addOnDeploymentConfigs,
  applicationSets,
  applications,
  appProjects,
  type ConfigReference,
  type FleetStatus,
  type GitOpsCluster,
  gitOpsClusters,
  isArgoCd,
  type ManagedApplication,
  type ManagedCluster,
  type ManagedClusterAddOn,
  type ManifestConfig,
  type ManifestWork,
  managedClusterAddOns,
  managedClusters,
  manifestWorks,
  type OrphaningRule,
  type Placement,
  type PlacementDecision,
  placementDecisions,
  placements,
  type ResourceRequirements,
  type Toleration,
} from './resources.ts';
export { failed, type StepReport, type StepResult, succeeded } from './step-result.ts';
