import type { KubeClient, KubeObject, ResourceType } from '../lib/kube/index.ts';

/** An entry of `metadata.managedFields`, as far as it says who wrote how. */
interface FieldOwner {
  readonly manager?: string;
  readonly operation?: 'Apply' | 'Update';
  readonly subresource?: string;
}

/**
 * Makes what a field manager created count as applied by it. Server-side apply takes out only what an apply of the same
 * manager has put in; a created field that is no longer wanted would stay for ever.
 * @returns the object as it is now
 * @throws ApiError Conflict when it was changed meanwhile
 */
export async function ownByApply<T extends KubeObject>(
  client: Pick<KubeClient, 'jsonPatch'>,
  type: ResourceType<T>,
  live: T,
  manager: string,
  signal?: AbortSignal,
): Promise<T> {
  const owners = (live.metadata.managedFields ?? []) as readonly FieldOwner[];
  const own = owners.filter((owner) => owner.manager === manager && !owner.subresource);
  if (own.length === 0 || own.some(({ operation }) => operation === 'Apply')) return live;
  const owned = owners.map((owner) => (own.includes(owner) ? { ...owner, operation: 'Apply' as const } : owner));
  const patch = [
    { op: 'replace' as const, path: '/metadata/managedFields', value: owned },
    { op: 'replace' as const, path: '/metadata/resourceVersion', value: live.metadata.resourceVersion },
  ];
  return client.jsonPatch(type, live.metadata, patch, { fieldManager: manager, signal });
}
