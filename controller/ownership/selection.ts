import type { Placement, PlacementDecision } from '../hub/index.ts';

/**
 * The clusters that a GitOpsCluster shall have. While they cannot be determined, `known` is false: no cluster is enrolled and,
 * above all, none is detached. `error` says whether a user has to act; otherwise OCM is still writing.
 */
export type ClusterSelection =
  | { readonly known: true; readonly clusters: ReadonlySet<string> }
  | { readonly known: false; readonly problem: string; readonly error: boolean };

const schedulingDisabled = 'cluster.open-cluster-management.io/experimental-scheduling-disable';

/**
 * Reads the decisions of a Placement, all pages and groups of them.
 *
 * OCM writes them page by page, and a page's status after its creation: until every page has a status and together they
 * are as many as the Placement says, the set is not known.
 * @param decisions those labelled with the Placement's name
 */
export function readSelection(
  reference: { namespace: string; name: string },
  placement: Placement | undefined,
  decisions: readonly PlacementDecision[],
): ClusterSelection {
  const who = `Placement ${reference.namespace}/${reference.name}`;
  if (placement === undefined) {
    return { known: false, error: true, problem: `${who} does not exist` };
  }
  if (placement.metadata.deletionTimestamp) {
    return { known: false, error: true, problem: `${who} is being deleted` };
  }
  if (decisions.length === 0) {
    return { known: false, error: false, problem: `${who} has no decisions yet` };
  }
  if (decisions.some(({ status }) => status?.decisions === undefined)) {
    return { known: false, error: false, problem: `the decisions of ${who} are being written` };
  }
  const clusters = new Set(
    decisions.flatMap(({ status }) => (status?.decisions ?? []).map(({ clusterName }) => clusterName)),
  );
  const announced = placement.status?.numberOfSelectedClusters;
  const isManual = placement.metadata.annotations?.[schedulingDisabled] === 'true';
  if (!isManual && announced !== undefined && announced > clusters.size) {
    return {
      known: false,
      error: false,
      problem: `${who} announces ${announced} clusters, its decisions name ${clusters.size}`,
    };
  }
  return { known: true, clusters };
}

/** A GitOpsCluster as a candidate for clusters. */
export interface Candidate {
  /** `namespace/name`. */
  readonly key: string;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly isDeleted: boolean;
  readonly selection: ClusterSelection;
}

/** The GitOpsCluster that gets a cluster, and the others that select it. */
export interface ClusterOwner {
  readonly owner: string | undefined;
  readonly losers: readonly string[];
}

/**
 * Decides which GitOpsCluster gets a cluster: the oldest one of those that select it. One whose selection is not known keeps
 * the clusters that it has.
 * @param current the GitOpsCluster that has it now, by the labels on what was made for it
 */
export function decideOwner(
  cluster: string,
  candidates: readonly Candidate[],
  current: string | undefined,
): ClusterOwner {
  const [first, ...others] = candidates
    .filter(({ isDeleted, selection, key }) =>
      isDeleted ? false : selection.known ? selection.clusters.has(cluster) : key === current,
    )
    .sort((a, b) => compare(a.createdAt, b.createdAt) || compare(a.key, b.key));
  return { owner: first?.key, losers: others.map(({ key }) => key) };
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
