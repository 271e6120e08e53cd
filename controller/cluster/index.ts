export { configOf } from './cluster-config.ts';
export { ClusterReconciler } from './cluster-reconciler.ts';
export type { DeliveredSecrets } from './cluster-secrets.ts';
export { defaultTroubleDelays, type TroubleDelays } from './cluster-trouble.ts';
export { type RenderTarget, renderCluster } from './render-cluster.ts';
