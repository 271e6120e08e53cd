import { z } from 'zod';
import { absent, longList, type Metadata, objectMeta, withoutUndefined } from './object.ts';

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
  metadata: Metadata;
  spec: ApplicationSpec;
  status?: ApplicationStatus;
  operation?: Record<string, unknown>;
  [other: string]: unknown;
}

/** argoproj.io/v1alpha1 AppProject, as far as the rules look into it. */
export interface AppProject {
  apiVersion?: string;
  kind?: string;
  metadata: Metadata;
  spec: AppProjectSpec;
  [other: string]: unknown;
}

/** A sync window of an AppProject, as far as the rules look into it. */
export interface SyncWindow {
  applications?: string[];
  namespaces?: string[];
  clusters?: string[];
  andOperator?: boolean;
  [other: string]: unknown;
}

/** Which service account Argo CD impersonates where, as far as the rules look into it. */
export interface DestinationServiceAccount {
  server: string;
  namespace?: string;
  [other: string]: unknown;
}

/** Argo CD's AppProject spec, as far as the rules look into it. */
export interface AppProjectSpec {
  sourceNamespaces?: string[];
  destinations?: Destination[];
  roles?: unknown[];
  syncWindows?: SyncWindow[];
  destinationServiceAccounts?: DestinationServiceAccount[];
  [other: string]: unknown;
}

const destination = z.looseObject({
  server: absent(z.string()),
  name: absent(z.string()),
  namespace: absent(z.string()),
});

const status = z.looseObject({
  operationState: absent(z.looseObject({ phase: absent(z.string()) })),
  health: absent(z.looseObject({ status: absent(z.string()) })),
  sync: absent(z.looseObject({ status: absent(z.string()) })),
  conditions: absent(longList(z.looseObject({ type: z.string(), message: z.string() }))),
});

/** Parses an Application that came from outside (API server or peer); unknown fields are preserved. */
export const applicationSchema = withoutUndefined<Application>(
  z.looseObject({
    metadata: objectMeta,
    spec: z.looseObject({ project: absent(z.string()), destination: absent(destination) }),
    status: absent(status),
    operation: absent(z.record(z.string(), z.unknown())),
  }),
);

const texts = absent(longList(z.string()));

/** Parses an AppProject that came from outside; unknown fields are preserved. */
export const appProjectSchema = withoutUndefined<AppProject>(
  z.looseObject({
    metadata: objectMeta,
    spec: z.looseObject({
      sourceNamespaces: texts,
      destinations: absent(longList(destination)),
      roles: absent(z.array(z.unknown())),
      syncWindows: absent(
        longList(
          z.looseObject({ applications: texts, namespaces: texts, clusters: texts, andOperator: absent(z.boolean()) }),
        ),
      ),
      destinationServiceAccounts: absent(
        longList(z.looseObject({ server: z.string(), namespace: absent(z.string()) })),
      ),
    }),
  }),
);
