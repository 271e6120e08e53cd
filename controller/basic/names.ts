import { createHash } from 'node:crypto';

const group = 'apps.open-cluster-management.io';

/** Labels and annotations of the basic pull model: those of argocd-pull-integration, and what goes with a request. */
export const pullKeys = {
  /** Label on Applications and works: the Application is for a managed cluster. */
  pull: `${group}/pull-to-ocm-managed-cluster`,
  /** Annotation on an Application: which cluster. */
  cluster: `${group}/ocm-managed-cluster`,
  /** Annotation on an Application: its namespace on the cluster. */
  appNamespace: `${group}/ocm-managed-cluster-app-namespace`,
  /** Annotations on an Application: the destination that it has on the cluster. */
  destinationName: `${group}/destination-name`,
  destinationServer: `${group}/destination-server`,
  /** Label on works and copies: made by an ApplicationSet; the annotation says which. */
  applicationSet: `${group}/application-set`,
  hostingApplicationSet: `${group}/hosting-applicationset`,
  /** Annotations on a work: the Application that it carries. */
  hubNamespace: `${group}/hub-application-namespace`,
  hubName: `${group}/hub-application-name`,
  /** Argo CD: the application controller of the hub leaves the Application alone. */
  skipReconcile: 'argocd.argoproj.io/skip-reconcile',
  /** Argo CD: asks for a comparison, `normal` or `hard`; the application controller takes it off. */
  refresh: 'argocd.argoproj.io/refresh',
  /** Names the sync operation: an entry of its `info`, and an annotation of the copy that brings it. */
  operation: `${group}/operation`,
  /** Annotation of a copy that brings a refresh: which one. */
  refreshRequest: `${group}/refresh`,
  /** Argo CD: marks a cluster Secret. */
  secretType: 'argocd.argoproj.io/secret-type',
  managedBy: 'app.kubernetes.io/managed-by',
  /** argocd-agent: a cluster Secret of an agent, by its name. */
  agentName: 'argocd-agent.argoproj-labs.io/agent-name',
  /** argocd-agent: `true` keeps an object from its agents. */
  ignoreSync: 'argocd-agent.argoproj-labs.io/ignore-sync',
} as const;

/** Value of `app.kubernetes.io/managed-by` on cluster Secrets; not that of the advanced model, which would remove them. */
export const basicManagedBy = 'argocd-pull-integration-basic';

/** Lease of the original's controllers in this mode: the two never work on one hub at the same time. */
export const leaseName = 'ec810684.open-cluster-management.io';

/** Type of the condition by which an Application says why it does not reach its cluster. */
export const problemCondition = 'PullModelError';

/** The Argo CD cluster Secret of a managed cluster, and the server that it names; nobody dials it. */
export const basicSecretName = (cluster: string) => `${cluster}-secret`;
export const clusterServer = (cluster: string) => `https://${cluster}-control-plane:6443`;

/**
 * OCM's work agent names its record of a work `<64 hexadecimal digits>-<name of the work>`, and a name has at most 253
 * characters.
 */
const maxWorkName = 253 - 65;

/**
 * The name of an Application's work: its own and the first five characters of its UID, as argocd-pull-integration has it;
 * with the whole UID where that name is taken. What would be too long is cut, and told apart by a hash.
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

/** Finalizers with which Argo CD holds an Application until what it deployed is removed, or its hooks have run. */
export function isArgoCdFinalizer(finalizer: string): boolean {
  return /^(resources|(pre|post)-delete)-finalizer\.argocd\.argoproj\.io(\/|$)/.test(finalizer);
}
