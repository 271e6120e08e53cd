/** Annotations and labels of the protocol and of Argo CD that the rules know. */
export const annotations = {
  /** UID of the object on the side that owns it; marks an object as mirrored. */
  sourceUid: 'argocd.argoproj.io/source-uid',
  /** Identity of the principal that last wrote the object. */
  principalUid: 'argocd.argoproj.io/principal-uid',
  /** `true`: the Application was moved from the principal's namespace into the agent's (destination-based mapping). */
  namespaceRemapped: 'argocd.argoproj.io/namespace-remapped',
  /** On the hub's object: `recreate` or `upsert`, above the agent's own setting. */
  mismatchPolicy: 'argocd.argoproj.io/source-uid-mismatch-policy',
  /** On the managed cluster's object: `always` or `never`, above the agent's own setting. */
  adoptionPolicy: 'argocd.argoproj.io/adoption-policy',
  /** Argo CD: look at the Application now. Argo CD's controller removes it. */
  refresh: 'argocd.argoproj.io/refresh',
  /** Argo CD 3.6: sets one request to look apart from the one before. Argo CD's controller removes it with the request. */
  refreshTimestamp: 'argocd.argoproj.io/refresh-timestamp',
  /** Argo CD: run the source hydrator now. Argo CD's controller removes it. */
  hydrate: 'argocd.argoproj.io/hydrate',
  /** Argo CD 3.6: as {@link annotations.refreshTimestamp}, for the hydrator. */
  hydrateTimestamp: 'argocd.argoproj.io/hydrate-timestamp',
  /** Argo CD: a user approves that resources are deleted which ask for that (sync option `Delete=confirm`). */
  deletionApproved: 'argocd.argoproj.io/deletion-approved',
  /** State of Argo CD's notification controller on the cluster where it runs. */
  notified: 'notified.notifications.argoproj.io',
  /** Time of the last mirror write; written by Go principals. */
  lastUpdated: 'argocd-agent.argoproj.io/last-updated',
  /** On a copy that is being deleted: when the agent last made Argo CD look at it. */
  nudgedAt: 'argocd-agent.argoproj-labs.io/nudged-at',
  /** On a copy: the operation that waits for the end of the one that runs, of a principal that does not say it again. */
  waitingOperation: 'argocd-agent.argoproj-labs.io/waiting-operation',
  /** On a mirror: when the operation began that its agent reported last; empty when it reported none. */
  reportedOperation: 'argocd-agent.argoproj-labs.io/reported-operation',
  /** On a copy that was there before it became one: what it was (`recordOf`); empty when that is too large. */
  takenOver: 'argocd-agent.argoproj-labs.io/taken-over',
  /**
   * In the deletion of a copy: `true` when its source is still there, and only no longer meant for the other side. argocd-agent
   * neither sends nor reads it.
   */
  stillThere: 'argocd-agent.argoproj-labs.io/still-there',
  /** On a hub Application that is being deleted: `true` lets it go without an answer of its agent. */
  release: 'argocd-agent.argoproj-labs.io/release',
  /** On a mirror of an autonomous agent's object: the agent. argocd-agent's mirrors are told by other signs. */
  mirrorOf: 'argocd-agent.argoproj-labs.io/mirror-of',
  /** On such a mirror: the checksum of the agent's own object and that of the mirror which was made of it. */
  mirrorChecksums: 'argocd-agent.argoproj-labs.io/mirror-checksums',
  /** On such a mirror: the digest of the agent's own object and that of the mirror which was made of it. */
  mirrorDigests: 'argocd-agent.argoproj-labs.io/mirror-digests',
  /** `true` on a hub's object: the other hub of a pair has, or had, it too. */
  onBothHubs: 'argocd-agent.argoproj-labs.io/on-both-hubs',
  /** On the Lease of a pair of hubs: the one that was active last. The other one may lack what that has written. */
  lastActiveHub: 'argocd-agent.argoproj-labs.io/last-active-hub',
  /** On Lease `argocd-agent.hub-role`: what all principals of this hub are, or are about to be. */
  hubRole: 'argocd-agent.argoproj-labs.io/hub-role',
  /** On that Lease: `--ha-preferred-role` when the role was decided by it. */
  preferredRole: 'argocd-agent.argoproj-labs.io/preferred-role',
  /** On that Lease: what each of the last pods preferred, as JSON. */
  preferredByPod: 'argocd-agent.argoproj-labs.io/preferred-by-pod',
  /** On that Lease: the state of the principal that follows the other hub. */
  followerState: 'argocd-agent.argoproj-labs.io/follower-state',
  /** On the same Lease: what was changed on the standby hub and cannot be put back, as JSON. */
  changedOnStandby: 'argocd-agent.argoproj-labs.io/changed-on-standby',
  /** `true` on ConfigMap `argocd-agent-deleted-objects`: a standby has had everything since this hub became active. */
  isFollowed: 'argocd-agent.argoproj-labs.io/is-followed',
  /** Argo CD's: the Argo CD installation whose Application `tracking-id` names. */
  installationId: 'argocd.argoproj.io/installation-id',
  /** kubectl's own; meaningless on another cluster. */
  lastApplied: 'kubectl.kubernetes.io/last-applied-configuration',
} as const;

/** Label whose exact value `true` keeps an object out of all synchronisation. */
export const skipSyncLabel = 'argocd-agent.argoproj-labs.io/ignore-sync';

/** Condition type that reports on a hub Application what its agent could not do. */
export const agentErrorCondition = 'AgentError';

/** Condition type with which the principal reports on a hub Application what it waits for, or a harmless irregularity. */
export const agentWarningCondition = 'AgentWarning';

/**
 * Condition type with which the principal reports on a hub Application that the agent whose status it shows is not connected.
 * Argo CD's UI shows types that end with `Warning` as warnings.
 */
export const agentDisconnectedCondition = 'AgentDisconnectedWarning';

/** The condition types that only the principal writes. An agent neither gets nor reports them. */
export const principalConditions = [agentWarningCondition, agentDisconnectedCondition] as const;
