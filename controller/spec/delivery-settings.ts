import type { ClusterLabels } from './cluster-labels.ts';
import type { ClusterSettings } from './cluster-settings.ts';
import { type RolloutStrategy, rolloutStrategySchema } from './rollout-strategy.ts';

/** Controller settings that affect what managed clusters get, and how the hub's Argo CD knows them. */
export interface DeliverySettings {
  readonly agentImage: string;
  /** Image of the clean-up Job. Undefined: the agent's, which argocd-agent's own cannot be. */
  readonly cleanUpImage?: string | undefined;
  readonly pullPolicy: string;
  /** Undefined: the image that the hub runs. */
  readonly argoCdImage: string | undefined;
  readonly redisImage: string | undefined;
  /** Undefined: {@link defaultImages}. */
  readonly operatorImage?: string | undefined;
  /** For GitOpsClusters without a strategy. Undefined: {@link defaultRolloutStrategy}. */
  readonly rolloutStrategy?: RolloutStrategy | undefined;
  /** For GitOpsClusters without `clusterLabels`. Undefined: {@link defaultClusterLabels}. */
  readonly clusterLabels?: ClusterLabels | undefined;
  /** For all clusters. Those of a GitOpsCluster come before them, key by key. */
  readonly clusterSettings?: ClusterSettings | undefined;
}

/** Images that are delivered when neither the settings nor the hub determine one. */
export const defaultImages = {
  argoCd: 'quay.io/argoproj/argocd:v3.5.1',
  redis: 'docker.io/library/redis:8.2.3-alpine',
  operator: 'quay.io/argoprojlabs/argocd-operator:v0.18.0',
} as const;

/** The rollout strategy without any setting: a tenth of the clusters at a time; the first failure stops the rollout. */
export const defaultRolloutStrategy: RolloutStrategy = rolloutStrategySchema.parse({});
