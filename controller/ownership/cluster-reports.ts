import { type KubeObject, keyOf, parseKey } from '../../lib/kube/index.ts';
import { type Caches, isDetaching, keys } from '../hub/index.ts';
import {
  type ClusterCertificates,
  type ClusterConcern,
  type ClusterHealth,
  type ClusterReport,
  type ClusterSummary,
  healthOf,
  type Trouble,
} from './cluster-report.ts';
import { currentOwnerOf } from './current-owner.ts';
import type { Ownership } from './ownership.ts';
import { type ClusterSelection, decideOwner } from './selection.ts';

/** The last reports of clusters, and the sums that GitOpsClusters show in their status. */
export class ClusterReports {
  readonly #caches: Caches;
  readonly #ownership: Ownership;
  readonly #reports = new Map<string, ClusterReport>();
  readonly #cleanedUp = new Map<string, number>();

  constructor(caches: Caches, ownership: Ownership) {
    this.#caches = caches;
    this.#ownership = ownership;
  }

  /**
   * Records the report of a cluster's reconcile; undefined removes it.
   * @returns keys of the GitOpsClusters whose status may change
   */
  report(cluster: string, report: ClusterReport | undefined): string[] {
    const before = this.#reports.get(cluster);
    if (report) {
      this.#reports.set(cluster, report);
    } else {
      this.#reports.delete(cluster);
    }
    if (before?.detaching !== undefined && report?.detaching === undefined && report?.owner !== before.owner) {
      this.#cleanedUp.set(before.owner, (this.#cleanedUp.get(before.owner) ?? 0) + 1);
    }
    if (JSON.stringify(before) === JSON.stringify(report)) {
      return [];
    }
    return [...new Set([before?.owner, report?.owner].filter((owner) => owner !== undefined))];
  }

  /**
   * Whether any object made for a GitOpsCluster's clusters still exists. With `force`, works that only wait for their cluster
   * and objects that another GitOpsCluster takes over do not count.
   */
  hasRemains(key: string, force: boolean): boolean {
    if (!force) {
      return this.#remains(key).length > 0;
    }
    return this.#remains(key, ({ metadata }) => !metadata.deletionTimestamp).some(
      (one) => this.#ownership.ownerOf(clusterOf(one)).owner === undefined,
    );
  }

  #remains(key: string, counts: (work: KubeObject) => boolean = () => true): KubeObject[] {
    const { addOns, works, ownSecrets } = this.#caches;
    const standing = works.byIndex('owner', key).filter(counts);
    return [...standing, ...addOns.byIndex('owner', key), ...ownSecrets.byIndex('owner', key)];
  }

  /** The clusters of a deleted GitOpsCluster that still wait for another GitOpsCluster to take them over. */
  #handovers(key: string): ClusterSummary['detaching'] {
    if (this.#caches.gitOpsClusters.get(parseKey(key))?.metadata.deletionTimestamp === undefined) {
      return [];
    }
    const clusters = [...new Set(this.#remains(key).map(clusterOf))].sort();
    return clusters.flatMap((cluster) => {
      const { owner } = this.#ownership.ownerOf(cluster);
      if (owner === undefined || this.#reports.get(cluster)?.detaching !== undefined) {
        return [];
      }
      const { problems } = this.#reports.get(cluster) ?? {};
      const why = problems?.works ?? problems?.addOn ?? problems?.import;
      return [{ cluster, waitingFor: `GitOpsCluster ${owner} must take ${cluster} over${why ? `: ${why}` : ''}` }];
    });
  }

  /** The reported certificates of all clusters of a principal, by cluster; undefined for one not reconciled yet. */
  certificatesIn(principalNamespace: string): Map<string, ClusterCertificates | undefined> {
    const found = new Map<string, ClusterCertificates | undefined>();
    for (const one of this.#caches.sharing(principalNamespace)) {
      if (one.metadata.deletionTimestamp) {
        continue;
      }
      for (const cluster of this.summaryOf(keyOf(one), this.#ownership.selectionOf(one)).clusters) {
        const report = this.#reports.get(cluster);
        found.set(cluster, report?.owner === keyOf(one) ? report.certificates : undefined);
      }
    }
    return found;
  }

  /** Sums up the clusters of one GitOpsCluster. */
  summaryOf(key: string, selection: ClusterSelection): ClusterSummary {
    const candidates = this.#ownership.candidates();
    const created = new Map(candidates.map((one) => [one.key, one.createdAt]));
    const clusters: string[] = [];
    const skipped: ClusterSummary['skipped'][number][] = [];
    const lost: ClusterSummary['lost'][number][] = [];
    const selected = new Set(selection.known ? selection.clusters : []);
    for (const cluster of this.#retained(key)) {
      selected.add(cluster);
    }
    for (const cluster of [...selected].sort()) {
      const { owner } = decideOwner(cluster, candidates, currentOwnerOf(cluster, this.#caches));
      if (owner !== key) {
        if (owner !== undefined && selection.known && selection.clusters.has(cluster)) {
          const isYounger = (created.get(owner) ?? '') > (created.get(key) ?? '');
          lost.push({ cluster, owner, ...(isYounger && { isYounger }) });
        }
        continue;
      }
      const why = this.#ownership.reasonToSkip(cluster);
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
    // A cluster not reconciled since the controller started has the health of its add-on.
    const health = new Map(clusters.map((cluster) => [cluster, this.#healthOf(cluster)]));
    for (const report of reports) {
      health.set(report.cluster, report.health);
    }
    const names = (test: (health: ClusterHealth) => boolean) =>
      [...health].flatMap(([cluster, one]) => (test(one) ? [cluster] : []));
    const detaching = [...this.#reports.values()].filter(
      (report) => report.owner === key && report.detaching !== undefined,
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
      detaching: [
        ...detaching.map(({ cluster, detaching: waitingFor = '' }) => ({ cluster, waitingFor })),
        ...this.#handovers(key),
      ],
      unseenDetaching: this.#caches.addOns
        .byIndex('owner', key)
        .filter((addOn) => isDetaching(addOn) && !this.#reports.has(addOn.metadata.namespace ?? ''))
        .map(({ metadata }) => metadata.namespace ?? ''),
      cleanedUp: this.#cleanedUp.get(key) ?? 0,
    };
  }

  /**
   * The known problem of a cluster of a GitOpsCluster. Before the first reconcile after a start it is read from the
   * GitOpsCluster's status, so that its time stays.
   */
  troubleOf(cluster: string, owner: string): Trouble | undefined {
    const report = this.#reportOf(cluster, owner);
    if (report) {
      return report.trouble;
    }
    const reported = this.#caches.gitOpsClusters.get(parseKey(owner))?.status?.clusters;
    const list = typeof reported === 'object' && reported !== null ? (reported.failingClusters ?? []) : [];
    const found = list.find(({ name, step }) => name === cluster && step !== 'PlacementEvaluated');
    if (found === undefined) {
      return undefined;
    }
    const { name: _, ...trouble } = found;
    return trouble;
  }

  /** Whether a cluster was reconciled for this GitOpsCluster since the controller started. */
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
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

/** Works and add-ons are in the cluster's namespace. Secrets have the cluster's name in a label. */
function clusterOf({ metadata }: KubeObject): string {
  return metadata.labels?.[keys.clusterName] ?? metadata.namespace ?? '';
}
