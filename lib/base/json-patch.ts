import { isMap } from './json-value.ts';
import { applyMergePatch, type MergePatch, Replacement } from './merge-patch.ts';

/** One operation of a JSON Patch (RFC 6902). `add` also replaces what is there. */
export type JsonPatchOperation =
  | { readonly op: 'add'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

/** Whether only a JSON Patch can say what this patch does. */
export function needsJsonPatch(patch: unknown): boolean {
  return patch instanceof Replacement || (isMap(patch) && Object.values(patch).some(needsJsonPatch));
}

/**
 * The JSON Patch (RFC 6902) that does to an object what this patch does. It names only what changes, and lists as a whole. It does
 * not apply to another object that lacks a map on the way, or a key that goes.
 */
export function jsonPatchOf(object: object, patch: MergePatch): readonly JsonPatchOperation[] {
  return operations(object, patch, '');
}

function operations(object: unknown, patch: MergePatch, parent: string): JsonPatchOperation[] {
  const present = new Map<string, unknown>(isMap(object) ? Object.entries(object) : []);
  return Object.entries(patch).flatMap(([key, item]): JsonPatchOperation[] => {
    const path = `${parent}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    const old = present.get(key);
    if (item === undefined) {
      return [];
    }
    if (item === null) {
      return old === undefined ? [] : [{ op: 'remove', path }];
    }
    return isMap(item) && isMap(old) && !(item instanceof Replacement)
      ? operations(old, item, path)
      : [{ op: 'add', path, value: applyMergePatch(undefined, item) }];
  });
}
