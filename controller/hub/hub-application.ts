import type { KubeObject } from '../../lib/kube/index.ts';

/** An Application of the hub, as far as leaving a cluster is concerned with it. */
export interface HubApplication extends KubeObject {
  spec?: { destination?: { name?: string } };
}

/** Keeps of an Application only what is looked at here: a hub may have very many. */
export function slimApplication({ metadata, spec }: HubApplication): HubApplication {
  const { namespace, name, uid, resourceVersion, deletionTimestamp, ownerReferences } = metadata;
  const cluster = spec?.destination?.name;
  return {
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
      ...(ownerReferences === undefined ? {} : { ownerReferences }),
    },
    ...(cluster === undefined ? {} : { spec: { destination: { name: cluster } } }),
  };
}

/**
 * Clusters whose agent may have an Application: the one that its destination names, with destination-based mapping, and
 * the one that its namespace is named like, without.
 */
export function clustersOf({ metadata, spec }: HubApplication): string[] {
  return [...new Set([spec?.destination?.name, metadata.namespace])].filter((name) => name !== undefined);
}
