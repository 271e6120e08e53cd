/** Namespaces that OpenShift's own Argo CD and its operators use. */
const openShiftGitOps = /^openshift-(gitops(-|$)|operators$)/;

/**
 * Whether a namespace belongs to Kubernetes, OCM or OpenShift itself. Agent and Argo CD are not installed there: they
 * would be removed or upgraded with it, and their clean-up would touch it. The CRD of GitOpsCluster has the same rule.
 */
export function isSystemNamespace(name: string): boolean {
  return (
    /^(kube-(system|public|node-lease)$|open-cluster-management|openshift)/.test(name) && !openShiftGitOps.test(name)
  );
}

/** What {@link isSystemNamespace} refuses, for messages: `must not be …`. */
export const systemNamespaceText =
  'must not be a namespace of Kubernetes, OCM or OpenShift (kube-system, kube-public, kube-node-lease, open-cluster-management*, openshift* except openshift-gitops*)';
