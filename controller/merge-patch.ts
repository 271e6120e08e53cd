type Json = Record<string, unknown>;

/**
 * The JSON merge patch (RFC 7386) that brings an object into a desired state. What the desired state does not mention is
 * left alone, except at the places in `whole`: what is there becomes exactly what is desired, or goes.
 * @param whole paths from the top, as lists of keys
 */
export function patchTo(desired: object, live: object, whole: readonly (readonly string[])[]): object {
  const patch: Json = {};
  for (const key of new Set([...Object.keys(desired), ...whole.flatMap(([first]) => first ?? [])])) {
    const wanted = (desired as Json)[key];
    const found = (live as Json)[key];
    const within = whole.flatMap(([first, ...rest]) => (first === key ? [rest] : []));
    if (within.some(({ length }) => length === 0)) {
      if (wanted !== undefined) patch[key] = replacement(wanted, found);
      else if (found !== undefined) patch[key] = null;
    } else if (isObject(wanted) || (wanted === undefined && isObject(found))) {
      const inner = patchTo(isObject(wanted) ? wanted : {}, isObject(found) ? found : {}, within);
      if (wanted !== undefined || Object.keys(inner).length > 0) patch[key] = inner;
    } else if (wanted !== undefined) patch[key] = wanted;
  }
  return patch;
}

/** What a merge patch makes of an object. */
export function patched<T extends object>(object: T, patch: object): T {
  const result = { ...object } as Json;
  for (const [key, value] of Object.entries(patch)) {
    const before = result[key];
    if (value === null) delete result[key];
    else result[key] = isObject(value) ? patched(isObject(before) ? before : {}, value) : value;
  }
  return result as T;
}

/** A patch by which exactly `wanted` is there. Lists are replaced by any merge patch. */
function replacement(wanted: unknown, found: unknown): unknown {
  if (!isObject(wanted) || !isObject(found)) return wanted;
  const gone = Object.keys(found).filter((key) => wanted[key] === undefined);
  const kept = Object.entries(wanted).map(([key, value]) => [key, replacement(value, found[key])]);
  return Object.fromEntries([...gone.map((key) => [key, null]), ...kept]);
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
