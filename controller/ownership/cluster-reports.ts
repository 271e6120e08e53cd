import { type KubeObject, keyOf, parseKey } from '../../lib/kube/index.ts';
import { healthOf, isDetaching } from '../cluster/cluster-health.ts';
import { currentOwnerOf } from '../cluster/detach.ts';
import { reasonToSkip } from '../cluster/ensure-cluster.ts';
import type { ClusterConcern, ClusterSummary, Trouble } from '../fleet/steps.ts';
import type { Caches } from '../hub/caches.ts';
import { keys } from '../hub/names.ts';
import type { GitOpsCluster } from '../hub/resources.ts';
import type { ClusterHealth, ClusterReport } from '../spec/foundation.ts';
import { type FleetSpec, parseGitOpsCluster } from '../spec/spec.ts';
import type { ClusterCertificates } from '../trust/rotation.ts';
import { type Candidate, type Ownership, ownershipOf, type Selection, selectionOf } from './selection.ts';

/** A cluster that was selected and no longer is must stay so for this long: OCM rewrites decisions page by page. */
const settleMs = 2_000;

/**
 * Who selects what, who has what, and how it goes: worked out of the caches whenever asked, so that there is nothing to
 * keep in step. Only the reports of the clusters' reconciles and the time since when a cluster is unselected are held.
 */
export class Fleets {
  readonly #caches: Caches;
  readonly #settleMs: number;
  readonly #reports = new Map<string, ClusterReport>();
  readonly #unselectedSince = new Map<string, number>();
  readonly #cleanedUp = new Map<string, number>();
  readonly #selections = new WeakMap<
    GitOpsCluster,
    { readonly from: readonly unknown[]; readonly selection: Selection }
  >();
  /** Identity of the hub: the UID of its namespace kube-system. */
  hubId: string | undefined;

  constructor(caches: Caches, options: { settleMs?: number | undefined } = {}) {
    this.#caches = caches;
    this.#settleMs = options.settleMs ?? settleMs;
  }

