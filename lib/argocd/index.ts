export {
  isProjectForAgent,
  isUntouchedDefault,
  type Mapping,
  projectDigest,
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
  namespaceName,
  type ObjectMeta,
  objectName,
  opaqueId,
} from './application.ts';
export { canonicalJson, digestOf } from './canonical-json.ts';
export { type ListedResource, resourceListChecksum, specChecksum } from './checksums.ts';
export { matchesAny, matchesGlob } from './glob.ts';
export { AgentSync, type AgentSyncOptions } from './managed/agent-sync.ts';
export { managedCopyDigest } from './managed/copy.ts';
export type { SyncLog } from './managed/log.ts';
export { type NamespaceMapping, oneNamespace, sameNamespaces } from './managed/mapping.ts';
export type {
  ApplicationMessage,
  AppProjectMessage,
  ErrorMessage,
  Message,
  PeerConnection,
  RequestUpdate,
  ResyncKind,
  ResyncMessage,
} from './managed/messages.ts';
export type { AdoptionPolicy, MismatchPolicy } from './managed/plan.ts';
export { PrincipalSync, type PrincipalSyncOptions } from './managed/principal-sync.ts';
export type { RecreatePolicy } from './managed/recreate.ts';
export type { SyncStats } from './managed/stats.ts';
export { applyMergePatch, isEqual, mergePatchBetween } from './merge-patch.ts';
export { agentErrorCondition, annotations, skipSyncLabel } from './names.ts';
export { AgentParts, type AgentPartsOptions } from './parts/agent-parts.ts';
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
export { Warnings } from './parts/warnings.ts';
export { AgentProjects, type AgentProjectsOptions } from './projects/agent-projects.ts';
export { PrincipalProjects, type PrincipalProjectsOptions } from './projects/principal-projects.ts';
export { applicationRouter, isSkipped, type RoutingOptions } from './routing.ts';
