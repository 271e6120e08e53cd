import { createHash } from 'node:crypto';

/** Name of the add-on in OCM. It cannot change: the principal's authentication expression contains it. */
export const addOnName = 'argocd-agent-addon';

/** Value of `app.kubernetes.io/managed-by` on all objects that the controller makes on the hub. */
export const managedBy = 'argocd-pull-integration';

/** Signer of the client certificates that managed clusters request, as in argocd-pull-integration. */
export const signerName = `open-cluster-management.io/${addOnName}`;

/** Argo CD's ConfigMap of parameters. Its programs read it when they start. */
export const argoCdParamsName = 'argocd-cmd-params-cm';

/** Service of the principal's Redis proxy, in the charts and in argocd-agent's manifests. */
export const redisProxyName = 'argocd-agent-redis-proxy';

/** Field manager of the controller's writes. */
export const fieldManager = 'gitops-controller';

/** Labels and annotations of the add-on and of OCM. Those that other programs share are in `wellKnown`. */
export const keys = {
  component: 'app.kubernetes.io/component',
  /** Label on ManifestWorks of this add-on, as in argocd-pull-integration. */
  gitOpsCluster: 'apps.open-cluster-management.io/gitopscluster',
  ownerName: 'gitopscluster.apps.open-cluster-management.io/name',
  ownerNamespace: 'gitopscluster.apps.open-cluster-management.io/namespace',
  /** Annotation: the GitOpsCluster as `namespace/name`. Labels may hold a shortened name. */
  owner: 'apps.open-cluster-management.io/gitopscluster-owner',
  clusterName: 'apps.open-cluster-management.io/cluster-name',
  /** On a cluster Secret: the labels that come from the ManagedCluster, separated by commas. */
  copiedLabels: 'apps.open-cluster-management.io/copied-labels',
  /** Label on ManifestWorks: `crds`, `argocd`, `agent`, `pre-delete` or `former`. */
  part: 'apps.open-cluster-management.io/argocd-addon-part',
  addOnName: 'open-cluster-management.io/addon-name',
  placement: 'cluster.open-cluster-management.io/placement',
  decisionGroupIndex: 'cluster.open-cluster-management.io/decision-group-index',
  decisionGroupName: 'cluster.open-cluster-management.io/decision-group-name',
  /** On a GitOpsCluster or ManagedClusterAddOn: `true` detaches clusters without waiting for those that do not respond. */
  forceDetach: 'apps.open-cluster-management.io/force-detach',
  /**
   * On a GitOpsCluster: `true` removes our finalizers from it and from its clusters' add-ons. When it is deleted, its
   * clusters keep their objects. The add-ons get the annotation too.
   */
  retain: 'apps.open-cluster-management.io/retain-clusters',
  /** On a GitOpsCluster: the namespace of the principal that serves it, if that is another one. */
  principalNamespace: 'apps.open-cluster-management.io/principal-namespace',
  /** On a ManagedClusterAddOn: the cluster is being detached. */
  detaching: 'apps.open-cluster-management.io/detaching',
  /** On a ManagedClusterAddOn that is detached: until when (RFC 3339) the agent stays to carry out deletions. */
  drainUntil: 'apps.open-cluster-management.io/drain-until',
  /** On a ManagedClusterAddOn: the certificate issued last at the cluster's request, as JSON. */
  issued: 'apps.open-cluster-management.io/issued-certificate',
  /** On a CertificateSigningRequest of OCM's registration agent: name of the cluster. */
  requestCluster: 'open-cluster-management.io/cluster-name',
  /** On Secret argocd-agent-ca or argocd-agent-jwt: any text. A new text requests a new authority or key. */
  rotate: 'apps.open-cluster-management.io/rotate',
  /** On the same Secrets: the last request that was carried out. */
  rotated: 'apps.open-cluster-management.io/rotated',
  /** On Secret argocd-agent-ca-trust: fingerprint of the issuing authority. */
  authority: 'apps.open-cluster-management.io/authority',
  /** On a Secret: since when (RFC 3339) its content is in use. */
  since: 'apps.open-cluster-management.io/since',
  /** On a ManagedClusterAddOn that is detached: the namespaces in its works, separated by commas. */
  namespaces: 'apps.open-cluster-management.io/delivered-namespaces',
  /** On ConfigMap argocd-cmd-params-cm: what the controller has set there, and the values from before, as JSON. */
  configuredParams: 'apps.open-cluster-management.io/configured-params',
  /** On a ManagedClusterAddOn: namespaces that are no longer in its works and are to be cleaned up, separated by commas. */
  formerNamespaces: 'apps.open-cluster-management.io/former-namespaces',
} as const;

