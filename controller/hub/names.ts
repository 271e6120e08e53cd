import { createHash } from 'node:crypto';

/** Name of the add-on everywhere in OCM. The principal's authentication expression contains it: it cannot change. */
export const addOnName = 'argocd-agent-addon';

/** Value of `app.kubernetes.io/managed-by` on everything the controller makes on the hub. */
export const managedBy = 'argocd-pull-integration';

/** Signer of the certificates that clusters ask for: the original's. */
export const signerName = `open-cluster-management.io/${addOnName}`;

/** Field manager of the controller's writes. */
export const fieldManager = 'gitops-controller';

/** Labels and annotations. */
export const keys = {
  component: 'app.kubernetes.io/component',
  /** Marks ManifestWorks of this add-on, as upstream. */
  gitOpsCluster: 'apps.open-cluster-management.io/gitopscluster',
  ownerName: 'gitopscluster.apps.open-cluster-management.io/name',
  ownerNamespace: 'gitopscluster.apps.open-cluster-management.io/namespace',
  /** Annotation: the GitOpsCluster as `namespace/name`, in full. */
  owner: 'apps.open-cluster-management.io/gitopscluster-owner',
  clusterName: 'apps.open-cluster-management.io/cluster-name',
  /** Which of the works it is: crds, argocd or agent. */
  part: 'apps.open-cluster-management.io/argocd-addon-part',
  addOnName: 'open-cluster-management.io/addon-name',
  placement: 'cluster.open-cluster-management.io/placement',
  decisionGroupIndex: 'cluster.open-cluster-management.io/decision-group-index',
  decisionGroupName: 'cluster.open-cluster-management.io/decision-group-name',
  /** On a GitOpsCluster or ManagedClusterAddOn: `true` no longer waits for clusters that do not answer when they leave. */
  forceDetach: 'apps.open-cluster-management.io/force-detach',
  /**
   * On a GitOpsCluster: `true` takes our finalizers off it and off its clusters' add-ons; when it is deleted, its clusters
   * keep what they have. The add-ons carry it too.
   */
  retain: 'apps.open-cluster-management.io/retain-clusters',
  /** On a ManagedClusterAddOn: the cluster is being left. */
  detaching: 'apps.open-cluster-management.io/detaching',
  /** On a ManagedClusterAddOn that is being left: until when (RFC 3339) the agent stays to carry out deletions. */
  drainUntil: 'apps.open-cluster-management.io/drain-until',
  /** On a ManagedClusterAddOn: what is known of the certificate issued last at the cluster's request, as JSON. */
  issued: 'apps.open-cluster-management.io/issued-certificate',
  /** On a CertificateSigningRequest, by OCM's registration agent: the cluster that it is for. */
  requestCluster: 'open-cluster-management.io/cluster-name',
  /** On Secret argocd-agent-ca or argocd-agent-jwt: any text; a new one asks for another authority or key. */
  rotate: 'apps.open-cluster-management.io/rotate',
  /** On the same Secrets: the request that was carried out. */
  rotated: 'apps.open-cluster-management.io/rotated',
  /** On Secret argocd-agent-ca-trust: fingerprint of the authority that issues. */
  authority: 'apps.open-cluster-management.io/authority',
  /** On a Secret: since when (RFC 3339) what is in it is used. */
  since: 'apps.open-cluster-management.io/since',
  /** On a ManagedClusterAddOn that is being left: the namespaces that the works brought, separated by commas. */
  namespaces: 'apps.open-cluster-management.io/delivered-namespaces',
  /** On a ManagedClusterAddOn: namespaces that the works no longer bring, to be cleaned up; separated by commas. */
  formerNamespaces: 'apps.open-cluster-management.io/former-namespaces',
} as const;

/** Holds a GitOpsCluster until its clusters are cleaned up, and the add-on of a cluster until that one is. */
export const finalizer = 'apps.open-cluster-management.io/gitopscluster-cleanup';

/** Names of the hub objects that go with a GitOpsCluster, in its namespace. */
export const hubNames = {
  authority: 'argocd-agent-ca',
  authorityBundle: 'argocd-agent-ca-bundle',
  /** Every authority to trust, former ones included as long as something of them is in use. The principal reads it. */
  authorityTrust: 'argocd-agent-ca-trust',
  principalTls: 'argocd-agent-principal-tls',
  resourceProxyTls: 'argocd-agent-resource-proxy-tls',
  jwt: 'argocd-agent-jwt',
} as const;

/** The Argo CD cluster Secret of a managed cluster. */
export const agentSecretName = (cluster: string) => `cluster-${cluster}`;

/** The client certificate with which Argo CD reaches a managed cluster through the resource proxy. */
export const clusterClientName = (cluster: string) => `argocd-cluster-client-${cluster}`;

/** What was generated for a managed cluster and is delivered to it: the agent's client certificate, Redis' password. */
export const deliveredSecretName = (cluster: string) => `${addOnName}-${cluster}`;

/** The work that cleans a cluster up, named as OCM names those of its add-ons; `keys.part` of it. */
export const cleanUpWork = { name: `addon-${addOnName}-pre-delete`, part: 'pre-delete' } as const;

/** The work that cleans up namespaces of a cluster that stays, and that the add-on has moved away from. */
export const formerWork = { name: `${addOnName}-former`, part: 'former' } as const;

/** Name of a ManifestWork: the first of a part has no number. */
export const partWorkName = (part: string, index: number) => `${addOnName}-${part}${index === 0 ? '' : `-${index}`}`;

/** The principal's record of an agent's connection. */
export const connectionLeaseName = (agent: string) => `argocd-agent-${agent}`.slice(0, 253);

/** A value that fits a label: the text itself, or its start and a hash when it is longer than 63 characters. */
export function labelValue(text: string): string {
  if (text.length <= 63) {
    return text;
  }
  return `${text.slice(0, 54)}-${createHash('sha256').update(text).digest('hex').slice(0, 8)}`;
}

/** Subject of an agent's client certificate, as OCM's registration would request it. */
export function agentSubject(cluster: string): { commonName: string; organizations: string[] } {
  const prefix = `system:open-cluster-management:cluster:${cluster}:addon:${addOnName}`;
  return {
    commonName: `${prefix}:agent:${addOnName}-agent`,
    organizations: [prefix, `system:open-cluster-management:addon:${addOnName}`],
  };
}
