import { type KubeObject, keyOf } from '../../lib/kube/index.ts';

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

/**
 * The Applications whose deletion needs the agent of a cluster that is being left, as `namespace/name`: those being
 * deleted, and those of an ApplicationSet, which notices only after a while that the cluster is no longer selected. What
 * nobody deletes is not waited for.
 * @param applications those of the cluster
 * @param isUnselected false when the cluster is left although the Placement selects it: no ApplicationSet will then follow
 */
export function pendingDeletions(applications: readonly HubApplication[], isUnselected: boolean): string[] {
  const isOfSet = ({ metadata }: HubApplication) =>
    metadata.ownerReferences?.some(({ kind, controller }) => kind === 'ApplicationSet' && controller === true) ?? false;
  return applications
    .filter((one) => one.metadata.deletionTimestamp !== undefined || (isUnselected && isOfSet(one)))
    .map(keyOf)
    .sort();
}
