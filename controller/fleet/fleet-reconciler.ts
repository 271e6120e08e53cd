import { configMaps, finalizerPatch, hasFinalizer, keyOf, parseKey, secrets } from '../../lib/kube/index.ts';
import {
  fieldManager,
  finalizer,
  type GitOpsCluster,
  gitOpsClusters,
  hubNames,
  isForced,
  isRetaining,
  untilRenewal,
} from '../hub/index.ts';
import type { ClusterSummary } from '../ownership/index.ts';
import { rolloutCondition } from '../rollout/index.ts';
import { defaultRolloutStrategy, type Foundation, parseGitOpsCluster, releaseOf } from '../spec/index.ts';
import type { Fleet, FleetDeps, FoundationFindings } from './fleet-deps.ts';
import { FleetEvents } from './fleet-events.ts';
import { nextStatus, writeStatus } from './fleet-status.ts';
import { equipHub, evaluatePlacement, layFoundation, sumUpClusters } from './fleet-steps.ts';
import type { StepOutcome } from './run-step.ts';

/** Reconciles GitOpsClusters: the objects that their clusters share, their status, and their deletion. */
export class FleetReconciler {
  readonly #deps: FleetDeps;
  readonly #events: FleetEvents;
  readonly #statuses = new Map<string, { desired: string; version: string | undefined }>();
  /** The last published foundation of each GitOpsCluster, as text. */
  readonly #published = new Map<string, string>();

  constructor(deps: FleetDeps) {
    this.#deps = deps;
    this.#events = new FleetEvents(deps.events);
  }

  /** Reconciles one GitOpsCluster. It may not exist any more. */
  async reconcile(key: string, signal: AbortSignal): Promise<{ requeueAfterMs: number } | undefined> {
    const { applier, caches, foundations } = this.#deps;
    const { namespace = '', name } = parseKey(key);
    const cached = caches.gitOpsClusters.get({ namespace, name });
    const gitOpsCluster = await applier.current(gitOpsClusters, { namespace, name }, cached, signal);
    if (gitOpsCluster === undefined) {
      foundations.delete(key);
      this.#published.delete(key);
      this.#statuses.delete(key);
      this.#events.forget(key);
      return undefined;
    }
    if (gitOpsCluster.metadata.deletionTimestamp) {
      return this.#finalize(gitOpsCluster, signal);
    }
    if (await this.#ensureFinalizer(gitOpsCluster, signal)) {
      return undefined; // the change leads to another reconcile
    }
    const fleet = this.#read(gitOpsCluster, signal);
    const { outcomes: foundation, found } = await layFoundation(this.#deps, fleet);
    this.#publish(fleet, found);
    const equipment = await equipHub(this.#deps, fleet, found);
    // Read late: clusters may have reported while the steps waited for the server.
    const summary = this.#deps.reports.summaryOf(key, fleet.selection);
    const outcomes = [
      ...foundation,
      ...equipment,
      await evaluatePlacement(this.#deps, fleet, summary),
      ...(await sumUpClusters(fleet, found, summary)),
      ...this.#rollout(key),
    ];
    await this.#writeStatus(fleet, summary, outcomes);
    const errors = outcomes.flatMap(({ error }) => (error === undefined ? [] : [error]));
    if (errors.length > 0) {
      throw errors[0];
    }
    const renewAt = Math.min(...outcomes.map((outcome) => outcome.renewAt ?? Number.POSITIVE_INFINITY));
    return { requeueAfterMs: untilRenewal(renewAt, fleet.now) };
  }

  #read(gitOpsCluster: GitOpsCluster, signal: AbortSignal): Fleet {
    const { caches, now, ownership } = this.#deps;
    const namespace = gitOpsCluster.metadata.namespace ?? '';
    const spec = parseGitOpsCluster(gitOpsCluster);
    return {
      gitOpsCluster,
      key: keyOf(gitOpsCluster),
      namespace,
      spec,
      selection: ownership.selectionOf(gitOpsCluster, spec),
      exposure: caches.serviceExposure(namespace),
      now: now(),
      signal,
    };
  }

  /** Publishes the foundation for the clusters, and wakes all of them if it changed. */
  #publish({ key, spec, namespace, gitOpsCluster }: Fleet, { authority, endpoint }: FoundationFindings): void {
    if (authority === undefined || spec.addOn.problem !== undefined || spec.placement.problem !== undefined) {
      return;
    }
    const { caches, delivery, foundations, ownership, reports, wakeCluster } = this.#deps;
    const foundation: Foundation = {
      key,
      gitOpsCluster,
      namespace,
      placement: spec.placement.value,
      authority: authority.authority,
      authorities: authority.authorities,
      addOn: spec.addOn.value,
      release: releaseOf({ caches, delivery }, namespace, spec.addOn.value),
      rolloutStrategy: spec.addOn.value.rolloutStrategy ?? delivery.rolloutStrategy ?? defaultRolloutStrategy,
      endpoint,
      retains: isRetaining(gitOpsCluster),
    };
    const { gitOpsCluster: _, release, ...content } = foundation;
    const text = JSON.stringify([content, release.version]);
    const isNew = this.#published.get(key) !== text;
    this.#published.set(key, text);
    foundations.set(key, foundation);
    if (!isNew) {
      return;
    }
    // The current selection: a cluster that was selected in the meantime waits for this foundation.
    for (const cluster of reports.summaryOf(key, ownership.selectionOf(gitOpsCluster, spec)).clusters) {
      wakeCluster(cluster);
    }
  }

  /** The state of the rollout, as a step. */
  #rollout(key: string): StepOutcome[] {
    const foundation = this.#deps.foundations.get(key);
    if (foundation === undefined) {
      return [];
    }
    const result = rolloutCondition(this.#deps.rollouts.planOf(foundation), foundation);
    return [{ condition: 'ClustersUpToDate', result }];
  }

  async #writeStatus(fleet: Fleet, summary: ClusterSummary, outcomes: readonly StepOutcome[]): Promise<void> {
    const { gitOpsCluster, key, now, selection, signal } = fleet;
    const { client, logger } = this.#deps;
    const status = nextStatus(gitOpsCluster, outcomes, { summary, selection, now });
    const desired = JSON.stringify([status.clusters, status.conditions]);
    const settled = this.#statuses.get(key);
    // A CRD older than this program drops fields of the status. The same status is not written to the same version again.
    if (settled?.desired === desired && settled.version === gitOpsCluster.metadata.resourceVersion) {
      return;
    }
    const written = await writeStatus({ client, logger, signal }, gitOpsCluster, status);
    const version = (written ?? gitOpsCluster).metadata.resourceVersion;
    this.#statuses.set(key, { desired, version });
    if (written) {
      this.#events.record(gitOpsCluster, status, summary, now);
    }
  }

