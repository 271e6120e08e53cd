import { wellKnown } from '../../lib/base/index.ts';
import { parseKey } from '../../lib/kube/index.ts';
import { addOnName, keys, labelValue, managedBy } from '../hub/index.ts';

/** Labels and annotations of an object on the hub. */
export interface OwnerMetadata {
  readonly labels: Record<string, string>;
  readonly annotations: Record<string, string>;
}

/**
 * Labels and annotations of every object that is made for a cluster.
 * @param owner the GitOpsCluster as `namespace/name`
 * @param component value of label `app.kubernetes.io/component`
 */
export function ownerMetadata(owner: string, cluster: string, component: string): OwnerMetadata {
  const { namespace = '', name } = parseKey(owner);
  return {
    labels: {
      [wellKnown.managedByLabel]: managedBy,
      [keys.component]: component,
      [keys.ownerName]: labelValue(name),
      [keys.ownerNamespace]: labelValue(namespace),
      [keys.clusterName]: labelValue(cluster),
    },
    annotations: { [keys.owner]: owner },
  };
}

/** As {@link ownerMetadata}, for a ManifestWork; `part` is the part of the add-on. */
export function workMetadata(owner: string, cluster: string, part: string): OwnerMetadata {
  const { labels, annotations } = ownerMetadata(owner, cluster, 'manifestwork');
  return {
    labels: { ...labels, [keys.gitOpsCluster]: 'true', [keys.addOnName]: addOnName, [keys.part]: part },
    annotations,
  };
}
