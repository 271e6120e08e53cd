export { type ClusterLabels, clusterLabelsSchema, defaultClusterLabels, selects } from './cluster-labels.ts';
export { type ClusterSettings, clusterSettingsSchema, type Plugin } from './cluster-settings.ts';
export { type DeliverySettings, defaultImages, defaultRolloutStrategy } from './delivery-settings.ts';
export type { Foundation } from './foundation.ts';
export { type HostState, specOnHub } from './guest.ts';
export {
  describeVersion,
  type HubState,
  isComparable,
  isVersion,
  type Release,
  releaseOf,
  settingsDigest,
  type Version,
  versionText,
} from './release.ts';
export { amountOf, type DecisionGroupRef, type RolloutStrategy, rolloutStrategySchema } from './rollout-strategy.ts';
export { type AddOnSettings, type FleetSpec, parseGitOpsCluster } from './spec.ts';