  async #ensureFinalizer(gitOpsCluster: GitOpsCluster, signal: AbortSignal): Promise<boolean> {
    const change = isRetaining(gitOpsCluster) ? { remove: finalizer } : { add: finalizer };
    const patch = finalizerPatch(gitOpsCluster, change);
    if (patch === undefined) {
      return false;
    }
    await this.#deps.client.mergePatch(gitOpsClusters, gitOpsCluster.metadata, patch, { fieldManager, signal });
    return true;
  }

  /** Finalizes a deleted GitOpsCluster: when its clusters are clean, removes its objects on the hub and its finalizer. */
  async #finalize(gitOpsCluster: GitOpsCluster, signal: AbortSignal): Promise<undefined> {
    if (!hasFinalizer(gitOpsCluster, finalizer)) {
      return undefined;
    }
    const { client } = this.#deps;
    const key = keyOf(gitOpsCluster);
    if (isRetaining(gitOpsCluster)) {
      await this.#ensureFinalizer(gitOpsCluster, signal);
      return undefined;
    }
    if (this.#deps.reports.hasRemains(key, isForced(gitOpsCluster))) {
      const fleet = this.#read(gitOpsCluster, signal);
      const summary = this.#deps.reports.summaryOf(key, fleet.selection);
      const found = { endpoint: undefined, authority: undefined };
      await this.#writeStatus(fleet, summary, await sumUpClusters(fleet, found, summary));
      return undefined;
    }
    const namespace = gitOpsCluster.metadata.namespace ?? '';
    const others = this.#deps.caches.gitOpsClusters
      .list(namespace)
      .filter((other) => other.metadata.uid !== gitOpsCluster.metadata.uid);
    if (others.length === 0) {
      const { principalTls, resourceProxyTls, jwt, authority, authorityTrust } = hubNames;
      for (const name of [principalTls, resourceProxyTls, jwt, authority, authorityTrust]) {
        const secret = this.#deps.caches.ownSecrets.get({ namespace, name });
        if (secret) {
          await this.#deps.applier.remove(secrets, secret, signal);
        }
      }
      const bundle = this.#deps.caches.bundles.get({ namespace, name: hubNames.authorityBundle });
      if (bundle) {
        await this.#deps.applier.remove(configMaps, bundle, signal);
      }
    }
    const patch = finalizerPatch(gitOpsCluster, { remove: finalizer });
    if (patch) {
      await client.mergePatch(gitOpsClusters, gitOpsCluster.metadata, patch, { fieldManager, signal });
    }
    this.#deps.logger.info({ gitOpsCluster: key }, 'GitOpsCluster is cleaned up');
    return undefined;
  }
}
