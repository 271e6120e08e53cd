import type { KeyCertificate } from '../../lib/pki/index.ts';
import type { Endpoint } from '../endpoint/discovery.ts';
import type { ClusterConcern, Trouble } from '../fleet/steps.ts';
import type { GitOpsCluster } from '../hub/resources.ts';
import type { ClusterCertificates } from '../trust/rotation.ts';
import type { Release } from './release.ts';
import type { RolloutStrategy } from './rollout-strategy.ts';
import type { AddOnSettings } from './spec.ts';

/** What a GitOpsCluster's clusters are made from; complete once its foundation steps are done. */
export interface Foundation {
  /** `namespace/name`. */
  readonly key: string;
  readonly gitOpsCluster: GitOpsCluster;
  readonly namespace: string;
  readonly placement: string;
  readonly authority: KeyCertificate;
  readonly authorities: string;
  readonly addOn: AddOnSettings;
  /** What the clusters are to run. */
  readonly release: Release;
  /** How they follow when that changes. */
  readonly rolloutStrategy: RolloutStrategy;
  /** Whether clusters keep what they have when the GitOpsCluster is deleted. */
  readonly retains: boolean;
  /** Undefined until the server is discovered: nothing can be delivered before. */
  readonly endpoint: Endpoint | undefined;
}

/** What the reconcile of one cluster found; GitOpsClusters sum these up. */
export interface ClusterReport {
  readonly cluster: string;
  /** The GitOpsCluster that it counts for. */
  readonly owner: string;
  /** Why nothing is done for it, though it is selected. */
  readonly skipped?: string;
  /** What its departure waits for. */
  readonly leaving?: string;
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
