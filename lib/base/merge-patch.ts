import { isEqual, isMap } from './json-value.ts';

/**
 * A JSON merge patch (RFC 7396) of an object: null removes a key, an object is merged, everything else replaces. A
 * {@link Replacement} says what RFC 7396 cannot; an API server gets such a patch as JSON Patch ({@link jsonPatchOf}).
 */
export type MergePatch = Readonly<Record<string, unknown>>;

/** A value in a {@link MergePatch} that takes the place of what is there as it is, with the nulls in it. */
export class Replacement {
  readonly value: unknown;

  constructor(value: unknown) {
    this.value = value;
  }

  toJSON(): unknown {
    return this.value;
  }
}

/**
 * The patch that turns `from` into `to`, or undefined when they are equal. Arrays are replaced as a whole. Keys whose value is
 * undefined count as missing.
 */
export function mergePatchBetween(from: object | undefined, to: object): MergePatch | undefined {
  const before = new Map<string, unknown>(Object.entries(from ?? {}));
  const after = new Map<string, unknown>(Object.entries(to));
  const patch: [string, unknown][] = [];
  for (const [key, old] of before) {
    if (old !== undefined && after.get(key) === undefined) {
      patch.push([key, null]);
    }
  }
  for (const [key, value] of after) {
    const old = before.get(key);
    if (value !== undefined && !isEqual(old, value)) {
      patch.push([key, isMap(value) && isMap(old) ? mergePatchBetween(old, value) : replacing(value)]);
    }
  }
  return patch.length === 0 ? undefined : Object.fromEntries(patch);
}

/** One patch that does what both do, the second one where they set the same. */
export function mergedPatches(first: MergePatch, second: MergePatch): MergePatch {
  const result = new Map<string, unknown>(Object.entries(first));
  for (const [key, item] of Object.entries(second)) {
    result.set(key, mergedItems(result.get(key), item));
  }
  return Object.fromEntries(result);
}

function mergedItems(first: unknown, second: unknown): unknown {
  if (!isMap(first) || !isMap(second) || second instanceof Replacement) {
    return second;
  }
  return first instanceof Replacement
    ? new Replacement(applyMergePatch(first.value, second))
    : mergedPatches(first, second);
}

/** The value with a patch applied; the value itself is not changed. */
export function applyMergePatch(value: unknown, patch: unknown): unknown {
  if (patch instanceof Replacement) {
    return patch.value;
  }
  if (!isMap(patch)) {
    return patch;
  }
  const result = new Map<string, unknown>(isMap(value) ? Object.entries(value) : []);
  for (const [key, item] of Object.entries(patch)) {
    if (item === null) {
      result.delete(key);
    } else if (item !== undefined) {
      result.set(key, applyMergePatch(result.get(key), item));
    }
  }
  return Object.fromEntries(result);
}

/** API servers drop the nulls of what a merge patch adds, within lists as well. */
function replacing(value: unknown): unknown {
  return holdsNull(value) ? new Replacement(value) : value;
}

function holdsNull(value: unknown): boolean {
  if (typeof value !== 'object') {
    return false;
  }
  return value === null || Object.values(value).some(holdsNull);
}
