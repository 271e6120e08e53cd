import type { Condition, ObjectMeta } from './types.ts';

/**
 * Returns the conditions with one of them set. `lastTransitionTime` moves only when the status changes; when nothing
 * changes at all the same list object is returned, so that callers can compare by identity. The order is kept.
 */
export function setCondition(
  conditions: readonly Condition[] | undefined,
  condition: Omit<Condition, 'lastTransitionTime'>,
  now: Date = new Date(),
): Condition[] {
  const list = conditions ?? [];
  const index = list.findIndex((c) => c.type === condition.type);
  const old = list[index];
  if (
    old &&
    old.status === condition.status &&
    old.reason === condition.reason &&
    old.message === condition.message &&
    old.observedGeneration === condition.observedGeneration
  ) {
    return list as Condition[];
  }
  const lastTransitionTime = old && old.status === condition.status ? old.lastTransitionTime : rfc3339(now);
  const next: Condition = { ...condition, lastTransitionTime };
  return old ? list.with(index, next) : [...list, next];
}

/** The condition of a type. */
export function findCondition(conditions: readonly Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((c) => c.type === type);
}

/** Whether a condition is there and `True`. */
export function isConditionTrue(
  conditions: readonly { type: string; status: string }[] | undefined,
  type: string,
): boolean {
  return conditions?.some((c) => c.type === type && c.status === 'True') ?? false;
}

/** A time in the form of `metav1.Time`: RFC 3339 in UTC, whole seconds. */
export function rfc3339(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, 'Z');
}

/** A time in the form of `metav1.MicroTime`: RFC 3339 in UTC, six decimals. */
export function rfc3339Micro(time: Date): string {
  return `${time.toISOString().slice(0, -1)}000Z`;
}

/** Whether the object carries the finalizer. */
export function hasFinalizer(object: { metadata: ObjectMeta }, finalizer: string): boolean {
  return object.metadata.finalizers?.includes(finalizer) ?? false;
}

/**
 * A merge patch for the metadata that adds or removes one finalizer, or undefined when there is nothing to do. It
 * carries the resourceVersion that was read: lists are replaced whole, so a change by someone else must be a Conflict.
 */
export function finalizerPatch(
  object: { metadata: ObjectMeta },
  change: { add: string } | { remove: string },
): { metadata: { resourceVersion: string | undefined; finalizers: string[] } } | undefined {
  const finalizers = object.metadata.finalizers ?? [];
  const { resourceVersion } = object.metadata;
  if ('add' in change) {
    if (finalizers.includes(change.add)) {
      return undefined;
    }
    return { metadata: { resourceVersion, finalizers: [...finalizers, change.add] } };
  }
  if (!finalizers.includes(change.remove)) {
    return undefined;
  }
  return { metadata: { resourceVersion, finalizers: finalizers.filter((f) => f !== change.remove) } };
}
