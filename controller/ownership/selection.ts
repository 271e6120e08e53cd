import { parseKey } from '../../lib/kube/index.ts';
import type { Placement, PlacementDecision } from '../hub/index.ts';

/**
 * The clusters that a GitOpsCluster selects. `known` is false while they cannot be determined: then no cluster is enrolled
 * and none is detached. With `error` a user has to act; without it OCM is still writing.
 */
export type ClusterSelection =
  | { readonly known: true; readonly clusters: ReadonlySet<string> }
  | { readonly known: false; readonly problem: string; readonly error: boolean };

const schedulingDisabled = 'cluster.open-cluster-management.io/experimental-scheduling-disable';

/**
 * Reads all pages and groups of the decisions of a Placement.
 *
 * OCM creates a page first and writes its status later, and no status when the page is empty from the beginning. The selection
 * is unknown until every page has a status, or is in a group that has no clusters by the Placement's status, and until the sum
 * of the pages equals the number there.
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
  const empty = new Set(
    placement.status?.decisionGroups?.flatMap(({ clusterCount = 0, decisions: pages = [] }) =>
      clusterCount === 0 ? pages : [],
    ),
  );
  if (decisions.some(({ status, metadata }) => status?.decisions === undefined && !empty.has(metadata.name))) {
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

/** A GitOpsCluster that may get clusters. */
export interface Candidate {
  /** `namespace/name`. */
  readonly key: string;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly isDeleted: boolean;
  readonly selection: ClusterSelection;
}

/** The GitOpsCluster that owns or gets a cluster, and the others that select it. */
export interface ClusterOwner {
  readonly owner: string | undefined;
  readonly losers: readonly string[];
}

/**
 * Decides which GitOpsCluster gets a cluster: the oldest one that selects it. A GitOpsCluster with an unknown selection
 * keeps its clusters. None takes a cluster from an owner in another namespace, because their users may be others.
 * @param current key of the current owner, from the labels of the objects made for the cluster
 */
export function decideOwner(
  cluster: string,
  candidates: readonly Candidate[],
  current: string | undefined,
): ClusterOwner {
  const selecting = candidates.filter(({ isDeleted, selection, key }) =>
    isDeleted ? false : selection.known ? selection.clusters.has(cluster) : key === current,
  );
  const holder = selecting.find(({ key }) => key === current);
  const isRival = ({ key }: Candidate) => holder !== undefined && namespaceOf(key) !== namespaceOf(holder.key);
  const [first, ...others] = selecting.sort(
    (a, b) => Number(isRival(a)) - Number(isRival(b)) || compare(a.createdAt, b.createdAt) || compare(a.key, b.key),
  );
  return { owner: first?.key, losers: others.map(({ key }) => key) };
}

const namespaceOf = (key: string) => parseKey(key).namespace;
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
