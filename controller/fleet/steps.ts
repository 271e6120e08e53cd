import type { Logger } from '../../lib/base/index.ts';
import type { Condition, EventRecorder, KubeClient } from '../../lib/kube/index.ts';
import type { KeyCertificate } from '../../lib/pki/index.ts';
import type { Surroundings } from '../endpoint/candidates.ts';
import type { Endpoint } from '../endpoint/discovery.ts';
import type { Applier } from '../hub/applier.ts';
import type { Caches } from '../hub/caches.ts';
import type { GitOpsCluster } from '../hub/resources.ts';
import type { Selection } from '../ownership/selection.ts';
import type { FleetSpec } from '../spec/spec.ts';
import type { ClusterCertificates, Rotation } from '../trust/rotation.ts';

/** What one step says: the status of its condition. Undefined leaves the condition as it is. */
export type StepResult =
  | { readonly status: Condition['status']; readonly reason: StepReason; readonly message: string }
  | undefined;

/** Reasons of the original. */
export type StepReason = 'Success' | 'Failed' | 'InProgress' | 'ServerNotDiscovered' | 'NoClusters';

/** What the steps of one reconcile share: the object, the caches, and what earlier steps found for later ones. */
export interface StepContext {
  readonly gitOpsCluster: GitOpsCluster;
  /** `namespace/name`. */
  readonly key: string;
  readonly namespace: string;
  readonly spec: FleetSpec;
  readonly caches: Caches;
  readonly client: KubeClient;
  readonly applier: Applier;
  readonly logger: Logger;
  readonly events: Pick<EventRecorder, 'normal' | 'warning'>;
  readonly now: Date;
  readonly signal: AbortSignal;
  readonly selection: Selection;
  readonly clusters: ClusterSummary;
  /** The principal's Service, if there is one, and what leads to it. */
  readonly surroundings: Surroundings;
  /** Earliest time when something must be looked at again, in milliseconds since the epoch. */
  renewAt: number;
  endpoint: Endpoint | undefined;
  /** Certificate and key; the key is missing when a user supplied only certificates. */
  authority: KeyCertificate | undefined;
  /** Certificates of all authorities to trust, PEM. */
  authorities: string | undefined;
  /** A change of the authority that is under way. */
  rotation: Rotation | undefined;
  /** What the certificates of all clusters of the namespace rest on; undefined for one not looked at yet. */
  readonly clusterCertificates: () => ReadonlyMap<string, ClusterCertificates | undefined>;
  /** Does work on what GitOpsClusters share when it is this one's turn. */
  readonly inTurn: <T>(key: string, work: () => Promise<T>) => Promise<T>;
}

/** A step: owns one condition. */
export interface Step {
  readonly condition: string;
  /** Used as `Failed to <purpose>: <error>` when the step throws. */
  readonly purpose: string;
  readonly run: (context: StepContext) => Promise<StepResult> | StepResult;
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
  readonly leaving: readonly { cluster: string; waitingFor: string }[];
  /** On their way out, but not looked at since the controller started. */
  readonly unseenLeaving: readonly string[];
  /** Clusters cleaned up since the controller started. */
  readonly cleanedUp: number;
}

/** What can go wrong with a cluster, each owned by one condition. */
export type ClusterConcern = 'import' | 'works' | 'addOn';

/** A step that found its input missing or wrong. */
export const failed = (message: string, reason: StepReason = 'Failed'): StepResult => ({
  status: 'False',
  reason,
  message,
});

/** A step that did what it is for. */
export const succeeded = (message: string, reason: StepReason = 'Success'): StepResult => ({
  status: 'True',
  reason,
  message,
});
