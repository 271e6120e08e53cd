import { keyOf } from '../../lib/kube/index.ts';
import { type Caches, type GitOpsCluster, keys, reasonItIsHub } from '../hub/index.ts';
import { type FleetSpec, parseGitOpsCluster } from '../spec/index.ts';
import { currentOwnerOf } from './current-owner.ts';
import { type Candidate, type ClusterOwner, type ClusterSelection, decideOwner, readSelection } from './selection.ts';

/** A cluster that was selected and no longer is must stay so for this long: OCM rewrites decisions page by page. */
const settleMs = 2_000;

/**
 * Which clusters each GitOpsCluster selects, and which GitOpsCluster has a cluster. Everything is computed from the caches
 * on demand, so nothing has to be kept in step; only the time since when a cluster is unselected is held.
 */
export class Ownership {
  readonly #caches: Caches;
  readonly #settleMs: number;
  readonly #unselectedSince = new Map<string, number>();
  readonly #selections = new WeakMap<
    GitOpsCluster,
    { readonly from: readonly unknown[]; readonly selection: ClusterSelection }
  >();
  /** Identity of the hub: the UID of its namespace kube-system. Undefined until it is known, or when it cannot be read. */
  hubId: string | undefined;

  /** @param options `settleMs`: how long a cluster must be unselected before it is detached; default 2 s */
  constructor(caches: Caches, options: { settleMs?: number | undefined } = {}) {
    this.#caches = caches;
    this.#settleMs = options.settleMs ?? settleMs;
  }

  /** What a GitOpsCluster selects. Worked out once for the objects as they are: every cluster's reconcile asks. */
  selectionOf(gitOpsCluster: GitOpsCluster, spec?: FleetSpec): ClusterSelection {
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

  /** The GitOpsCluster that gets a cluster, and the others that select it. */
  ownerOf(cluster: string): ClusterOwner {
    return decideOwner(cluster, this.candidates(), currentOwnerOf(cluster, this.#caches));
  }

  /**
   * How many milliseconds a cluster stays although nobody selects it; 0 when it may be detached now. Every reconcile of the
   * cluster calls it: it starts and stops the clock.
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
    return reasonItIsHub(found, this.hubId);
  }

  /** Every cluster that is selected, or for which an object of ours exists. */
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

  /** All GitOpsClusters with what they select, as {@link decideOwner} compares them. */
  candidates(): Candidate[] {
    return this.#caches.gitOpsClusters.list().map((one) => ({
      key: keyOf(one),
      createdAt: one.metadata.creationTimestamp ?? '',
      isDeleted: one.metadata.deletionTimestamp !== undefined,
      selection: this.selectionOf(one),
    }));
  }
}
