import { boolFlag, durationFlag, stringFlag } from '../../lib/ops/index.ts';
import { daemonFlags, hubFlags } from '../daemon/index.ts';
import { imageFlags } from './delivery-flags.ts';

/** Flags of `gitops-controller controller`, and a few of our own. */
export const controllerFlags = {
  ...daemonFlags,
  ...imageFlags,
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
  ...hubFlags,
  ...imageFlags,
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
  ...hubFlags,
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
  ...hubFlags,
  from: stringFlag({ usage: 'folder with the CRDs as YAML files', default: '/crds' }),
};
