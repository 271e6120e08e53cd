import { ExactInteger } from './exact-json.ts';

/** Whether two JSON values are equal; a key whose value is undefined counts as missing. */
export function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) {
    return true;
  }
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => isEqual(item, b[i]));
  }
  if (a instanceof ExactInteger) {
    return b instanceof ExactInteger && a.text === b.text;
  }
  if (!isMap(a) || !isMap(b)) {
    return false;
  }
  let open = 0;
  for (const key of Object.keys(a)) {
    if (a[key] !== undefined) {
      open++;
      if (!Object.hasOwn(b, key) || !isEqual(a[key], b[key])) {
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

/** Whether a JSON value is an object: a map of values. */
export function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return value !== null && typeof value === 'object' && !Array.isArray(value) && !(value instanceof ExactInteger);
}
