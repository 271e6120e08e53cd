export { type AddOnCondition, agentConnected } from './agent-connection.ts';
export { Applier, ForeignObjectError, isOurs } from './applier.ts';
export {
  argoApplicationSets,
  argoCdApplications,
  argoProjects,
  isArgoCd,
  type ManagedApplication,
} from './argo-kinds.ts';
export { applicationsCrd, Caches, type NamespaceObstacle } from './caches.ts';
export type { AddOnReasons, FleetConditionType, FleetReasons, RequestReasons } from './condition-types.ts';
export { deliverableCrd, kindsOf, operatorKinds } from './crds.ts';
export type { HubEventReason, HubEvents, NamedEventReason } from './event-reasons.ts';
export { clustersOf, type HubApplication, slimApplication, urlsIn } from './hub-application.ts';
export { identifyHub, reasonItIsHub } from './hub-identity.ts';
export { appliedNow, hasLetGo, isLettingGo, letGo } from './letting-go.ts';
export { isDetaching, isForced, isRetaining } from './markers.ts';
export {
  addOnName,
  agentSecretName,
  agentSubject,
  argoCdParamsName,
  cleanUpWork,
  clientSecretName,
  clusterClientName,
  connectionLeaseName,
  deliveredSecretName,
  fieldManager,
  finalizer,
  formerWork,
  hubNames,
  isTemplateWork,
  keys,
  labelValue,
  managedBy,
  originalAuthorityWork,
  partWorkName,
  redisProxyName,
  requestedSecretName,
  signerName,
} from './names.ts';
export { namesText } from './names-text.ts';
export {
  type AddOnDeploymentConfig,
  addOnDeploymentConfigs,
  type ClusterManagementAddOn,
  type ConfigReference,
  clusterManagementAddOns,
  type FleetStatus,
  type GitOpsCluster,
  gitOpsClusters,
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
} from './ocm-kinds.ts';
export { listOf, mapOf, type Parsed, problemsOf, quoted, textOf } from './parsed.ts';
export { isGuest } from './principal-namespace.ts';
export { untilRenewal } from './renewal.ts';
export { failed, type StepReport, type StepResult, succeeded } from './step-result.ts';
export { isSystemNamespace, systemNamespaceText } from './system-namespaces.ts';
