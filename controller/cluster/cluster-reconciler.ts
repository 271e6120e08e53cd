import { isConflict, parseKey, secrets } from '../../lib/kube/index.ts';
import type { Trouble } from '../fleet/steps.ts';
import { labelValue } from '../hub/names.ts';
import type { ClusterReport } from '../spec/foundation.ts';
import { untilRenewal, type World } from '../world.ts';
import { type ClusterContext, ownerMetadataOf } from './cluster-context.ts';
import { type ClusterNews, tellOfCluster } from './cluster-events.ts';
import { healthOf, isDetaching, isRetaining } from './cluster-health.ts';
import { troubleOf } from './cluster-trouble.ts';
import { currentOwnerOf, leaveCluster } from './detach.ts';
import { ensureCluster } from './ensure-cluster.ts';

/** Reconciles clusters. */
export class ClusterReconciler {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** Brings one cluster into line with who has it: enrolls it, repairs it, or takes the next step in leaving it. */
  async reconcile(cluster: string, signal: AbortSignal): Promise<{ requeueAfterMs: number } | undefined> {
    const { owner } = this.#world.fleets.ownershipOf(cluster);
    const managed = this.#world.caches.managedClusters.get({ name: cluster });
    const isGoing = managed?.metadata.deletionTimestamp !== undefined;
    const isSelected = owner !== undefined && managed !== undefined && !isGoing;
    const grace = this.#world.fleets.graceOf(cluster, isSelected, this.#world.now().getTime());
    if (!isSelected && !isGoing && this.#isRetained(cluster)) {
      this.#report(cluster, undefined);
      return undefined;
    }
    if (!isSelected && currentOwnerOf(cluster, this.#world.caches) !== undefined) {
      if (grace > 0 && !isGoing && !this.#isOwnerGoing(cluster)) {
        return { requeueAfterMs: grace };
      }
      return this.#leave(cluster, signal);
    }
    if (owner === undefined) {
      this.#report(cluster, undefined);
      return undefined;
    }
    const skipped = this.#world.fleets.reasonToSkip(cluster);
    if (skipped !== undefined) {
      this.#world.rollouts.forget(cluster);
      this.#world.renderings.forget(cluster);
      this.#report(cluster, { cluster, owner, skipped, problems: {}, health: healthOf([]) });
      return undefined;
    }
    const foundation = this.#world.foundations.get(owner)?.foundation;
    if (foundation === undefined) {
      return undefined; // woken when it is there
    }
    const context: ClusterContext = {
      ...this.#world,
      cluster,
      foundation,
      now: this.#world.now(),
      signal,
      ownerMetadata: ownerMetadataOf(owner, cluster),
      renewAt: Number.POSITIVE_INFINITY,
    };
    const { report, before, conditions, errors } = await ensureCluster(context);
    await this.#removeStrays(cluster, foundation.namespace, signal);
    const known = this.#world.fleets.troubleOf(cluster, owner);
    const conflict = errors.find(isConflict);
    if (conflict) {
      // Somebody else wrote at the same time. That is no trouble: what became of it is found out right away.
      this.#tell(owner, { cluster, before, conditions, known, trouble: known });
      throw conflict;
    }
    const { patience } = this.#world;
    const { problems } = report;
    const { trouble, lookAgainMs } = troubleOf({ problems, conditions, known, patience, now: context.now });
    this.#tell(owner, { cluster, before, conditions, known, trouble });
    this.#report(cluster, trouble ? { ...report, trouble } : report);
    if (errors.length > 0) {
      throw errors[0];
    }
    const renewal = untilRenewal(context.renewAt, context.now);
    return { requeueAfterMs: Math.min(renewal, lookAgainMs ?? renewal) };
  }

  #tell(owner: string, news: Omit<ClusterNews, 'firstLook'> & { readonly trouble: Trouble | undefined }): void {
    const { caches, events, fleets, patience, startedAt } = this.#world;
    const gitOpsCluster = caches.gitOpsClusters.get(parseKey(owner));
    if (gitOpsCluster === undefined) {
      return;
    }
    const firstLook = fleets.hasReport(news.cluster, owner) ? undefined : { startedAt, patience };
    tellOfCluster(events, gitOpsCluster, { ...news, firstLook });
  }

  /** Whether the cluster keeps what it has, because its GitOpsCluster said so before it was deleted. */
  #isRetained(cluster: string): boolean {
    return isRetaining(this.#world.caches.addOns.list(cluster)[0]) && this.#isOwnerGoing(cluster);
  }

  /** A GitOpsCluster that is deleted says clearly that its clusters shall go: there is nothing to wait for. */
  #isOwnerGoing(cluster: string): boolean {
    const owner = currentOwnerOf(cluster, this.#world.caches);
    const found = owner === undefined ? undefined : this.#world.caches.gitOpsClusters.get(parseKey(owner));
    return found === undefined || found.metadata.deletionTimestamp !== undefined;
  }

  /** Secrets of a cluster that moved to a GitOpsCluster in another namespace. */
  async #removeStrays(cluster: string, namespace: string, signal: AbortSignal): Promise<void> {
    for (const secret of this.#world.caches.ownSecrets.byIndex('cluster', labelValue(cluster))) {
      if (secret.metadata.namespace !== namespace) {
        await this.#world.applier.remove(secrets, secret, signal);
      }
    }
  }

  async #leave(cluster: string, signal: AbortSignal): Promise<{ requeueAfterMs: number } | undefined> {
    const owner = currentOwnerOf(cluster, this.#world.caches) ?? '';
    const { caches, events } = this.#world;
    const gitOpsCluster = caches.gitOpsClusters.get(parseKey(owner));
    const addOn = caches.addOns.list(cluster)[0];
    if (gitOpsCluster && addOn && !isDetaching(addOn) && !addOn.metadata.deletionTimestamp) {
      events.normal(
        gitOpsCluster,
        'ClusterLeaving',
        `cluster ${cluster} is no longer selected and is being cleaned up`,
      );
    }
    this.#world.rollouts.forget(cluster);
    const departure = await leaveCluster({ ...this.#world, cluster, now: this.#world.now(), signal });
    const none = { problems: {}, health: healthOf([]) };
    const report = departure && { cluster, owner, leaving: departure.waitingFor, ...none };
    this.#report(cluster, report);
    if (departure === undefined && gitOpsCluster) {
      events.normal(gitOpsCluster, 'ClusterLeft', `nothing is left of what was made for cluster ${cluster}`);
    }
    if (gitOpsCluster?.metadata.deletionTimestamp) {
      this.#world.statusChanged(owner);
    }
    return departure?.lookAgainMs === undefined ? undefined : { requeueAfterMs: departure.lookAgainMs };
  }

  #report(cluster: string, report: ClusterReport | undefined): void {
    const changed = this.#world.fleets.report(cluster, report);
    if (report === undefined && changed.length > 0) {
      this.#world.logger.info({ cluster, gitOpsClusters: changed }, 'nothing of ours is left of the cluster');
    }
    for (const key of changed) {
      this.#world.statusChanged(key);
    }
  }
}
