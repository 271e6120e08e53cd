import type { ObjectRef } from '../sync/index.ts';

/** Where an object is, `namespace/name`: equal for the same place, and how log lines name it. */
export function placeOf({ namespace, name }: ObjectRef): string {
  return `${namespace}/${name}`;
}

/** The reverse of {@link placeOf}. */
export function refAt(place: string): ObjectRef {
  const [namespace = '', name = ''] = place.split('/');
  return { namespace, name };
}
