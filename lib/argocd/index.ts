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
  AutonomousApplications,
  type AutonomousApplicationsOptions,
} from './autonomous/autonomous-applications.ts';
export { mirrorProject, projectObjection } from './autonomous/mirror.ts';
export type { MirrorAdoptionPolicy } from './autonomous/mirror-plan.ts';
export type { MirrorTrouble } from './autonomous/mirror-trouble.ts';
export { Mirrors, type MirrorsOptions } from './autonomous/mirrors.ts';
export { canonicalJson, digestOf } from './canonical-json.ts';
export { type ListedResource, resourceListChecksum, specChecksum } from './checksums.ts';
export { matchesAny, matchesGlob } from './glob.ts';
export { type ConfigMap, configMapSchema, gpgKeysName, isGpgKeys } from './gpg-keys.ts';
export type { SyncLog } from './log.ts';
export { AgentSync, type AgentSyncOptions } from './managed/agent-sync.ts';
export { managedCopyDigest } from './managed/copy.ts';
export { type NamespaceMapping, oneNamespace, sameNamespaces } from './managed/mapping.ts';
export type { AdoptionPolicy, MismatchPolicy } from './managed/plan.ts';
export { PrincipalSync, type PrincipalSyncOptions } from './managed/principal-sync.ts';
export type { RecreatePolicy } from './managed/recreate.ts';
export { applyMergePatch, isEqual, mergePatchBetween } from './merge-patch.ts';
export { agentErrorCondition, annotations, skipSyncLabel } from './names.ts';
export { namespaceName, type ObjectMeta, objectName, opaqueId } from './object.ts';
export { AgentParts, type AgentPartsOptions } from './parts/agent-parts.ts';
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
} from './parts/messages.ts';
export type {
  AgentKind,
  AgentMode,
  Copy,
  Listed,
  MirrorPart,
  ObjectMessage,
  PrincipalKind,
  PrincipalPeerInfo,
  SourcePart,
} from './parts/part.ts';
export { PrincipalParts, type PrincipalPartsOptions } from './parts/principal-parts.ts';
export type { SyncStats } from './parts/stats.ts';
export { Warnings } from './parts/warnings.ts';
export { type HubPublisherOptions, publishAppProjects, replicateAppProjects } from './replicas/app-projects.ts';
export { type AutonomousProjectsOptions, publishOwnAppProjects } from './replicas/autonomous-projects.ts';
export type { ClusterReplicaOptions } from './replicas/cluster-replica.ts';
export { publishGpgKeys, replicateGpgKeys } from './replicas/gpg-keys.ts';
export { ownerOfMirror, projectForHub, projectMirrorName } from './replicas/project-mirror.ts';
export { ProjectMirrors, type ProjectMirrorsOptions } from './replicas/project-mirrors.ts';
export { publishRepositories, type RepositoryReplicaOptions, replicateRepositories } from './replicas/repositories.ts';
export { isRepository, projectOfRepository, type Secret, secretSchema } from './repository.ts';
export { applicationRouter, isSkipped, type RoutingOptions, withoutMirrors } from './routing.ts';
export { type LabelTest, labelSelector } from './selector.ts';
