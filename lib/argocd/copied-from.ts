import { annotations } from './names.ts';
import type { Metadata } from './object.ts';

/** UID of the source's object that this is a copy of; empty when it is none, or when there is no object. */
export function copiedFrom(local: { readonly metadata: Metadata } | undefined): string {
  return local?.metadata.annotations?.[annotations.sourceUid] ?? '';
}
