import { type KubeObject, type ObjectMeta, resourceType } from '../../lib/kube/index.ts';
import type { ManifestConfig, ManifestWork } from '../hub/index.ts';

/** An operation that someone asked for. */
export interface Operation {
  info?: { name: string; value: string }[];
  [field: string]: unknown;
}

/** A condition as Argo CD's Applications have it. */
export interface ApplicationCondition {
  type: string;
  message: string;
  lastTransitionTime?: string;
}

/** One deployment that succeeded. */
export interface HistoryEntry {
  id: number;
  deployedAt: string;
  revision?: string;
  deployStartedAt?: string;
  source?: unknown;
  sources?: unknown;
}

/** The state of an Application, as far as it is read or written here. */
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
    destination?: { name?: string; server?: string; namespace?: string };
    source?: unknown;
    sources?: unknown;
    [field: string]: unknown;
  };
  operation?: Operation;
  status?: PullStatus;
}

/** What a managed cluster gets: an Application without status, but for the word that its operation shall end. */
export interface Payload extends KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta & { namespace: string };
  spec?: PullApplication['spec'];
  operation?: Operation;
  status?: typeof endingStatus;
}

/** The phase by which Argo CD is told to break an operation off. */
export const terminating = 'Terminating';

/** Set on an Application whose operation is under way, as Argo CD's API server does it, it ends that operation. */
export const endingStatus = { operationState: { phase: terminating } } as const;

/** argoproj.io/v1alpha1 Application. */
export const pullApplications = resourceType<PullApplication>({
  group: 'argoproj.io',
  version: 'v1alpha1',
  kind: 'Application',
  plural: 'applications',
  namespaced: true,
});

/** A work of the basic pull model. */
export interface PullWork extends ManifestWork {
  spec: Omit<ManifestWork['spec'], 'manifestConfigs'> & { manifestConfigs?: PullConfig[] };
}

/** How the work agent treats the copy: what it ignores is needed here only. */
export interface PullConfig extends Omit<ManifestConfig, 'updateStrategy'> {
  updateStrategy?: {
    type: 'ServerSideApply';
    serverSideApply: {
      force: boolean;
      ignoreFields: { condition: 'OnSpokeChange' | 'OnSpokePresent'; jsonPaths: string[] }[];
    };
  };
}

/** work.open-cluster-management.io/v1 ManifestWork, as it is used here. */
export const pullWorks = resourceType<PullWork>({
  group: 'work.open-cluster-management.io',
  version: 'v1',
  kind: 'ManifestWork',
  plural: 'manifestworks',
  namespaced: true,
});

/** The Application that a work carries. */
export function payloadIn(work: PullWork | undefined): Payload | undefined {
  const manifest = work?.spec.workload?.manifests?.[0];
  return manifest?.kind === 'Application' ? (manifest as Payload) : undefined;
}
