import { type KubeObject, type ObjectMeta, resourceType } from '../../lib/kube/index.ts';
import type { ManifestConfig, ManifestWork } from '../hub/index.ts';

/** A sync operation that was requested. */
export interface Operation {
  info?: { name: string; value: string }[];
  [field: string]: unknown;
}

/** A condition of an Argo CD Application. */
export interface ApplicationCondition {
  type: string;
  message: string;
  lastTransitionTime?: string;
}

/** One successful deployment. */
export interface HistoryEntry {
  id: number;
  deployedAt: string;
  revision?: string;
  deployStartedAt?: string;
  source?: unknown;
  sources?: unknown;
}

/** The status fields of an Application that are read or written here. */
export interface PullStatus {
  health?: { status?: string; message?: string; lastTransitionTime?: string };
  sync?: { status: string; revision?: string; [field: string]: unknown };
  operationState?: {
    phase: string;
    startedAt: string;
    operation: Operation;
    finishedAt?: string;
    message?: string;
    syncResult?: { revision: string };
    [field: string]: unknown;
  };
  history?: HistoryEntry[];
  conditions?: ApplicationCondition[];
  [field: string]: unknown;
}

/** An Application of the hub. It has no status subresource. */
export interface PullApplication extends KubeObject {
  spec?: {
    project?: string;
    destination?: { name?: string; server?: string; namespace?: string };
    source?: unknown;
    sources?: unknown;
    [field: string]: unknown;
  };
  operation?: Operation;
  status?: PullStatus;
}

/** The Application as delivered to a managed cluster: without status, except for the phase that terminates its operation. */
export interface Payload extends KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta & { namespace: string };
  spec?: PullApplication['spec'];
  operation?: Operation;
  status?: typeof endingStatus;
}

/** The phase that makes Argo CD terminate a running operation. */
export const terminating = 'Terminating';

/** The status that makes Argo CD terminate the operation of an Application, as its API server writes it. */
export const endingStatus = { operationState: { phase: terminating } } as const;

/** argoproj.io/v1alpha1 Application. */
export const pullApplications = resourceType<PullApplication>({
  group: 'argoproj.io',
  version: 'v1alpha1',
  kind: 'Application',
  plural: 'applications',
  namespaced: true,
});

/** Name of an Application's AppProject. As in Argo CD, none means `default`. */
export function projectOf({ spec }: PullApplication): string {
  return spec?.project || 'default';
}

/** A ManifestWork of the basic pull model. */
export interface PullWork extends ManifestWork {
  spec: Omit<ManifestWork['spec'], 'manifestConfigs'> & { manifestConfigs?: PullConfig[] };
}

/** How the work agent applies the copy. `ignoreFields` is used by this model only. */
export interface PullConfig extends Omit<ManifestConfig, 'updateStrategy'> {
  updateStrategy?: {
    type: 'ServerSideApply';
    serverSideApply: {
      force: boolean;
      ignoreFields: { condition: 'OnSpokeChange' | 'OnSpokePresent'; jsonPaths: string[] }[];
    };
  };
}

/** work.open-cluster-management.io/v1 ManifestWork, with the fields of the basic pull model. */
export const pullWorks = resourceType<PullWork>({
  group: 'work.open-cluster-management.io',
  version: 'v1',
  kind: 'ManifestWork',
  plural: 'manifestworks',
  namespaced: true,
});

/** The Application in a work; undefined without a work or a manifest. */
export function payloadIn(work: PullWork | undefined): Payload | undefined {
  const manifest = work?.spec.workload?.manifests?.[0];
  return manifest?.kind === 'Application' ? (manifest as Payload) : undefined;
}
