import { keyOf } from '../../lib/kube/index.ts';
import { type Caches, type GitOpsCluster, keys, reasonItIsHub } from '../hub/index.ts';
import { type FleetSpec, parseGitOpsCluster } from '../spec/index.ts';
import { currentOwnerOf } from './current-owner.ts';
import { type Candidate, type ClusterOwner, type ClusterSelection, decideOwner, readSelection } from './selection.ts';

/** How long a cluster must stay unselected before it is detached, in milliseconds: OCM rewrites decisions page by page. */
const settleMs = 2_000;

/**
 * Determines which clusters each GitOpsCluster selects, and which GitOpsCluster owns a cluster. All is computed from the
 * caches on demand. The only state is since when a cluster has been unselected.
 */
export class Ownership {
  readonly #caches: Caches;
  readonly #settleMs: number;
  readonly #unselectedSince = new Map<string, number>();
  readonly #selections = new WeakMap<
    GitOpsCluster,
    { readonly from: readonly unknown[]; readonly selection: ClusterSelection }
  >();
  /** Identity of the hub: the UID of its namespace kube-system. Undefined until it is read, or when it cannot be read. */
  hubId: string | undefined;

  /** @param options `settleMs`: how long a cluster must be unselected before it is detached; default 2 s */
  constructor(caches: Caches, options: { settleMs?: number | undefined } = {}) {
    this.#caches = caches;
    this.#settleMs = options.settleMs ?? settleMs;
  }

  /** The clusters that a GitOpsCluster selects. The result is cached per object: every cluster's reconcile needs it. */
  selectionOf(gitOpsCluster: GitOpsCluster, spec?: FleetSpec): ClusterSelection {
    const obstacle = this.#caches.obstacleTo(gitOpsCluster);
    if (obstacle !== undefined) {
      // Unknown, not empty: clusters that are enrolled stay as they are.
      return { known: false, error: true, problem: obstacle.message };
    }
    const known = this.#selections.get(gitOpsCluster);
    const placement = known?.from[0] ?? (spec ?? parseGitOpsCluster(gitOpsCluster)).placement;
    const parsed = placement as FleetSpec['placement'];
    if (parsed.problem !== undefined) {
      return { known: false, error: true, problem: parsed.problem };
    }
    const reference = { namespace: gitOpsCluster.metadata.namespace ?? '', name: parsed.value };
    const decisions = this.#caches.decisions.byIndex('placement', keyOf(reference));
    const from = [parsed, this.#caches.placements.get(reference), ...decisions];
    if (known?.from.length === from.length && from.every((one, index) => one === known.from[index])) {
      return known.selection;
    }
    const selection = readSelection(reference, this.#caches.placements.get(reference), decisions);
    this.#selections.set(gitOpsCluster, { from, selection });
    return selection;
  }

  /** The GitOpsCluster that owns or gets a cluster, and the others that select it. */
  ownerOf(cluster: string): ClusterOwner {
    return decideOwner(cluster, this.candidates(), currentOwnerOf(cluster, this.#caches));
  }

  /**
   * The rest of the grace period of an unselected cluster, in milliseconds; 0 when it may be detached now. Every reconcile of
   * the cluster must call it, because it starts and ends the period.
   */
  graceOf(cluster: string, isSelected: boolean, now: number): number {
    if (isSelected) {
      this.#unselectedSince.delete(cluster);
      return 0;
    }
    const since = this.#unselectedSince.get(cluster) ?? now;
    this.#unselectedSince.set(cluster, since);
    return Math.max(0, since + this.#settleMs - now);
  }

  /** Why a cluster is skipped, if it is. */
  reasonToSkip(cluster: string): string | undefined {
    const found = this.#caches.managedClusters.get({ name: cluster });
    if (found === undefined) {
      return `there is no ManagedCluster ${cluster}`;
    }
    if (found.metadata.deletionTimestamp) {
      return `ManagedCluster ${cluster} is being deleted`;
    }
    if (this.#caches.namespaces.get({ name: cluster }) === undefined) {
      // A write would fail. The creation of the namespace triggers another reconcile.
      return `its namespace ${cluster} does not exist yet; OCM creates it for an accepted ManagedCluster`;
    }
    return reasonItIsHub(found, this.hubId);
  }

  /** Every cluster that is selected or for which an object was made. */
  clusters(): Set<string> {
    const all = new Set<string>();
    for (const { selection } of this.candidates()) {
      if (selection.known) {
        for (const cluster of selection.clusters) {
          all.add(cluster);
        }
      }
    }
    for (const { metadata } of [...this.#caches.addOns.list(), ...this.#caches.works.list()]) {
      if (metadata.annotations?.[keys.owner]) {
        all.add(metadata.namespace ?? '');
      }
    }
    for (const { metadata } of this.#caches.ownSecrets.list()) {
      const cluster = metadata.labels?.[keys.clusterName];
      if (cluster) {
        all.add(cluster);
      }
    }
    return all;
  }

  /** All GitOpsClusters with their selections, as input of {@link decideOwner}. */
  candidates(): Candidate[] {
    return this.#caches.gitOpsClusters.list().map((one) => ({
      key: keyOf(one),
      createdAt: one.metadata.creationTimestamp ?? '',
      isDeleted: one.metadata.deletionTimestamp !== undefined,
      selection: this.selectionOf(one),
    }));
  }
}
