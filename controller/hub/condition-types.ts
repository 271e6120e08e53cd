/**
 * The conditions of a GitOpsCluster: their types, in the order of the reconcile, and the reasons of each. A step that gives
 * another reason does not compile. docs/reference/conditions.md says what they mean (`site/reference/conditions.ts`).
 */
export interface FleetReasons {
  /** A summary; its reason is that of the condition which is to blame. */
  Ready: Exclude<FleetReasons[Exclude<keyof FleetReasons, 'Ready'>], 'NoClusters'>;
  RBACReady: 'Success' | 'NamespaceNotServed' | 'NamespaceNotReadable';
  ServerDiscovered: 'Success' | 'Failed' | 'ServerNotDiscovered';
  CACertificateReady: 'Success' | 'Failed';
  JWTSecretReady: 'Success' | 'Failed';
  PrincipalCertificateReady: 'Success' | 'Failed';
  ResourceProxyCertificateReady: 'Success' | 'Failed';
  PrincipalAvailable: 'Success' | 'Failed' | 'InProgress';
  AddOnTemplateReady: 'Success';
  HubArgoCDCompatible:
    | 'Success'
    | 'Failed'
    | 'InProgress'
    | 'HubReconcilesApplications'
    | 'HubArgoCDNotConfigured'
    | 'VersionUnknown'
    | 'VersionNotSupported';
  ClusterSettingsRead: 'Success' | 'Failed' | 'UnknownParameters';
  PlacementTolerationConfigured: 'Success' | 'Failed';
  PlacementEvaluated: 'Success' | 'Failed' | 'InProgress' | 'NoClusters' | 'Conflict';
  ClustersImported: 'Success' | 'Failed' | 'InProgress' | 'NoClusters';
  ManifestWorkCreated: 'Success' | 'Failed' | 'InProgress' | 'NoClusters';
  ArgoCDCRDelivered: 'Success' | 'Failed' | 'InProgress' | 'NoClusters';
  AddonConfigured: 'Success' | 'Failed' | 'InProgress' | 'NoClusters';
  RemovedClustersCleanedUp: 'Success' | 'Failed' | 'InProgress';
  ClustersReady: 'Success' | 'Failed' | 'InProgress' | 'NoClusters' | 'Conflict';
  ClustersUpToDate: 'Success' | 'Failed' | 'InProgress' | 'NoClusters';
}

/** A condition type of a GitOpsCluster. */
export type FleetConditionType = keyof FleetReasons;

/** The conditions of a ManagedClusterAddOn, with the reasons of each. Some types and reasons are OCM's own. */
export interface AddOnReasons {
  Configured: 'ConfigurationsConfigured' | 'ConfigurationInvalid';
  ManifestApplied:
    | 'AddonManifestApplied'
    | 'AddonManifestAppliedFailed'
    | 'ManifestWorkApplyFailed'
    | 'Progressing'
    | 'Updating';
  Available:
    | 'ProbeAvailable'
    | 'ProbeUnavailable'
    | 'AgentNotConnected'
    | 'ResourceNotAvailable'
    | 'WorkNotApplied'
    | 'WorkNotFound'
    | 'NoProbeResult'
    | 'ManagedClusterNotAvailable';
  Progressing: 'Completed' | 'Progressing' | 'WaitingForRollout' | 'Detaching' | 'Failed';
  AgentConnected: 'Connected' | 'Disconnected' | 'NeverConnected';
  ClientCertificateIssued: 'Issued' | 'InUse' | 'Expired' | 'NotRequested';
  ClusterLabelsCopied: 'NotCopied';
  HookManifestCompleted: 'HookManifestIsCompleted' | 'HookManifestIsNotCompleted';
}

/** The conditions that the controller sets on a CertificateSigningRequest, with the reason of each. */
export interface RequestReasons {
  Approved: 'ArgoCDAgentRequestApproved';
  Denied: 'ArgoCDAgentRequestRefused';
  Failed: 'ArgoCDAgentRequestRefused';
}
