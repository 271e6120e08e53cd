import { type RolloutStrategy, rolloutStrategySchema } from './rollout-strategy.ts';

/** Controller settings that affect what managed clusters get. */
export interface DeliverySettings {
  readonly agentImage: string;
  readonly pullPolicy: string;
  /** Undefined: the image that the hub runs. */
  readonly argoCdImage: string | undefined;
  readonly redisImage: string | undefined;
  /** Undefined: {@link defaultImages}. */
  readonly operatorImage?: string | undefined;
  /** For GitOpsClusters without a strategy. Undefined: {@link defaultRolloutStrategy}. */
  readonly rolloutStrategy?: RolloutStrategy | undefined;
}

/** Images that are delivered when neither the settings nor the hub determine one. */
export const defaultImages = {
  argoCd: 'quay.io/argoproj/argocd:v3.2.6',
  redis: 'docker.io/library/redis:8.2.2-alpine',
  operator: 'quay.io/argoprojlabs/argocd-operator:v0.18.0',
} as const;

/** The rollout strategy without any setting: a tenth of the clusters at a time; the first failure stops the rollout. */
export const defaultRolloutStrategy: RolloutStrategy = rolloutStrategySchema.parse({});
