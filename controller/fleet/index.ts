export { FleetReconciler } from './fleet-reconciler.ts';
