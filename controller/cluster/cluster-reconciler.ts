import { isConflict, keyOf, parseKey, secrets } from '../../lib/kube/index.ts';
import { type GitOpsCluster, isDetaching, isRetaining, labelValue, untilRenewal } from '../hub/index.ts';
import { type ClusterReport, currentOwnerOf, healthOf, type Trouble } from '../ownership/index.ts';
import type { Foundation } from '../spec/index.ts';
import type { ClusterDeps } from './cluster-deps.ts';
import { type ClusterChange, clusterSubject, recordClusterEvents, reportClusterChange } from './cluster-events.ts';
import { findTrouble, type TroubleDelays } from './cluster-trouble.ts';
import { detachCluster } from './detach.ts';
import { ensureCluster } from './ensure-cluster.ts';

/** Reconciles managed clusters. */
export class ClusterReconciler {
  readonly #deps: ClusterDeps;
  /** The GitOpsClusters of detached clusters, by cluster. Nothing on the hub names them when a cluster is completely left. */
  readonly #leaving = new Map<string, GitOpsCluster>();

  constructor(deps: ClusterDeps) {
    this.#deps = deps;
  }

  /** Reconciles one cluster: enrolls it, repairs it, or takes the next step of its detachment. */
  async reconcile(cluster: string, signal: AbortSignal): Promise<{ requeueAfterMs: number } | undefined> {
    const { owner } = this.#deps.ownership.ownerOf(cluster);
    const managed = this.#deps.caches.managedClusters.get({ name: cluster });
    const isDeleted = managed?.metadata.deletionTimestamp !== undefined;
    const isSelected = owner !== undefined && managed !== undefined && !isDeleted;
    const grace = this.#deps.ownership.graceOf(cluster, isSelected, this.#deps.now().getTime());
    if (!isSelected && !isDeleted && this.#isRetained(cluster)) {
      this.#report(cluster, undefined);
      return undefined;
    }
    if (!isSelected && currentOwnerOf(cluster, this.#deps.caches) !== undefined) {
      if (grace > 0 && !isDeleted && !this.#isOwnerDeleted(cluster)) {
        return { requeueAfterMs: grace };
      }
      return this.#detach(cluster, signal);
    }
    if (owner === undefined) {
      this.#report(cluster, undefined);
      return undefined;
    }
    const skipped = this.#deps.ownership.reasonToSkip(cluster);
    if (skipped !== undefined) {
      this.#deps.rollouts.forget(cluster);
      this.#deps.renderings.forget(cluster);
      this.#report(cluster, { cluster, owner, skipped, problems: {}, health: healthOf([]) });
      return undefined;
    }
    const foundation = this.#deps.foundations.get(owner);
    if (foundation === undefined) {
      return undefined; // the publication of the foundation triggers another reconcile
    }
    const now = this.#deps.now();
    const result = await ensureCluster(this.#deps, { cluster, foundation, now, signal });
    const { report, before, conditions, errors, renewAt } = result;
    await this.#removeFormerSecrets(cluster, foundation.namespace, signal);
    const known = this.#deps.reports.troubleOf(cluster, owner);
    const conflict = errors.find(isConflict);
    if (conflict) {
      // A conflict with another writer is not a problem: the next reconcile follows at once.
      this.#recordEvents(foundation, { cluster, before, conditions, known, trouble: known });
      throw conflict;
    }
    const { problems } = report;
    const delays = this.#delaysOf(foundation);
    const { trouble, lookAgainMs } = findTrouble({ problems, conditions, known, delays, now });
    this.#recordEvents(foundation, { cluster, before, conditions, known, trouble });
    this.#report(cluster, trouble ? { ...report, trouble } : report);
    if (errors.length > 0) {
      throw errors[0];
    }
    const renewal = untilRenewal(renewAt, now);
    return { requeueAfterMs: Math.min(renewal, lookAgainMs ?? renewal) };
  }

  /** A cluster fails with its progress deadline, if that is over before the usual time. */
  #delaysOf({ rolloutStrategy }: Foundation): TroubleDelays {
    const { troubleDelays } = this.#deps;
    return { ...troubleDelays, slowMs: Math.min(troubleDelays.slowMs, rolloutStrategy.progressDeadlineMs) };
  }

  #recordEvents(
    foundation: Foundation,
    change: Omit<ClusterChange, 'firstReconcile'> & { readonly trouble: Trouble | undefined },
  ): void {
    const { caches, events, fleetEvents, reports, startedAt } = this.#deps;
    const delays = this.#delaysOf(foundation);
    const owner = foundation.key;
    const gitOpsCluster = caches.gitOpsClusters.get(parseKey(owner));
    if (gitOpsCluster === undefined) {
      return;
    }
    const firstReconcile = reports.hasReport(change.cluster, owner) ? undefined : { startedAt, delays };
    recordClusterEvents(events, gitOpsCluster, { ...change, firstReconcile });
    reportClusterChange(fleetEvents, gitOpsCluster, { ...change, firstReconcile });
  }

