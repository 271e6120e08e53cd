import { createHash } from 'node:crypto';

const group = 'apps.open-cluster-management.io';

/** Labels and annotations of the basic pull model: argocd-pull-integration's, and those that carry requests. */
export const pullKeys = {
  /** Label on Applications and works: the Application is to run on a managed cluster. */
  pull: `${group}/pull-to-ocm-managed-cluster`,
  /** Annotation on an Application: name of its ManagedCluster. */
  cluster: `${group}/ocm-managed-cluster`,
  /** Annotation on an Application: its namespace on the managed cluster. */
  appNamespace: `${group}/ocm-managed-cluster-app-namespace`,
  /** Annotations on an Application: its destination on the managed cluster. */
  destinationName: `${group}/destination-name`,
  destinationServer: `${group}/destination-server`,
  /** Label on works and copies: an ApplicationSet made the Application. The annotation names the ApplicationSet. */
  applicationSet: `${group}/application-set`,
  hostingApplicationSet: `${group}/hosting-applicationset`,
  /** Annotations on a work: namespace and name of its Application on the hub. */
  hubNamespace: `${group}/hub-application-namespace`,
  hubName: `${group}/hub-application-name`,
  /** Annotation of Argo CD: requests a refresh, `normal` or `hard`; the application controller removes it. */
  refresh: 'argocd.argoproj.io/refresh',
  /** Id of a sync operation: an entry of its `info`, and an annotation on the copy that carries it. */
  operation: `${group}/operation`,
  /** Annotation on a copy: id of the refresh request that it carries. */
  refreshRequest: `${group}/refresh`,
} as const;

/** Value of `app.kubernetes.io/managed-by` on cluster Secrets. The advanced model deletes Secrets with its own value. */
export const basicManagedBy = 'argocd-pull-integration-basic';

/** Lease that argocd-pull-integration uses in this mode, so that only one of the two runs on a hub. */
export const leaseName = 'ec810684.open-cluster-management.io';

/** Type of the Application condition that reports why the Application cannot be delivered. */
export const problemCondition = 'PullModelError';

/** Name of the Argo CD cluster Secret of a managed cluster. */
export const basicSecretName = (cluster: string) => `${cluster}-secret`;

/** The `server` of such a Secret. Nothing connects to it. */
export const clusterServer = (cluster: string) => `https://${cluster}-control-plane:6443`;

/**
 * OCM's work agent names its AppliedManifestWork `<64 hexadecimal digits>-<name of the work>`, and a name has at most 253
 * characters.
 */
const maxWorkName = 253 - 65;

/**
 * Name of an Application's work, as in argocd-pull-integration: the Application's name and the first five characters of
 * its UID. A name that is too long is cut and made unique by a hash.
 * @param isTaken another Application's work has that name: the whole UID is used
 */
export function pullWorkName(application: { name: string; uid?: string }, isTaken = false): string {
  const { name, uid = '' } = application;
  const suffix = isTaken ? uid : uid.slice(0, 5);
  const full = suffix === '' ? name : `${name}-${suffix}`;
  if (full.length <= maxWorkName) {
    return full;
  }
  const hash = createHash('sha256').update(name).digest('hex').slice(0, 8);
  const tail = `-${hash}-${suffix}`;
  return name.slice(0, maxWorkName - tail.length).replace(/[.-]+$/, '') + tail;
}

/** Whether a finalizer is Argo CD's: it holds an Application until its resources are deleted or its hooks have run. */
export function isArgoCdFinalizer(finalizer: string): boolean {
  return /^(resources|(pre|post)-delete)-finalizer\.argocd\.argoproj\.io(\/|$)/.test(finalizer);
}
