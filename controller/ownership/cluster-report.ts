import { type Condition, isConditionTrue } from '../../lib/kube/index.ts';

/** The result of the reconcile of one cluster. The status of GitOpsClusters sums the reports up. */
export interface ClusterReport {
  readonly cluster: string;
  /** The GitOpsCluster that owns the cluster, as `namespace/name`. */
  readonly owner: string;
  /** Why a selected cluster is skipped. */
  readonly skipped?: string;
  /** What the detachment of the cluster waits for. */
  readonly detaching?: string;
  readonly problems: Readonly<Partial<Record<ClusterConcern, string>>>;
  /** The authorities of the cluster's certificates; undefined while unknown. */
  readonly certificates?: ClusterCertificates;
  readonly health: ClusterHealth;
  /** The problem of the cluster, if there is one. */
  readonly trouble?: Trouble;
}

/** Health of a cluster, from the conditions of its add-on. */
export interface ClusterHealth {
  /** It has applied all works. */
  readonly isEnrolled: boolean;
  /** The delivered workloads run. */
  readonly isAvailable: boolean;
  /** Its agent is connected to the principal. */
  readonly isConnected: boolean;
}

/** The health that an add-on's conditions report. */
export function healthOf(conditions: readonly Condition[] | undefined): ClusterHealth {
  return {
    isEnrolled: isConditionTrue(conditions, 'ManifestApplied'),
    isAvailable: isConditionTrue(conditions, 'Available'),
    isConnected: isConditionTrue(conditions, 'AgentConnected'),
  };
}

/** The authorities that a cluster trusts and uses. */
export interface ClusterCertificates {
  /** Fingerprints of the trusted authorities in the works that the cluster has reported as applied. */
  readonly trusts: readonly string[];
  /** Fingerprint of the authority that issued its certificates; undefined while those of others may be in use. */
  readonly authority: string | undefined;
}

/** A problem of a cluster, as listed in a GitOpsCluster's status. */
export interface Trouble {
  /** Type of the failing condition of the GitOpsCluster or the ManagedClusterAddOn. */
  readonly step: string;
  readonly reason: string;
  readonly message: string;
  /** RFC 3339. */
  readonly since: string;
}

/** A selected cluster that another GitOpsCluster owns. */
export interface LostCluster {
  readonly cluster: string;
  /** `namespace/name`. */
  readonly owner: string;
  /** Whether the owner is younger: it had the cluster first. */
  readonly isYounger?: boolean;
}

/** Summary of the clusters of one GitOpsCluster, from the reports of their reconciles. */
export interface ClusterSummary {
  /** Clusters that the GitOpsCluster owns, without skipped ones. */
  readonly clusters: readonly string[];
  readonly skipped: readonly { cluster: string; why: string }[];
  readonly lost: readonly LostCluster[];
  /** Not reconciled yet. */
  readonly pending: readonly string[];
  readonly failed: Readonly<Record<ClusterConcern, readonly { cluster: string; why: string }[]>>;
  readonly enrolled: readonly string[];
  readonly available: readonly string[];
  readonly connected: readonly string[];
  /** Clusters with a problem, those with the oldest problem first. */
  readonly failing: readonly (Trouble & { readonly cluster: string })[];
  readonly detaching: readonly { cluster: string; waitingFor: string }[];
  /** Clusters that are detached, but not reconciled since the controller started. */
  readonly unseenDetaching: readonly string[];
  /** Clusters cleaned up since the controller started. */
  readonly cleanedUp: number;
}

/** The concerns of a cluster's reconcile. Each has one condition. */
export type ClusterConcern = 'import' | 'works' | 'addOn';
