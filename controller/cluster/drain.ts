import { keyOf } from '../../lib/kube/index.ts';
import type { HubApplication } from '../hub/index.ts';

/**
 * The Applications whose deletion needs the agent of a cluster that is being left, as `namespace/name`: those being
 * deleted, and those of an ApplicationSet, which notices only after a while that the cluster is no longer selected. What
 * nobody deletes is not waited for.
 * @param applications those of the cluster
 * @param isUnselected false when the cluster is left although the Placement selects it: no ApplicationSet will then follow
 */
export function pendingDeletions(applications: readonly HubApplication[], isUnselected: boolean): string[] {
  const isOfSet = ({ metadata }: HubApplication) =>
    metadata.ownerReferences?.some(({ kind, controller }) => kind === 'ApplicationSet' && controller === true) ?? false;
  return applications
    .filter((one) => one.metadata.deletionTimestamp !== undefined || (isUnselected && isOfSet(one)))
    .map(keyOf)
    .sort();
}