  /** What a GitOpsCluster selects. Worked out once for the objects as they are: every cluster's reconcile asks. */
  selectionOf(gitOpsCluster: GitOpsCluster, spec?: FleetSpec): Selection {
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
    const selection = selectionOf(reference, this.#caches.placements.get(reference), decisions);
    this.#selections.set(gitOpsCluster, { from, selection });
    return selection;
  }

  /** Who has a cluster, and who would like to. */
  ownershipOf(cluster: string): Ownership {
    return ownershipOf(cluster, this.#candidates(), currentOwnerOf(cluster, this.#caches));
  }

  /**
   * How long a cluster must still be left alone although nobody selects it; 0 when it may be left now. Call it whenever
   * the cluster is looked at: it starts and stops the clock.
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
    return reasonToSkip(found, this.hubId);
  }

  /** Every cluster that is selected or that something of ours is left of. */
  clusters(): Set<string> {
    const all = new Set<string>();
    for (const { selection } of this.#candidates()) {
      if (selection.known) {
        for (const cluster of selection.clusters) {
          all.add(cluster);
        }
      }
    }
    for (const { metadata } of [...this.#caches.addOns.list(), ...this.#caches.works.list()]) {
      if (metadata.annotations?.['apps.open-cluster-management.io/gitopscluster-owner']) {
        all.add(metadata.namespace ?? '');
      }
    }
    for (const { metadata } of this.#caches.ownSecrets.list()) {
      const cluster = metadata.labels?.['apps.open-cluster-management.io/cluster-name'];
      if (cluster) {
        all.add(cluster);
      }
    }
    return all;
  }

  /** Takes note of a cluster's reconcile. Returns the GitOpsClusters whose status that may change. */
  report(cluster: string, report: ClusterReport | undefined): string[] {
    const before = this.#reports.get(cluster);
    if (report) {
      this.#reports.set(cluster, report);
    } else {
      this.#reports.delete(cluster);
    }
    if (before?.leaving !== undefined && report?.leaving === undefined && report?.owner !== before.owner) {
      this.#cleanedUp.set(before.owner, (this.#cleanedUp.get(before.owner) ?? 0) + 1);
    }
    if (JSON.stringify(before) === JSON.stringify(report)) {
      return [];
    }
    return [...new Set([before?.owner, report?.owner].filter((owner) => owner !== undefined))];
  }

  /**
   * Whether anything made for a GitOpsCluster's clusters is left. With `force`, works that only wait for their cluster do
   * not count, nor what another GitOpsCluster is to take over.
   */
  hasRemains(key: string, force: boolean): boolean {
    if (!force) {
      return this.#remains(key).length > 0;
    }
    return this.#remains(key, ({ metadata }) => !metadata.deletionTimestamp).some(
      (one) => this.ownershipOf(clusterOf(one)).owner === undefined,
    );
  }

  #remains(key: string, counts: (work: KubeObject) => boolean = () => true): KubeObject[] {
    const { addOns, works, ownSecrets } = this.#caches;
    const standing = works.byIndex('owner', key).filter(counts);
    return [...standing, ...addOns.byIndex('owner', key), ...ownSecrets.byIndex('owner', key)];
  }

  /** What a GitOpsCluster that goes still waits for, of clusters that another one has from now on. */
  #handovers(key: string): ClusterSummary['leaving'] {
    if (this.#caches.gitOpsClusters.get(parseKey(key))?.metadata.deletionTimestamp === undefined) {
      return [];
    }
    const clusters = [...new Set(this.#remains(key).map(clusterOf))].sort();
    return clusters.flatMap((cluster) => {
      const { owner } = this.ownershipOf(cluster);
      if (owner === undefined || this.#reports.get(cluster)?.leaving !== undefined) {
        return [];
      }
      const { problems } = this.#reports.get(cluster) ?? {};
      const why = problems?.works ?? problems?.addOn ?? problems?.import;
      return [{ cluster, waitingFor: `GitOpsCluster ${owner} must take ${cluster} over${why ? `: ${why}` : ''}` }];
    });
  }

  /** What the certificates of the clusters of all GitOpsClusters of a namespace rest on, as far as it is known. */
  certificatesIn(namespace: string): Map<string, ClusterCertificates | undefined> {
    const found = new Map<string, ClusterCertificates | undefined>();
    for (const one of this.#caches.gitOpsClusters.list(namespace)) {
      if (one.metadata.deletionTimestamp) {
        continue;
      }
      for (const cluster of this.summaryOf(keyOf(one), this.selectionOf(one)).clusters) {
        const report = this.#reports.get(cluster);
        found.set(cluster, report?.owner === keyOf(one) ? report.certificates : undefined);
      }
    }
    return found;
  }

  /** Sums up the clusters of one GitOpsCluster. */
  summaryOf(key: string, selection: Selection): ClusterSummary {
    const candidates = this.#candidates();
    const clusters: string[] = [];
    const skipped: ClusterSummary['skipped'][number][] = [];
    const lost: ClusterSummary['lost'][number][] = [];
    const selected = new Set(selection.known ? selection.clusters : []);
    for (const cluster of this.#retained(key)) {
      selected.add(cluster);
    }
    for (const cluster of [...selected].sort()) {
      const { owner } = ownershipOf(cluster, candidates, currentOwnerOf(cluster, this.#caches));
      if (owner !== key) {
        if (owner !== undefined && selection.known && selection.clusters.has(cluster)) {
          lost.push({ cluster, owner });
        }
        continue;
      }
      const why = this.reasonToSkip(cluster);
      if (why === undefined) {
        clusters.push(cluster);
      } else {
        skipped.push({ cluster, why });
      }
    }
    const reports = clusters.flatMap((cluster) => this.#reportOf(cluster, key) ?? []);
    const of = (concern: ClusterConcern) =>
      reports.flatMap((report) => {
        const why = report.problems[concern];
        return why !== undefined ? [{ cluster: report.cluster, why }] : [];
      });
    const reported = new Set(reports.map(({ cluster }) => cluster));
    // Who was not looked at yet since the controller started fares as the add-on says.
    const health = new Map(clusters.map((cluster) => [cluster, this.#healthOf(cluster)]));
    for (const report of reports) {
      health.set(report.cluster, report.health);
    }
    const names = (test: (health: ClusterHealth) => boolean) =>
      [...health].flatMap(([cluster, one]) => (test(one) ? [cluster] : []));
    const leaving = [...this.#reports.values()].filter(
      (report) => report.owner === key && report.leaving !== undefined,
    );
    return {
      clusters,
      skipped,
      lost,
      pending: clusters.filter((cluster) => !reported.has(cluster)),
      failed: { import: of('import'), works: of('works'), addOn: of('addOn') },
      enrolled: names(({ isEnrolled }) => isEnrolled),
      available: names(({ isAvailable }) => isAvailable),
      connected: names(({ isConnected }) => isConnected),
      failing: clusters
        .flatMap((cluster) => {
          const trouble = this.troubleOf(cluster, key);
          return trouble ? [{ cluster, ...trouble }] : [];
        })
        .sort((a, b) => (a.since === b.since ? compare(a.cluster, b.cluster) : compare(a.since, b.since))),
      leaving: [
        ...leaving.map(({ cluster, leaving: waitingFor = '' }) => ({ cluster, waitingFor })),
        ...this.#handovers(key),
      ],
      unseenLeaving: this.#caches.addOns
        .byIndex('owner', key)
        .filter((addOn) => isDetaching(addOn) && !this.#reports.has(addOn.metadata.namespace ?? ''))
        .map(({ metadata }) => metadata.namespace ?? ''),
      cleanedUp: this.#cleanedUp.get(key) ?? 0,
    };
  }

  /**
   * What is wrong with a cluster of a GitOpsCluster, as far as is known. Right after a start that is what its status
   * still says, so that the times in it stay.
   */
  troubleOf(cluster: string, owner: string): Trouble | undefined {
    const report = this.#reportOf(cluster, owner);
    if (report) {
      return report.trouble;
    }
    const told = this.#caches.gitOpsClusters.get(parseKey(owner))?.status?.clusters;
    const list = typeof told === 'object' && told !== null ? (told.failingClusters ?? []) : [];
    const found = list.find(({ name, step }) => name === cluster && step !== 'PlacementEvaluated');
    if (found === undefined) {
      return undefined;
    }
    const { name: _, ...trouble } = found;
    return trouble;
  }

  /** Whether a cluster was looked at since the controller started, for this GitOpsCluster. */
  hasReport(cluster: string, owner: string): boolean {
    return this.#reportOf(cluster, owner) !== undefined;
  }

  #reportOf(cluster: string, owner: string): ClusterReport | undefined {
    const report = this.#reports.get(cluster);
    return report?.owner === owner ? report : undefined;
  }

  #healthOf(cluster: string): ClusterHealth {
    return healthOf(this.#caches.addOns.list(cluster)[0]?.status?.conditions);
  }

  #retained(key: string): string[] {
    return this.#caches.addOns.byIndex('owner', key).map(({ metadata }) => metadata.namespace ?? '');
  }

  #candidates(): Candidate[] {
    return this.#caches.gitOpsClusters.list().map((one) => ({
      key: keyOf(one),
      createdAt: one.metadata.creationTimestamp ?? '',
      isLeaving: one.metadata.deletionTimestamp !== undefined,
      selection: this.selectionOf(one),
    }));
  }
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

/** Works and add-ons are in the cluster's namespace, Secrets say it. */
function clusterOf({ metadata }: KubeObject): string {
  return metadata.labels?.[keys.clusterName] ?? metadata.namespace ?? '';
}
