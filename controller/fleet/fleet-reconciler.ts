import { wellKnown } from '../../lib/base/index.ts';
import { configMaps, finalizerPatch, hasFinalizer, keyOf, parseKey, secrets } from '../../lib/kube/index.ts';
import { RestartRefusedError } from '../argocd/index.ts';
import { resourceProxyAddress } from '../endpoint/index.ts';
import {
  failed,
  fieldManager,
  finalizer,
  type GitOpsCluster,
  gitOpsClusters,
  hubNames,
  isForced,
  isRetaining,
  keys,
  managedBy,
  managedClusterAddOns,
  type NamespaceObstacle,
  untilRenewal,
} from '../hub/index.ts';
import type { ClusterSummary } from '../ownership/index.ts';
import { rolloutCondition } from '../rollout/index.ts';
import { defaultClusterLabels, defaultRolloutStrategy, type Foundation, releaseOf, specOnHub } from '../spec/index.ts';
import type { Fleet, FleetDeps, FoundationFindings } from './fleet-deps.ts';
import { FleetEvents } from './fleet-events.ts';
import { nextStatus, writeStatus } from './fleet-status.ts';
import { equipHub, evaluatePlacement, layFoundation, rbacCondition, sumUpClusters } from './fleet-steps.ts';
import { configureHubArgoCd } from './hub-argo-cd-step.ts';
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
    this.#events = new FleetEvents(deps.events, deps.fleetEvents);
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
    const obstacle = caches.obstacleTo(gitOpsCluster);
    if (obstacle !== undefined) {
      return this.#refuse(gitOpsCluster, obstacle, signal);
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

  /**
   * Reports why nothing is done for a GitOpsCluster, and writes nothing but its status. Clusters that were enrolled before
   * stay as they are.
   */
  async #refuse(
    gitOpsCluster: GitOpsCluster,
    { reason, message }: NamespaceObstacle,
    signal: AbortSignal,
  ): Promise<undefined> {
    const key = keyOf(gitOpsCluster);
    this.#deps.foundations.delete(key);
    this.#published.delete(key);
    if (isRetaining(gitOpsCluster) && hasFinalizer(gitOpsCluster, finalizer)) {
      await this.#retainClusters(key, signal);
      await this.#ensureFinalizer(gitOpsCluster, signal);
      return undefined; // the change leads to another reconcile
    }
    const fleet = this.#read(gitOpsCluster, signal);
    const summary = this.#deps.reports.summaryOf(key, fleet.selection);
    await this.#writeStatus(fleet, summary, [{ condition: rbacCondition, result: failed(message, reason) }]);
    return undefined;
  }

  #read(gitOpsCluster: GitOpsCluster, signal: AbortSignal): Fleet {
    const { caches, delivery, now, ownership } = this.#deps;
    const namespace = caches.principalNamespaceOf(gitOpsCluster);
    const spec = specOnHub({ caches, delivery }, gitOpsCluster);
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
  #publish(
    { key, spec, namespace, gitOpsCluster, exposure }: Fleet,
    { authority, endpoint }: FoundationFindings,
  ): void {
    if (authority === undefined || spec.addOn.problem !== undefined || spec.placement.problem !== undefined) {
      return;
    }
    const { caches, delivery, foundations, ownership, reports, wakeCluster } = this.#deps;
    const release = releaseOf({ caches, delivery }, namespace, spec.addOn.value);
    const foundation: Foundation = {
      key,
      gitOpsCluster,
      namespace,
      placement: spec.placement.value,
      resourceProxy: resourceProxyAddress(exposure.service),
      authority: authority.authority,
      authorities: authority.authorities,
      addOn: spec.addOn.value,
      release: { ...release, version: { ...release.version, ...(endpoint && { endpoint }) } },
      rolloutStrategy: spec.addOn.value.rolloutStrategy ?? delivery.rolloutStrategy ?? defaultRolloutStrategy,
      clusterLabels: spec.addOn.value.clusterLabels ?? delivery.clusterLabels ?? defaultClusterLabels,
      endpoint,
      retains: isRetaining(gitOpsCluster),
    };
    const { gitOpsCluster: _, release: published, ...content } = foundation;
    const text = JSON.stringify([content, published.version]);
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
    const { applier, client, logger } = this.#deps;
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
      // A status of the cache that is older would look like the desired one when a problem is soon over.
      applier.wrote(gitOpsClusters, written);
      this.#events.record(gitOpsCluster, status, summary, now);
    }
  }

  /** Holds a GitOpsCluster until its clusters are cleaned up, and records whose principal serves it. */
  async #ensureFinalizer(gitOpsCluster: GitOpsCluster, signal: AbortSignal): Promise<boolean> {
    const { caches, client } = this.#deps;
    const isLeft = isRetaining(gitOpsCluster);
    const change = isLeft ? { remove: finalizer } : { add: finalizer };
    const { metadata } = finalizerPatch(gitOpsCluster, change) ?? {};
    // Recorded before anything is made for a cluster.
    const { namespace, annotations, resourceVersion } = gitOpsCluster.metadata;
    const principalNamespace = caches.principalNamespaceOf(gitOpsCluster);
    const isRecorded =
      principalNamespace === namespace || annotations?.[keys.principalNamespace] === principalNamespace;
    if (metadata === undefined && isRecorded) {
      return false;
    }
    if (isLeft && metadata !== undefined) {
      await this.#leaveHubArgoCd(gitOpsCluster, signal);
    }
    const record = isRecorded ? {} : { annotations: { [keys.principalNamespace]: principalNamespace } };
    const patch = { metadata: { resourceVersion, ...metadata, ...record } };
    await client.mergePatch(gitOpsClusters, gitOpsCluster.metadata, patch, { fieldManager, signal });
    return true;
  }

  /** Gives back what only this GitOpsCluster needed of the hub's Argo CD. What cannot be given back holds nobody up. */
  async #leaveHubArgoCd(gitOpsCluster: GitOpsCluster, signal: AbortSignal): Promise<void> {
    if (this.#deps.caches.obstacleTo(gitOpsCluster) !== undefined) {
      return;
    }
    const namespace = this.#deps.caches.principalNamespaceOf(gitOpsCluster);
    try {
      await configureHubArgoCd(this.#deps, { gitOpsCluster, namespace, signal });
    } catch (error) {
      if (!(error instanceof RestartRefusedError)) {
        throw error;
      }
      this.#deps.events.warning(gitOpsCluster, 'HubArgoCDNotRestarted', error.message);
    }
  }

  /** Marks the add-ons of a GitOpsCluster that is not served as retained, which the reconcile of its clusters cannot do. */
  async #retainClusters(key: string, signal: AbortSignal): Promise<void> {
    const { caches, client } = this.#deps;
    for (const addOn of caches.addOns.byIndex('owner', key)) {
      if (isRetaining(addOn) && !hasFinalizer(addOn, finalizer)) {
        continue;
      }
      const { metadata } = finalizerPatch(addOn, { remove: finalizer }) ?? {};
      const patch = { metadata: { ...metadata, annotations: { [keys.retain]: 'true' } } };
      await client.mergePatch(managedClusterAddOns, addOn.metadata, patch, { fieldManager, signal });
    }
  }

  /** Finalizes a deleted GitOpsCluster: when its clusters are clean, removes its objects on the hub and its finalizer. */
  async #finalize(gitOpsCluster: GitOpsCluster, signal: AbortSignal): Promise<undefined> {
    if (!hasFinalizer(gitOpsCluster, finalizer)) {
      return undefined;
    }
    const { client } = this.#deps;
    const key = keyOf(gitOpsCluster);
    const namespace = this.#deps.caches.principalNamespaceOf(gitOpsCluster);
    const obstacle = this.#deps.caches.obstacleTo(gitOpsCluster);
    if (isRetaining(gitOpsCluster)) {
      if (obstacle !== undefined) {
        await this.#retainClusters(key, signal);
      }
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
    const others = this.#deps.caches
      .sharing(namespace)
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
    await this.#leaveHubArgoCd(gitOpsCluster, signal);
    const patch = finalizerPatch(gitOpsCluster, { remove: finalizer });
    if (patch) {
      await client.mergePatch(gitOpsClusters, gitOpsCluster.metadata, patch, { fieldManager, signal });
    }
    if (obstacle === undefined) {
      this.#deps.logger.info({ gitOpsCluster: key }, 'GitOpsCluster is cleaned up');
    } else {
      const message = `its clusters are cleaned up; Secrets and ConfigMaps in namespace ${namespace} with the label ${wellKnown.managedByLabel}=${managedBy} may be left, because the controller has no rights there`;
      this.#deps.events.warning(gitOpsCluster, 'SecretsLeft', message);
    }
    return undefined;
  }
}
