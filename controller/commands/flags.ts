import { isDnsLabel } from '../../lib/base/index.ts';
import { boolFlag, durationFlag, eventSinkFlags, listFlag, stringFlag } from '../../lib/ops/index.ts';
import { daemonFlags, hubFlags } from '../daemon/index.ts';
import { defaultClusterLabels } from '../spec/index.ts';
import { deliveryFlags } from './delivery-flags.ts';

function refuseNonNamespaces(names: readonly string[]): string | undefined {
  const wrong = names.find((name) => !isDnsLabel(name));
  return wrong === undefined ? undefined : `${JSON.stringify(wrong)} is not a namespace`;
}

/** Flags of `gitops-controller controller`: argocd-pull-integration's, and some of our own. */
export const controllerFlags = {
  ...daemonFlags,
  ...deliveryFlags,
  ...eventSinkFlags((name) => ({ env: name })),
  mode: stringFlag({
    usage: 'what to run: controller or basic (on the hub), or cleanup (on a managed cluster that is detached)',
    default: 'controller',
    check: (value) =>
      ['controller', 'cleanup'].includes(value)
        ? undefined
        : `${JSON.stringify(value)} is not supported by this version; it must be one of: controller, cleanup, basic`,
  }),
  'argocd-namespace': stringFlag({
    usage:
      "Argo CD's namespace; with --watch-namespaces, its principal serves the GitOpsClusters of all other namespaces if it is one of these",
    default: 'argocd',
    env: 'ARGOCD_NAMESPACE',
  }),
  'watch-namespaces': listFlag({
    usage:
      'namespaces whose GitOpsClusters have a principal there, separated by commas; the controller then needs no right on Secrets in others, whose GitOpsClusters use the principal in --argocd-namespace; empty: all namespaces',
    check: refuseNonNamespaces,
  }),
  'configure-argocd': listFlag({
    usage:
      "namespaces whose own Argo CD is given the parameters that live access needs (ConfigMap argocd-cmd-params-cm), separated by commas; the controller then needs the right to patch Argo CD's workloads there; elsewhere it changes nothing, and gives back what it has set",
    check: refuseNonNamespaces,
  }),
  'rollout-strategy': stringFlag({
    usage:
      "rollout of a new version to the clusters, for GitOpsClusters without rolloutStrategy: OCM's rolloutStrategy as JSON",
    default: '{}',
    env: 'ROLLOUT_STRATEGY',
  }),
  'cluster-labels': stringFlag({
    usage:
      "labels and claims of ManagedClusters that become labels of Argo CD's cluster Secrets, for GitOpsClusters without clusterLabels: the lists labels and claims as JSON",
    default: JSON.stringify(defaultClusterLabels),
    env: 'CLUSTER_LABELS',
  }),
  'cleanup-namespaces': stringFlag({
    usage: 'with --mode=cleanup: additional namespaces that the add-on has used, separated by commas',
    default: '',
    env: 'CLEANUP_NAMESPACES',
  }),
  'cleanup-principal-namespace': stringFlag({
    usage:
      "with --mode=cleanup: the principal's namespace on the hub, if the cluster stays enrolled and only former namespaces of the add-on are cleaned up; empty: the cluster is detached",
    default: '',
    env: 'CLEANUP_PRINCIPAL_NAMESPACE',
  }),
  'drain-timeout': durationFlag({
    usage:
      'maximum time for which the agent of a detached cluster stays, to finish deletions of Applications; 0: it is removed at once',
    default: 60_000,
  }),
  'cleanup-timeout': durationFlag({ usage: 'with --mode=cleanup: maximum duration', default: 300_000 }),
};

/** Flags of `gitops-controller render`. */
export const renderFlags = {
  ...hubFlags,
  ...deliveryFlags,
  cluster: stringFlag({ usage: 'name of the managed cluster' }),
  namespace: stringFlag({ usage: 'namespace of the GitOpsCluster', short: 'n', default: 'argocd' }),
  'argocd-namespace': stringFlag({
    usage: 'namespace of the principal; default: the one that serves the GitOpsCluster now, else its own one',
  }),
  name: stringFlag({ usage: 'name of the GitOpsCluster; default: the only one of the namespace' }),
  gitopscluster: stringFlag({ usage: 'file with a GitOpsCluster, instead of the one on the hub', short: 'f' }),
  config: stringFlag({ usage: 'file with an AddOnDeploymentConfig, instead of the one that the hub selects' }),
  offline: boolFlag({ usage: 'do not connect to a hub; read only the files of --gitopscluster, --config and --crds' }),
  crds: stringFlag({ usage: 'with --offline: file or directory with the CRDs of the hub' }),
  manifests: boolFlag({
    usage: 'print the objects for the managed cluster instead of the ManifestWorks that contain them',
  }),
  'show-secrets': boolFlag({
    usage: 'print the values of Secrets; they exist only on a hub, for a cluster that is enrolled',
  }),
};

/** Flags of `gitops-controller uninstall`. */
export const uninstallFlags = {
  ...hubFlags,
  namespace: stringFlag({ usage: 'namespace of the GitOpsCluster', short: 'n', default: 'argocd' }),
  name: stringFlag({ usage: 'name of the GitOpsCluster', default: 'gitops-cluster' }),
  'keep-clusters': boolFlag({
    usage:
      'delete nothing: the clusters keep everything, and the GitOpsCluster can later be deleted without the controller',
  }),
  hook: boolFlag({
    env: 'UNINSTALL_HOOK',
    usage:
      'it is the Job of the chart: leave a GitOpsCluster alone that kubectl has applied, because kubectl starts the Job at once',
  }),
  timeout: durationFlag({ usage: 'maximum time to wait until its clusters are detached', default: 300_000 }),
};

/** Flags of `gitops-controller apply-crds`. */
export const applyCrdsFlags = {
  ...hubFlags,
  from: stringFlag({ usage: 'directory with the CRDs as YAML files', default: '/crds' }),
};

/** Flags of `gitops-controller adopt`. */
export const adoptFlags = {
  ...hubFlags,
  namespace: stringFlag({
    usage: "namespace of the hub's Argo CD and the GitOpsClusters",
    short: 'n',
    default: 'argocd',
  }),
  release: stringFlag({
    usage: 'Helm release that gets the objects that both charts have',
    default: 'argocd-agent-addon',
  }),
  'release-namespace': stringFlag({
    usage: 'namespace of that release',
    default: 'open-cluster-management-agent-addon',
  }),
  'dry-run': boolFlag({ usage: 'change nothing: only print the steps' }),
  timeout: durationFlag({ usage: 'maximum time for one wait', default: 180_000 }),
};

/** Flags of `gitops-controller release`. */
export const releaseFlags = {
  ...adoptFlags,
  to: stringFlag({ usage: 'who goes on with the hub: original (argocd-pull-integration)' }),
};
