const reserved =
  /^(placement-name$|([^/]*\.)?(argoproj\.io|argoproj-labs\.io|apps\.open-cluster-management\.io|app\.kubernetes\.io)\/)/;

/**
 * Whether a label of a cluster Secret is not for users to choose: Argo CD, argocd-agent or this project recognises a Secret by
 * it, or Argo CD finds by it what belongs to an Application.
 */
export function isReservedClusterLabel(key: string): boolean {
  return reserved.test(key);
}
