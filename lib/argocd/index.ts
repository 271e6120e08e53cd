export {
  isProjectForAgent,
  isUntouchedDefault,
  type Mapping,
  projectForAgent,
} from './app-project-rules.ts';
export {
  type Application,
  type ApplicationSpec,
  type ApplicationStatus,
  type AppProject,
  type AppProjectSpec,
  applicationSchema,
  appProjectSchema,
  type Destination,
} from './application.ts';
export {
  ClusterApplications,
  type ClusterApplicationsOptions,
} from './autonomous/cluster/cluster-applications.ts';
export type { OperationRevisions } from './autonomous/cluster/operation-admission.ts';
export { ApplicationMirrors, type ApplicationMirrorsOptions } from './autonomous/hub/application-mirrors.ts';
export type { MirrorFailure } from './autonomous/hub/mirror-failure.ts';
export type { MirrorAdoptionPolicy, MirrorChange } from './autonomous/hub/mirror-plan.ts';
export { mirrorProject, projectObjection } from './autonomous/mirror.ts';
export { type ListedResource, resourceListChecksum, specChecksum } from './checksums.ts';
export { isReservedClusterLabel } from './cluster-labels.ts';
export { matchesAny, matchesGlob, warnOfUnreadableEntries } from './glob.ts';
export { readableGlobalProjects } from './global-projects.ts';
export { configMapSchema, type GpgKeys, gpgKeysName, isGpgKeys } from './gpg-keys.ts';
export { impersonatedUser } from './impersonation.ts';
export { ApplicationCopies, type ApplicationCopiesOptions } from './managed/cluster/application-copies.ts';
export type { AdoptionPolicy, MismatchPolicy } from './managed/cluster/copy-plan.ts';
export type { RecreatePolicy } from './managed/cluster/recreate.ts';
export { managedCopyDigest } from './managed/copy.ts';
export {
  type DisconnectedAgent,
  HubApplications,
  type HubApplicationsOptions,
} from './managed/hub/hub-applications.ts';
export { type NamespaceMapping, oneNamespace, sameNamespaces } from './managed/mapping.ts';
export {
  agentDisconnectedCondition,
  agentErrorCondition,
  agentWarningCondition,
  annotations,
  skipSyncLabel,
} from './names.ts';
export { type Metadata, namespaceName, objectMeta, objectName, opaqueId } from './object.ts';
export { ownerOptions, withoutOwner } from './owner-marks.ts';
export { AgentSync, type AgentSyncOptions } from './peer/agent-sync.ts';
export { HubSync, type HubSyncOptions } from './peer/hub-sync.ts';
export type {
  AgentKind,
  AgentMode,
  ConnectedPrincipal,
  Copy,
  CopySync,
  HubKind,
  Listed,
  ObjectMessage,
  SourceSync,
} from './peer/kind-sync.ts';
export type {
  ApplicationMessage,
  AppProjectMessage,
  ErrorMessage,
  GpgKeyMessage,
  Message,
  PeerConnection,
  RepositoryMessage,
  RequestUpdate,
  ResyncKind,
  ResyncMessage,
  UnreadableMessage,
} from './peer/messages.ts';
export type { SyncStats } from './peer/stats.ts';
export { Warnings } from './peer/warnings.ts';
export { type ArgoCluster, inCluster } from './project-clusters.ts';
export { admitsNamespace, permitsDestination, permitsSource } from './project-permissions.ts';
export { excessOf } from './project-size.ts';
export { projectScope, projectSurroundings } from './project-surroundings.ts';
export { replicateAppProjects } from './replicas/cluster/app-projects.ts';
export type { ClusterReplicaOptions } from './replicas/cluster/cluster-replica.ts';
export { replicateGpgKeys } from './replicas/cluster/gpg-keys.ts';
export { KeptApplications } from './replicas/cluster/kept-applications.ts';
export { type AutonomousProjectsOptions, publishOwnAppProjects } from './replicas/cluster/own-projects.ts';
export { type RepositoryReplicaOptions, replicateRepositories } from './replicas/cluster/repositories.ts';
export { type HubPublisherOptions, projectTargets, publishAppProjects } from './replicas/hub/app-projects.ts';
export { publishGpgKeys } from './replicas/hub/gpg-keys.ts';
export { ProjectDecisions } from './replicas/hub/project-decisions.ts';
export { ProjectMirrors, type ProjectMirrorsOptions } from './replicas/hub/project-mirrors.ts';
export { publishRepositories } from './replicas/hub/repositories.ts';
export { VirtualProjects, type VirtualProjectsOptions } from './replicas/hub/virtual-projects.ts';
export {
  ownerOfMirror,
  type ProjectMirrorPlace,
  projectForHub,
  projectMirrorName,
} from './replicas/project-mirror.ts';
export { referenceMirror } from './replicas/reference-mirror.ts';
export {
  isRepository,
  isRepositoryForAgent,
  projectOfRepository,
  type RepositorySecret,
  secretSchema,
} from './repository.ts';
export { hasCredentials, isForRepository, repositoryUrls } from './repository-use.ts';
export {
  applicationAdmission,
  applicationRouter,
  clusterUrl,
  isSkipped,
  type RoutingOptions,
  routingUrl,
  undecidedApplications,
  withoutMirrors,
} from './routing.ts';
export { versionOfImage } from './version.ts';
export { type ProjectSurroundings, virtualProject, withOwnRepositories } from './virtual-project.ts';
export { ConflictBackoff } from './writing/conflict-backoff.ts';
