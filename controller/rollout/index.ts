export { deliveredBy, versionAnnotations, versionKeys } from './delivered-version.ts';
export type { Phase } from './plan.ts';
export { rolloutCondition, rolloutProgress } from './rollout-conditions.ts';
export { type ClusterRelease, Rollouts } from './rollouts.ts';
