import { hasFinalizer } from '../../lib/kube/index.ts';
import { finalizer, keys } from './names.ts';
import type { GitOpsCluster } from './ocm-kinds.ts';

/** Where the controller finds principals, and may keep Secrets. */
export interface PrincipalNamespaces {
  /** The namespaces whose GitOpsClusters have a principal there; empty: all. */
  readonly own: readonly string[];
  /** The namespace whose principal serves the GitOpsClusters of all others; undefined: they are not served. */
  readonly shared: string | undefined;
}

/** What was made for the clusters of a GitOpsCluster. */
export interface MadeForClusters {
  /** Whether any of them has an add-on. */
  readonly hasAddOns: () => boolean;
  /** Whether any of them has a Secret in a namespace. */
  readonly hasSecretsIn: (namespace: string) => boolean;
}

/**
 * The namespace of a GitOpsCluster's principal, authority and cluster Secrets. It does not change while the GitOpsCluster
 * has clusters, because another principal would refuse their certificates. Only the shared one is recorded; when the record
 * is lost, for instance by `kubectl replace`, the Secrets show it.
 */
export function principalNamespaceOf(
  gitOpsCluster: Pick<GitOpsCluster, 'metadata'>,
  { own, shared }: PrincipalNamespaces,
  made: MadeForClusters,
): string {
  const { namespace = '', annotations } = gitOpsCluster.metadata;
  // In the shared namespace both are the same. Most GitOpsClusters are there, and their Secrets need not be looked through.
  if (shared === undefined || namespace === shared) {
    return namespace;
  }
  if (annotations?.[keys.principalNamespace] === shared || made.hasSecretsIn(shared)) {
    return shared;
  }
  const isOwn = own.length === 0 || own.includes(namespace);
  return isOwn || hasFinalizer(gitOpsCluster, finalizer) || made.hasAddOns() ? namespace : shared;
}

/**
 * Whether a GitOpsCluster is served by the principal of another namespace. Its users may be others than those of the
 * principal, so it changes nothing there but its own clusters.
 */
export function isGuest({ metadata }: Pick<GitOpsCluster, 'metadata'>, principalNamespace: string): boolean {
  return metadata.namespace !== principalNamespace;
}
