import { type RolloutStrategy, rolloutStrategySchema } from './rollout-strategy.ts';

/** Settings of the controller that reach into what it delivers. */
export interface DeliverySettings {
  readonly agentImage: string;
  readonly pullPolicy: string;
  /** Undefined: what the hub runs. */
  readonly argoCdImage: string | undefined;
  readonly redisImage: string | undefined;
  /** Undefined: the version that this controller knows. */
  readonly operatorImage?: string | undefined;
  /** For GitOpsClusters that do not say it. Undefined: what nothing given means in OCM's terms here. */
  readonly rolloutStrategy?: RolloutStrategy | undefined;
}

/** What is delivered when neither the settings nor the hub say anything. */
export const defaultImages = {
  argoCd: 'quay.io/argoproj/argocd:v3.2.6',
  redis: 'docker.io/library/redis:8.2.2-alpine',
  operator: 'quay.io/argoprojlabs/argocd-operator:v0.18.0',
} as const;

/** How clusters follow a new version when nobody says it: a tenth of them at a time, and the first failure stops it. */
export const defaultRolloutStrategy: RolloutStrategy = rolloutStrategySchema.parse({});
