/** A JSON merge patch (RFC 7396) of an object: null removes a key, an object is merged, everything else replaces. */
export type MergePatch = Readonly<Record<string, unknown>>;

/**
 * The JSON merge patch (RFC 7396) that turns `from` into `to`, or undefined when they are equal. Arrays are replaced as
 * a whole. Keys whose value is undefined count as missing.
 */
export function mergePatchBetween(from: object | undefined, to: object): MergePatch | undefined {
  const patch: Record<string, unknown> = {};
  const before = (from ?? {}) as Readonly<Record<string, unknown>>;
  const after = to as Readonly<Record<string, unknown>>;
  for (const key of Object.keys(before)) {
    if (before[key] !== undefined && before[key] !== null && (after[key] === undefined || after[key] === null)) {
      patch[key] = null;
    }
  }
  for (const [key, value] of Object.entries(after)) {
    if (value === undefined || value === null || isEqual(before[key], value)) {
      continue;
    }
    patch[key] = isPlain(value) && isPlain(before[key]) ? mergePatchBetween(before[key], value) : value;
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}

/** The value with a JSON merge patch applied; the value itself is not changed. */
export function applyMergePatch(value: unknown, patch: unknown): unknown {
  if (!isPlain(patch)) {
    return patch;
  }
  const result: Record<string, unknown> = isPlain(value) ? { ...value } : {};
  for (const [key, item] of Object.entries(patch)) {
    if (item === null) {
      delete result[key];
    } else if (item !== undefined) {
      result[key] = applyMergePatch(result[key], item);
    }
  }
  return result;
}

/** Whether two JSON values are equal; a key whose value is undefined counts as missing. */
export function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) {
    return true;
  }
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => isEqual(item, b[i]));
  }
  if (!isPlain(a) || !isPlain(b)) {
    return false;
  }
  let open = 0;
  for (const key of Object.keys(a)) {
    if (a[key] !== undefined) {
      open++;
      if (!isEqual(a[key], b[key])) {
        return false;
      }
    }
  }
  for (const key of Object.keys(b)) {
    if (b[key] !== undefined) {
      open--;
    }
  }
  return open === 0;
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}
