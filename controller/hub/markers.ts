import { keys } from './names.ts';
import type { ManagedClusterAddOn } from './ocm-kinds.ts';

/** Whether one of the objects has the annotation force-detach. */
export function isForced(...objects: ({ metadata: { annotations?: Record<string, string> } } | undefined)[]): boolean {
  return objects.some((object) => object?.metadata.annotations?.[keys.forceDetach] === 'true');
}

/** Whether clusters keep their objects when their GitOpsCluster is deleted. */
export function isRetaining(object: { metadata: { annotations?: Record<string, string> } } | undefined): boolean {
  return object?.metadata.annotations?.[keys.retain] === 'true';
}

/** Whether an add-on is marked as detaching. */
export function isDetaching(addOn: ManagedClusterAddOn): boolean {
  return addOn.metadata.annotations?.[keys.detaching] === 'true';
}
