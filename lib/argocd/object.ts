import { z } from 'zod';

/** The fields of Kubernetes metadata that the rules read or write; everything else is kept as it came. */
export interface Metadata {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  deletionTimestamp?: string;
  [other: string]: unknown;
}

/** An optional field. Go peers send absent fields as null or leave them out, depending on the type; null is read as absent. */
export const absent = <S extends z.ZodType>(schema: S) =>
  z.preprocess((value) => (value === null ? undefined : value), schema.optional());

/**
 * A list of any length: the size of what it came in bounds it, as with Argo CD. It is checked up to the first item that is
 * not as expected, since each would add to the error.
 */
export const longList = <S extends z.ZodType>(item: S) =>
  z.array(z.unknown()).transform((values, context): z.output<S>[] => {
    const items: z.output<S>[] = [];
    for (const [index, value] of values.entries()) {
      const result = item.safeParse(value);
      if (!result.success) {
        const { path = [], message = '' } = result.error.issues[0] ?? {};
        context.addIssue({ code: 'custom', path: [index, ...path], message });
        return z.NEVER;
      }
      items.push(result.data);
    }
    return items;
  });

/** A map of strings. */
export const strings = z.record(z.string(), z.string());

/** A name that Kubernetes accepts for objects: other ones exist nowhere, and would only confuse logs and paths. */
export const objectName = z
  .string()
  .max(253)
  .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/, 'is no name of an object');

/** A name that Kubernetes accepts for namespaces, or nothing. */
export const namespaceName = z
  .string()
  .max(63)
  .regex(/^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$/, 'is no name of a namespace');

/** A UID or resource version: opaque, short, printable. Nothing stands for "none". */
export const opaqueId = z
  .string()
  .max(128)
  .regex(/^[!-~]*$/, 'is no identifier');

/** Kubernetes metadata that came from outside; unknown fields are preserved. */
export const objectMeta = z.looseObject({
  name: objectName,
  namespace: absent(namespaceName),
  uid: absent(opaqueId),
  resourceVersion: absent(opaqueId),
  generation: absent(z.number()),
  labels: absent(strings),
  annotations: absent(strings),
  finalizers: absent(longList(z.string())),
  deletionTimestamp: absent(z.string()),
});

/** The parsed value without keys whose value is undefined, which exact optional properties do not allow. */
export function withoutUndefined<T>(schema: z.ZodType): z.ZodType<T> {
  return schema.transform((value) => prune(value)) as unknown as z.ZodType<T>;
}

/** Copies only what holds an undefined value: an Application may have a hundred thousand others. */
function prune(value: unknown): unknown {
  if (value === null || typeof value !== 'object') {
    return value;
  }
  if (Array.isArray(value)) {
    const items = value.map(prune);
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  let isPruned = false;
  const entries: [string, unknown][] = [];
  for (const [key, item] of Object.entries(value)) {
    const kept = prune(item);
    isPruned ||= kept === undefined || kept !== item;
    if (kept !== undefined) {
      entries.push([key, kept]);
    }
  }
  return isPruned ? Object.fromEntries(entries) : value;
}
