export { deliveredBy, versionKeys } from './delivered-version.ts';
export type { Phase } from './plan.ts';
export { rolloutCondition, rolloutProgress } from './rollout-conditions.ts';
export { type Delivery, Rollouts } from './rollouts.ts';
