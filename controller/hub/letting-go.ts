import type { ManifestWork } from './ocm-kinds.ts';

/** Patch of a work: the cluster gives its objects up, and keeps them when the work is deleted. */
export const letGo = { spec: { deleteOption: { propagationPolicy: 'Orphan', selectivelyOrphans: null } } } as const;

/** Whether a work is to let its objects go. */
export function isLettingGo({ spec }: ManifestWork): boolean {
  return spec.deleteOption?.propagationPolicy === 'Orphan';
}

/** The result of the cluster's last attempt to apply a work as it is now; undefined when it has not tried yet. */
export function appliedNow({ status, metadata }: ManifestWork): 'True' | 'False' | 'Unknown' | undefined {
  const applied = status?.conditions?.find(({ type }) => type === 'Applied');
  return (applied?.observedGeneration ?? 0) >= (metadata.generation ?? 0) ? applied?.status : undefined;
}

/**
 * Whether a cluster has confirmed that it keeps the objects of a work. Before that, deleting the work may delete them: OCM's
 * work agent looks at the owners that it has written on the objects.
 */
export function hasLetGo(work: ManifestWork): boolean {
  return isLettingGo(work) && appliedNow(work) === 'True';
}
