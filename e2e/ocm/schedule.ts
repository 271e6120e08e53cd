import type {
  ClusterSelector,
  LabelSelector,
  ManagedClusterSet,
  ManagedClusterSetBinding,
  OcmManagedCluster,
  OcmPlacement,
  OcmToleration,
  Taint,
} from './types.ts';

/** What OCM's placement controller looks at. */
export interface Candidates {
  clusters: OcmManagedCluster[];
  sets: ManagedClusterSet[];
  bindings: ManagedClusterSetBinding[];
  /** The clusters that the placement selects already; they are preferred, and `NoSelectIfNew` spares them. */
  current: ReadonlySet<string>;
}

/** The clusters that a Placement selects, by name, and why no others. */
export interface Schedule {
  clusters: string[];
  satisfied: boolean;
  reason: string;
  message: string;
}

const clusterSetLabel = 'cluster.open-cluster-management.io/clusterset';

/** Whether labels match a standard label selector; an empty or absent selector matches everything. */
export function matches(selector: LabelSelector | undefined, labels: Record<string, string> = {}): boolean {
  for (const [key, value] of Object.entries(selector?.matchLabels ?? {})) {
    if (labels[key] !== value) {
      return false;
    }
  }
  return (selector?.matchExpressions ?? []).every(({ key, operator, values = [] }) => {
    const value = labels[key];
    if (operator === 'Exists') {
      return value !== undefined;
    }
    if (operator === 'DoesNotExist') {
      return value === undefined;
    }
    const isListed = value !== undefined && values.includes(value);
    return operator === 'In' ? isListed : !isListed;
  });
}

function inSet(cluster: OcmManagedCluster, set: ManagedClusterSet): boolean {
  const selector = set.spec?.clusterSelector;
  if (selector?.selectorType === 'LabelSelector') {
    return matches(selector.labelSelector, cluster.metadata.labels);
  }
  return cluster.metadata.labels?.[clusterSetLabel] === set.metadata.name;
}

/** Whether a cluster has the labels and claims that are asked for; nothing asked for matches everything. */
export function isSelected(cluster: OcmManagedCluster, by: ClusterSelector | undefined): boolean {
  const claims = Object.fromEntries((cluster.status?.clusterClaims ?? []).map(({ name, value }) => [name, value]));
  return matches(by?.labelSelector, cluster.metadata.labels) && matches(by?.claimSelector, claims);
}

function tolerates(toleration: OcmToleration, taint: Taint): boolean {
  if (toleration.effect && toleration.effect !== taint.effect) {
    return false;
  }
  if (toleration.key && toleration.key !== taint.key) {
    return false;
  }
  return toleration.operator === 'Exists' || (toleration.value ?? '') === (taint.value ?? '');
}

function isKeptOut(cluster: OcmManagedCluster, tolerations: OcmToleration[], current: ReadonlySet<string>): boolean {
  return (cluster.spec?.taints ?? []).some((taint) => {
    if (taint.effect === 'PreferNoSelect') {
      return false;
    }
    if (taint.effect === 'NoSelectIfNew' && current.has(cluster.metadata.name)) {
      return false;
    }
    return !tolerations.some((toleration) => tolerates(toleration, taint));
  });
}

/**
 * Selects clusters by the rules of OCM's placement controller: bound cluster sets, predicates, taints,
 * `numberOfClusters`; sorted by name. Left out: scoring, spread policies and CEL selectors.
 */
export function schedule(placement: OcmPlacement, { clusters, sets, bindings, current }: Candidates): Schedule {
  const none = (reason: string, message: string): Schedule => ({ clusters: [], satisfied: false, reason, message });
  const { namespace } = placement.metadata;
  const bound = sets.filter((set) =>
    bindings.some((b) => b.metadata.namespace === namespace && b.metadata.name === set.metadata.name),
  );
  if (bound.length === 0) {
    return none(
      'NoManagedClusterSetBindings',
      `No valid ManagedClusterSetBindings found in placement namespace ${namespace}`,
    );
  }
  const wanted = placement.spec?.clusterSets ?? [];
  const eligible = wanted.length === 0 ? bound : bound.filter((set) => wanted.includes(set.metadata.name));
  if (eligible.length === 0) {
    return none('NoIntersection', `None of ManagedClusterSets [${wanted.join(',')}] is bound to placement namespace`);
  }
  const members = clusters.filter((c) => !c.metadata.deletionTimestamp && eligible.some((set) => inSet(c, set)));
  if (members.length === 0) {
    return none(
      'AllManagedClusterSetsEmpty',
      `All ManagedClusterSets [${eligible.map((set) => set.metadata.name).join(',')}] have no member ManagedCluster`,
    );
  }
  const predicates = placement.spec?.predicates ?? [];
  const tolerations = placement.spec?.tolerations ?? [];
  const fitting = members
    .filter((c) => predicates.length === 0 || predicates.some((p) => isSelected(c, p.requiredClusterSelector)))
    .filter((c) => !isKeptOut(c, tolerations, current))
    .map((c) => c.metadata.name)
    .sort();
  if (fitting.length === 0) {
    return none('NoManagedClusterMatched', 'No ManagedCluster matches any of the cluster predicate');
  }
  const limit = placement.spec?.numberOfClusters ?? fitting.length;
  const kept = [...fitting.filter((c) => current.has(c)), ...fitting.filter((c) => !current.has(c))].slice(0, limit);
  const satisfied = placement.spec?.numberOfClusters === undefined || kept.length >= limit;
  return {
    clusters: kept.sort(),
    satisfied,
    reason: satisfied ? 'AllDecisionsScheduled' : 'NotAllDecisionsScheduled',
    message: satisfied ? 'All cluster decisions scheduled' : `${limit - kept.length} cluster decisions unscheduled`,
  };
}