/** Finalizer on a GitOpsCluster until its clusters are cleaned up, and on an add-on until its cluster is cleaned up. */
export const finalizer = 'apps.open-cluster-management.io/gitopscluster-cleanup';

/** Names of the objects that the GitOpsClusters of a principal share in its namespace. */
export const hubNames = {
  authority: 'argocd-agent-ca',
  authorityBundle: 'argocd-agent-ca-bundle',
  /** All trusted authorities; former ones until their certificates are no longer in use. The principal reads it. */
  authorityTrust: 'argocd-agent-ca-trust',
  principalTls: 'argocd-agent-principal-tls',
  resourceProxyTls: 'argocd-agent-resource-proxy-tls',
  jwt: 'argocd-agent-jwt',
} as const;

/** Name of the Argo CD cluster Secret of a managed cluster. */
export const agentSecretName = (cluster: string) => `cluster-${cluster}`;

/** Name of the Secret with the client certificate by which Argo CD reaches a cluster through the resource proxy. */
export const clusterClientName = (cluster: string) => `argocd-cluster-client-${cluster}`;

/** Name of the hub's Secret with the generated values of a cluster: the agent's client certificate, Redis' password. */
export const deliveredSecretName = (cluster: string) => `${addOnName}-${cluster}`;

/** Secret with the certificate that the hub delivers to an agent, named as argocd-pull-integration names it on the cluster. */
export const clientSecretName = 'argocd-agent-open-cluster-management.io-argocd-agent-addon-client-cert';

/** Secret into which OCM's registration agent writes the certificate that it requested for an agent. */
export const requestedSecretName = 'argocd-agent-addon-open-cluster-management.io-argocd-agent-addon-client-cert';

/** The work with the clean-up Job of a detached cluster, named as OCM names add-on hooks; `part` is its `keys.part`. */
export const cleanUpWork = { name: `addon-${addOnName}-pre-delete`, part: 'pre-delete' } as const;

/** The work with the clean-up Job for namespaces that the add-on of an enrolled cluster no longer uses. */
export const formerWork = { name: `${addOnName}-former`, part: 'former' } as const;

/** Name of argocd-pull-integration's work with the authority. It has no mark, and would write an old authority back. */
export const originalAuthorityWork = 'argocd-agent-ca-mw';

/** Whether OCM's add-on manager made a work of this add-on from an AddOnTemplate. It numbers them. */
export const isTemplateWork = (name: string) => /^addon-argocd-agent-addon-deploy-\d+$/.test(name);

/** Name of a ManifestWork. The first work of a part has no number. */
export const partWorkName = (part: string, index: number) => `${addOnName}-${part}${index === 0 ? '' : `-${index}`}`;

/** Name of the Lease in which the principal records an agent's connection. */
export const connectionLeaseName = (agent: string) => `argocd-agent-${agent}`.slice(0, 253);

/** A text as a label value: unchanged up to 63 characters, else its start and a hash. */
export function labelValue(text: string): string {
  if (text.length <= 63) {
    return text;
  }
  return `${text.slice(0, 54)}-${createHash('sha256').update(text).digest('hex').slice(0, 8)}`;
}

/** Subject of an agent's client certificate, as OCM's registration agent requests it. */
export function agentSubject(cluster: string): { commonName: string; organizations: string[] } {
  const prefix = `system:open-cluster-management:cluster:${cluster}:addon:${addOnName}`;
  return {
    commonName: `${prefix}:agent:${addOnName}-agent`,
    organizations: [prefix, `system:open-cluster-management:addon:${addOnName}`],
  };
}
