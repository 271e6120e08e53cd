import { type KubeObject, resourceType } from '../../lib/kube/index.ts';

/** argoproj.io/v1alpha1 Application, the fields that the suites look at. */
export interface FleetApplication extends KubeObject {
  spec?: {
    project?: string;
    source?: { repoURL?: string; path?: string; targetRevision?: string };
    destination?: { name?: string; server?: string; namespace?: string };
    syncPolicy?: object;
    [field: string]: unknown;
  };
  status?: {
    sync?: { status?: string; revision?: string };
    health?: { status?: string };
    conditions?: { type: string; message: string }[];
    [field: string]: unknown;
  };
  operation?: Record<string, unknown>;
}

/** argoproj.io/v1alpha1 AppProject, the fields that the suites look at. */
export interface FleetAppProject extends KubeObject {
  spec: {
    description?: string;
    sourceRepos?: string[];
    destinations?: { name?: string; server?: string; namespace: string }[];
    clusterResourceWhitelist?: { group: string; kind: string }[];
    sourceNamespaces?: string[];
    syncWindows?: { kind: string; schedule: string; duration: string; clusters?: string[] }[];
    destinationServiceAccounts?: { server: string; namespace?: string; defaultServiceAccount: string }[];
  };
}

/** open-cluster-management.io GitOpsCluster, the fields that the suites look at. */
export interface FleetGitOpsCluster extends KubeObject {
  spec?: Record<string, unknown>;
  status?: {
    conditions?: { type: string; status: string; reason: string; message: string }[];
    clusters?: { selected: number; enrolled: number; available: number; connected: number; failing: number };
    [field: string]: unknown;
  };
}

/** Argo CD's Application. */
export const fleetApplications = resourceType<FleetApplication>({
  group: 'argoproj.io',
  version: 'v1alpha1',
  kind: 'Application',
  plural: 'applications',
  namespaced: true,
});

/** Argo CD's AppProject. */
export const fleetAppProjects = resourceType<FleetAppProject>({
  group: 'argoproj.io',
  version: 'v1alpha1',
  kind: 'AppProject',
  plural: 'appprojects',
  namespaced: true,
});

/** Argo CD's ApplicationSet. */
export const fleetApplicationSets = resourceType({
  group: 'argoproj.io',
  version: 'v1alpha1',
  kind: 'ApplicationSet',
  plural: 'applicationsets',
  namespaced: true,
});

/** The resource that enrolls a fleet. */
export const fleetGitOpsClusters = resourceType<FleetGitOpsCluster>({
  group: 'apps.open-cluster-management.io',
  version: 'v1alpha1',
  kind: 'GitOpsCluster',
  plural: 'gitopsclusters',
  namespaced: true,
});

/** Whether Argo CD reports an Application as deployed and working. */
export function isSyncedAndHealthy(application: FleetApplication | undefined): boolean {
  return application?.status?.sync?.status === 'Synced' && application.status.health?.status === 'Healthy';
}
