import { applyMergePatch } from '../../lib/base/index.ts';

/**
 * Overlays the desired state on an object. Fields that the desired state lacks stay, except at the paths in `whole`: there
 * the result equals the desired state.
 * @param whole paths from the top, as lists of keys
 */
export function overlay<T extends object>(live: T, desired: object, whole: readonly (readonly string[])[]): T {
  const others = whole.reduce<unknown>((rest, path) => without(rest, path), live);
  return applyMergePatch(others, desired) as T;
}

function without(value: unknown, [key = '', ...rest]: readonly string[]): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) {
    return value;
  }
  const { [key]: found, ...others } = value as Record<string, unknown>;
  return rest.length === 0 ? others : { ...others, [key]: without(found, rest) };
}
