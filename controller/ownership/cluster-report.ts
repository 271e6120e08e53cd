import { type Condition, isConditionTrue } from '../../lib/kube/index.ts';

/** What the reconcile of one cluster found; GitOpsClusters sum these up. */
export interface ClusterReport {
  readonly cluster: string;
  /** The GitOpsCluster that it counts for. */
  readonly owner: string;
  /** Why nothing is done for it, though it is selected. */
  readonly skipped?: string;
  /** What its departure waits for. */
  readonly detaching?: string;
  readonly problems: Readonly<Partial<Record<ClusterConcern, string>>>;
  /** What its certificates rest on; undefined when it is not known. */
  readonly certificates?: ClusterCertificates;
  readonly health: ClusterHealth;
  /** What is wrong with it, if anything is. */
  readonly trouble?: Trouble;
}

/** How far a cluster is, as its add-on says. */
export interface ClusterHealth {
  /** It has applied everything that was delivered to it. */
  readonly isEnrolled: boolean;
  /** What was delivered runs. */
  readonly isAvailable: boolean;
  /** Its agent is connected to the principal. */
  readonly isConnected: boolean;
}

/** What an add-on's conditions say in short. */
export function healthOf(conditions: readonly Condition[] | undefined): ClusterHealth {
  return {
    isEnrolled: isConditionTrue(conditions, 'ManifestApplied'),
    isAvailable: isConditionTrue(conditions, 'Available'),
    isConnected: isConditionTrue(conditions, 'AgentConnected'),
  };
}

/** What one cluster's certificates rest on. */
export interface ClusterCertificates {
  /** Fingerprints of the authorities that it trusts, as far as it has reported them as applied. */
  readonly trusts: readonly string[];
  /** Fingerprint of the authority that its own certificates are of; undefined while others may still be in use. */
  readonly authority: string | undefined;
}

/** What is wrong with a cluster, in one line of a GitOpsCluster's status. */
export interface Trouble {
  /** Type of the condition, of the GitOpsCluster or of the ManagedClusterAddOn, that is not as it should be. */
  readonly step: string;
  readonly reason: string;
  readonly message: string;
  /** RFC 3339. */
  readonly since: string;
}

/** How the clusters of one GitOpsCluster fare, from the reports of their own reconciles. */
export interface ClusterSummary {
  /** Clusters that the GitOpsCluster has, without those skipped. */
  readonly clusters: readonly string[];
  readonly skipped: readonly { cluster: string; why: string }[];
  /** Selected, but another GitOpsCluster has them. */
  readonly lost: readonly { cluster: string; owner: string }[];
  /** Not reconciled yet. */
  readonly pending: readonly string[];
  readonly failed: Readonly<Record<ClusterConcern, readonly { cluster: string; why: string }[]>>;
  readonly enrolled: readonly string[];
  readonly available: readonly string[];
  readonly connected: readonly string[];
  /** All that need attention; those that have for longest first. */
  readonly failing: readonly (Trouble & { readonly cluster: string })[];
  readonly detaching: readonly { cluster: string; waitingFor: string }[];
  /** On their way out, but not looked at since the controller started. */
  readonly unseenDetaching: readonly string[];
  /** Clusters cleaned up since the controller started. */
  readonly cleanedUp: number;
}

/** What can go wrong with a cluster, each owned by one condition. */
export type ClusterConcern = 'import' | 'works' | 'addOn';
