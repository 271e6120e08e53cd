import type { JsonPatchOperation } from '../lib/base/index.ts';

// JSON as API servers have it. The product's own functions for it are what is tested.

/**
 * A JSON merge patch (RFC 7396) applied: null removes a key, an object is merged, everything else replaces. API servers take the
 * nulls out of the maps in a list, too.
 */
export function merged(value: unknown, patch: unknown): unknown {
  if (Array.isArray(patch)) {
    return patch.some(isObject) ? patch.map((item) => (isObject(item) ? merged(undefined, item) : item)) : patch;
  }
  if (!isMap(patch)) {
    return patch;
  }
  const result: Record<string, unknown> = isMap(value) ? { ...value } : {};
  for (const [key, item] of Object.entries(patch)) {
    if (item === null) {
      delete result[key];
    } else if (item !== undefined) {
      const next = merged(Object.hasOwn(result, key) ? result[key] : undefined, item);
      Object.defineProperty(result, key, { value: next, enumerable: true, configurable: true, writable: true });
    }
  }
  return result;
}

/** A JSON Patch (RFC 6902) applied, as far as programs use it; undefined: it does not apply to this value. */
export function patched(value: unknown, operations: readonly JsonPatchOperation[]): unknown {
  let result: unknown = value;
  for (const operation of operations) {
    const keys = operation.path.split('/').slice(1);
    result = isObject(result) ? at(result, keys.map(unescaped), operation) : undefined;
  }
  return result;
}

/** The value with the operation done below it. */
function at(value: unknown, [key = '', ...below]: readonly string[], operation: JsonPatchOperation): unknown {
  if (!isMap(value) || ((below.length > 0 || operation.op === 'remove') && !Object.hasOwn(value, key))) {
    return undefined;
  }
  const others = Object.entries(value).filter(([each]) => each !== key);
  if (below.length === 0) {
    return Object.fromEntries(operation.op === 'remove' ? others : [...others, [key, operation.value]]);
  }
  const next = at(value[key], below, operation);
  return next && Object.fromEntries([...others, [key, next]]);
}

function unescaped(key: string): string {
  return key.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** Equal for equal values and no others, whatever the order of their keys. A key without a value is no key. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, item) =>
    isMap(item) ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1))) : item,
  );
}

function isObject(value: unknown): value is object {
  return value !== null && typeof value === 'object';
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return isObject(value) && [Object.prototype, null].includes(Object.getPrototypeOf(value));
}
