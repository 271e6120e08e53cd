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
  finalizers: absent(z.array(z.string())),
  deletionTimestamp: absent(z.string()),
});

/** The parsed value without keys whose value is undefined, which exact optional properties do not allow. */
export function withoutUndefined<T>(schema: z.ZodType): z.ZodType<T> {
  return schema.transform((value) => prune(value)) as unknown as z.ZodType<T>;
}

function prune(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(prune);
  }
  if (value === null || typeof value !== 'object') {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) => (item === undefined ? [] : [[key, prune(item)]])),
  );
}
