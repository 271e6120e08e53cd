import type { KeyCertificate } from '../../lib/pki/index.ts';
import type { PrincipalEndpoint } from '../endpoint/index.ts';
import type { GitOpsCluster } from '../hub/index.ts';
import type { Release } from './release.ts';
import type { RolloutStrategy } from './rollout-strategy.ts';
import type { AddOnSettings } from './spec.ts';

/** What the clusters of a GitOpsCluster are made from. Complete once its foundation steps have succeeded. */
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
  readonly endpoint: PrincipalEndpoint | undefined;
}
