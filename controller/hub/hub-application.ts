import type { KubeObject } from '../../lib/kube/index.ts';

/** An Application of the hub, with the fields that detaching a cluster reads. */
export interface HubApplication extends KubeObject {
  spec?: { destination?: { name?: string } };
}

/** Keeps only the fields of {@link HubApplication}: a hub may have very many Applications. */
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
 * Names of the clusters whose agent may own an Application: its destination's name (destination-based mapping) and its
 * namespace.
 */
export function clustersOf({ metadata, spec }: HubApplication): string[] {
  return [...new Set([spec?.destination?.name, metadata.namespace])].filter((name) => name !== undefined);
}
