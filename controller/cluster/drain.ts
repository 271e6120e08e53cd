import { keyOf } from '../../lib/kube/index.ts';
import type { HubApplication } from '../hub/index.ts';

/**
 * The Applications whose deletion needs the agent of a detached cluster, as `namespace/name`: those being deleted, and those
 * of an ApplicationSet, whose controller notices the changed selection after a while. Other Applications are not waited for.
 * @param applications those of the cluster
 * @param isUnselected false when the Placement still selects the cluster: then no ApplicationSet deletes its Applications
 */
export function pendingDeletions(applications: readonly HubApplication[], isUnselected: boolean): string[] {
  const isOfSet = ({ metadata }: HubApplication) =>
    metadata.ownerReferences?.some(({ kind, controller }) => kind === 'ApplicationSet' && controller === true) ?? false;
  return applications
    .filter((one) => one.metadata.deletionTimestamp !== undefined || (isUnselected && isOfSet(one)))
    .map(keyOf)
    .sort();
}
