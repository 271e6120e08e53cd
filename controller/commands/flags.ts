import { boolFlag, durationFlag, intFlag, listFlag, stringFlag } from '../../lib/ops/index.ts';

const kube = {
  kubeconfig: stringFlag({
    usage: "file that says how to reach the hub's API server; default: KUBECONFIG, else the pod's own account",
  }),
  kubecontext: stringFlag({ usage: 'context of the kubeconfig' }),
};
const log = {
  'log-level': listFlag({ usage: 'log level: fatal, error, warning, info, debug or trace', default: ['info'] }),
  'log-format': stringFlag({ usage: 'log format: text or json', default: 'text' }),
};
const images = {
  'agent-image': stringFlag({ usage: 'image of the agent on managed clusters', env: 'CONTROLLER_IMAGE' }),
  'argocd-image': stringFlag({
    usage: "image of Argo CD on managed clusters; default: the hub's",
    env: 'ARGOCD_IMAGE',
  }),
  'redis-image': stringFlag({ usage: "image of Redis on managed clusters; default: the hub's", env: 'REDIS_IMAGE' }),
  'operator-image': stringFlag({
    usage:
      'image of argocd-operator on managed clusters, with argoCD: Operator; default: the version that it is made for',
    env: 'OPERATOR_IMAGE',
  }),
  'image-pull-policy': stringFlag({
    usage: 'pull policy of the images on managed clusters',
    default: 'IfNotPresent',
    env: 'IMAGE_PULL_POLICY',
    check: (value) =>
      ['Always', 'IfNotPresent', 'Never'].includes(value) ? undefined : 'must be Always, IfNotPresent or Never',
  }),
};

/** Flags of everything that runs for as long as its process does: names and defaults of the original's manager. */
export const daemonFlags = {
  ...kube,
  ...log,
  'metrics-bind-address': stringFlag({
    usage: 'address of the metrics server, for instance :8080; 0 for none',
    default: '0',
  }),
  'metrics-secure': boolFlag({ usage: 'accepted for compatibility; metrics are plain HTTP', default: true }),
  'health-probe-bind-address': stringFlag({ usage: 'address of the health server', default: ':8081' }),
  'leader-elect': boolFlag({ usage: 'let only one of several controllers work' }),
  'leader-election-namespace': stringFlag({
    usage: "namespace of the leader's Lease; default: the pod's own",
    env: 'POD_NAMESPACE',
  }),
  // The original's are 15, 10 and 2 s and cannot be set; candidates of either kind go by their own.
  'leader-election-lease-duration': durationFlag({
    usage: 'how long others wait for a silent leader',
    default: 8_000,
  }),
  'leader-election-renew-deadline': durationFlag({
    usage: 'how long the leader tries to renew before it gives up; less than the lease duration',
    default: 6_000,
  }),
  'leader-election-retry-period': durationFlag({ usage: 'time between tries to renew, or to lead', default: 1_000 }),
  concurrency: intFlag({
    usage: 'clusters, or Applications of the basic pull model, worked on at the same time',
    default: 16,
    check: (value) => (value > 0 ? undefined : 'must be greater than 0'),
  }),
  'enable-http2': boolFlag({ usage: 'accepted for compatibility', hidden: true }),
};

/** Flags of `gitops-controller controller`, and a few of our own. */
export const controllerFlags = {
  ...daemonFlags,
  ...images,
  mode: stringFlag({
    usage: 'what to run: controller (on the hub), cleanup (on a managed cluster that is left)',
    default: 'controller',
    check: (value) =>
      ['controller', 'cleanup'].includes(value)
        ? undefined
        : `${JSON.stringify(value)} is not supported by this version; only: controller, cleanup`,
  }),
  'argocd-namespace': stringFlag({
    usage: 'with --mode=cleanup, the namespace of Argo CD; otherwise the namespace of the GitOpsCluster counts',
    default: 'argocd',
    env: 'ARGOCD_NAMESPACE',
  }),
  'rollout-strategy': stringFlag({
    usage: "how clusters follow a new version where a GitOpsCluster does not say it: OCM's rolloutStrategy, as JSON",
    default: '{}',
    env: 'ROLLOUT_STRATEGY',
  }),
  'cleanup-namespaces': stringFlag({
    usage: 'with --mode=cleanup, further namespaces that the add-on has used, separated by commas',
    default: '',
    env: 'CLEANUP_NAMESPACES',
  }),
  'cleanup-principal-namespace': stringFlag({
    usage:
      'with --mode=cleanup, the namespace of the principal on the hub: only what the add-on has left behind in these namespaces is cleaned up; default: the cluster is left',
    default: '',
    env: 'CLEANUP_PRINCIPAL_NAMESPACE',
  }),
  'drain-timeout': durationFlag({
    usage: 'how long the agent of a cluster that leaves stays to carry out deletions of Applications; 0 for not at all',
    default: 60_000,
  }),
  'cleanup-timeout': durationFlag({ usage: 'with --mode=cleanup, how long it may take', default: 300_000 }),
};

/** Flags of `gitops-controller render`. */
export const renderFlags = {
  ...kube,
  ...images,
  cluster: stringFlag({ usage: 'name of the managed cluster' }),
  namespace: stringFlag({ usage: 'namespace of the GitOpsCluster', short: 'n', default: 'argocd' }),
  name: stringFlag({ usage: 'name of the GitOpsCluster; default: the only one of the namespace' }),
  gitopscluster: stringFlag({ usage: 'file with a GitOpsCluster to use instead of the one on the hub', short: 'f' }),
  config: stringFlag({ usage: 'file with an AddOnDeploymentConfig to use instead of the one that the hub names' }),
  offline: boolFlag({ usage: 'ask no hub: everything is in --gitopscluster, --config and --crds' }),
  crds: stringFlag({ usage: 'with --offline, file or folder with the CRDs that the hub would have' }),
  manifests: boolFlag({ usage: 'print the objects for the managed cluster instead of the ManifestWorks around them' }),
  'show-secrets': boolFlag({
    usage: 'print the values of Secrets; without a hub, and before a cluster is enrolled, there are none',
  }),
};

/** Flags of `gitops-controller uninstall`. */
export const uninstallFlags = {
  ...kube,
  namespace: stringFlag({ usage: 'namespace of the GitOpsCluster', short: 'n', default: 'argocd' }),
  name: stringFlag({ usage: 'name of the GitOpsCluster', default: 'gitops-cluster' }),
  'keep-clusters': boolFlag({
    usage:
      'delete nothing: let the GitOpsCluster be deleted without its controller, and its clusters keep what they have',
  }),
  timeout: durationFlag({ usage: 'how long to wait until its clusters are cleaned up', default: 300_000 }),
};

/** Flags of `gitops-controller apply-crds`. */
export const applyCrdsFlags = {
  ...kube,
  from: stringFlag({ usage: 'folder with the CRDs as YAML files', default: '/crds' }),
};
