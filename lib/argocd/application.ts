import { z } from 'zod';

/** The fields of Kubernetes metadata that the rules read or write; everything else is kept as it came. */
export interface ObjectMeta {
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

/** Where an Application deploys to. */
export interface Destination {
  server?: string;
  name?: string;
  namespace?: string;
  [other: string]: unknown;
}

/** Argo CD's Application spec, as far as the rules look into it. */
export interface ApplicationSpec {
  project?: string;
  destination?: Destination;
  [other: string]: unknown;
}

/** Argo CD's Application status, as far as the rules look into it. */
export interface ApplicationStatus {
  operationState?: { phase?: string; [other: string]: unknown };
  health?: { status?: string; [other: string]: unknown };
  sync?: { status?: string; [other: string]: unknown };
  conditions?: { type: string; message: string; lastTransitionTime?: string }[];
  [other: string]: unknown;
}

/** argoproj.io/v1alpha1 Application. Go peers leave `apiVersion` and `kind` out of their messages. */
export interface Application {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
  spec: ApplicationSpec;
  status?: ApplicationStatus;
  operation?: Record<string, unknown>;
  [other: string]: unknown;
}

/** argoproj.io/v1alpha1 AppProject, as far as the rules look into it. */
export interface AppProject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
  spec: AppProjectSpec;
  [other: string]: unknown;
}

/** Argo CD's AppProject spec, as far as the rules look into it. */
export interface AppProjectSpec {
  sourceNamespaces?: string[];
  destinations?: Destination[];
  roles?: unknown[];
  [other: string]: unknown;
}

// Go peers send absent fields as null or leave them out, depending on the type; null is read as absent.
const absent = <S extends z.ZodType>(schema: S) =>
  z.preprocess((value) => (value === null ? undefined : value), schema.optional());

const strings = z.record(z.string(), z.string());

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

const meta = z.looseObject({
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

const destination = z.looseObject({
  server: absent(z.string()),
  name: absent(z.string()),
  namespace: absent(z.string()),
});

const status = z.looseObject({
  operationState: absent(z.looseObject({ phase: absent(z.string()) })),
  health: absent(z.looseObject({ status: absent(z.string()) })),
  sync: absent(z.looseObject({ status: absent(z.string()) })),
  conditions: absent(z.array(z.looseObject({ type: z.string(), message: z.string() }))),
});

/** Parses an Application that came from outside (API server or peer); unknown fields are preserved. */
export const applicationSchema = withoutUndefined<Application>(
  z.looseObject({
    metadata: meta,
    spec: z.looseObject({ project: absent(z.string()), destination: absent(destination) }),
    status: absent(status),
    operation: absent(z.record(z.string(), z.unknown())),
  }),
);

/** Parses an AppProject that came from outside; unknown fields are preserved. */
export const appProjectSchema = withoutUndefined<AppProject>(
  z.looseObject({
    metadata: meta,
    spec: z.looseObject({
      sourceNamespaces: absent(z.array(z.string())),
      destinations: absent(z.array(destination)),
      roles: absent(z.array(z.unknown())),
    }),
  }),
);

function withoutUndefined<T>(schema: z.ZodType): z.ZodType<T> {
  return schema.transform((value) => prune(value)) as unknown as z.ZodType<T>;
}

/** Removes keys whose value is undefined, which exact optional properties do not allow. */
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
