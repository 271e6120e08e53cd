import type { ObjectRef } from '../sync/index.ts';

/** Equal for the same place. */
export function placeOf({ namespace, name }: ObjectRef): string {
  return `${namespace}/${name}`;
}