  /** Whether the cluster keeps its objects: its deleted GitOpsCluster has the annotation for that. */
  #isRetained(cluster: string): boolean {
    return isRetaining(this.#deps.caches.addOns.list(cluster)[0]) && this.#isOwnerDeleted(cluster);
  }

  /** Whether the GitOpsCluster of a cluster is deleted. Its clusters are then detached without a grace period. */
  #isOwnerDeleted(cluster: string): boolean {
    const owner = currentOwnerOf(cluster, this.#deps.caches);
    const found = owner === undefined ? undefined : this.#deps.caches.gitOpsClusters.get(parseKey(owner));
    return found === undefined || found.metadata.deletionTimestamp !== undefined;
  }

  /** Deletes the Secrets of a cluster in namespaces of former GitOpsClusters. */
  async #removeFormerSecrets(cluster: string, namespace: string, signal: AbortSignal): Promise<void> {
    for (const secret of this.#deps.caches.ownSecrets.byIndex('cluster', labelValue(cluster))) {
      if (secret.metadata.namespace !== namespace) {
        await this.#deps.applier.remove(secrets, secret, signal);
      }
    }
  }

  async #detach(cluster: string, signal: AbortSignal): Promise<{ requeueAfterMs: number } | undefined> {
    const owner = currentOwnerOf(cluster, this.#deps.caches) ?? '';
    const { caches, events } = this.#deps;
    const gitOpsCluster = caches.gitOpsClusters.get(parseKey(owner));
    const addOn = caches.addOns.list(cluster)[0];
    if (gitOpsCluster && addOn && !isDetaching(addOn) && !addOn.metadata.deletionTimestamp) {
      events.normal(
        gitOpsCluster,
        'ClusterLeaving',
        gitOpsCluster.metadata.deletionTimestamp
          ? `cluster ${cluster} is being cleaned up: its GitOpsCluster is deleted`
          : `cluster ${cluster} is no longer selected and is being cleaned up`,
      );
    }
    if (gitOpsCluster) {
      this.#leaving.set(cluster, gitOpsCluster);
    }
    this.#deps.rollouts.forget(cluster);
    const progress = await detachCluster(this.#deps, { cluster, now: this.#deps.now(), signal });
    const none = { problems: {}, health: healthOf([]) };
    const report = progress && { cluster, owner, detaching: progress.waitingFor, ...none };
    this.#report(cluster, report);
    if (gitOpsCluster?.metadata.deletionTimestamp) {
      this.#deps.statusChanged(owner);
    }
    return progress?.lookAgainMs === undefined ? undefined : { requeueAfterMs: progress.lookAgainMs };
  }

  #report(cluster: string, report: ClusterReport | undefined): void {
    const changed = this.#deps.reports.report(cluster, report);
    const former = this.#leaving.get(cluster);
    if (former && report?.detaching === undefined) {
      this.#leaving.delete(cluster);
      if (report === undefined) {
        this.#deps.events.normal(former, 'ClusterLeft', `all objects of cluster ${cluster} are removed from the hub`);
        const about = { cluster, gitOpsCluster: keyOf(former) };
        this.#deps.fleetEvents?.report('cluster-left', clusterSubject(cluster), about);
      }
    }
    for (const key of changed) {
      this.#deps.statusChanged(key);
    }
  }
}
