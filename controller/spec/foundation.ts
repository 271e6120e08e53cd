import type { KeyCertificate } from '../../lib/pki/index.ts';
import type { PrincipalEndpoint } from '../endpoint/index.ts';
import type { GitOpsCluster } from '../hub/index.ts';
import type { ClusterLabels } from './cluster-labels.ts';
import type { Release } from './release.ts';
import type { RolloutStrategy } from './rollout-strategy.ts';
import type { AddOnSettings } from './spec.ts';

/** The input of all clusters of a GitOpsCluster. Complete once its foundation steps have succeeded. */
export interface Foundation {
  /** `namespace/name`. */
  readonly key: string;
  readonly gitOpsCluster: GitOpsCluster;
  /** The namespace of the principal, the authority and the cluster Secrets. */
  readonly namespace: string;
  readonly placement: string;
  /** `host:port` for Argo CD on the hub. */
  readonly resourceProxy: string;
  readonly authority: KeyCertificate;
  readonly authorities: string;
  readonly addOn: AddOnSettings;
  /** The desired release of the clusters. */
  readonly release: Release;
  /** How the clusters follow a new release. */
  readonly rolloutStrategy: RolloutStrategy;
  /** Which labels and claims of the ManagedClusters become labels of the cluster Secrets. */
  readonly clusterLabels: ClusterLabels;
  /** Whether clusters keep their objects when the GitOpsCluster is deleted. */
  readonly retains: boolean;
  /** Undefined until the principal's address is discovered. Nothing can be delivered before. */
  readonly endpoint: PrincipalEndpoint | undefined;
}
