import { annotations } from './names.ts';
import type { ObjectMeta } from './object.ts';

/** UID of the source's object that this is a copy of; empty when it is none, or when there is no object. */
export function copiedFrom(local: { readonly metadata: ObjectMeta } | undefined): string {
  return local?.metadata.annotations?.[annotations.sourceUid] ?? '';
}
