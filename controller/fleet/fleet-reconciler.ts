import { KeyedMutex } from '../../lib/base/index.ts';
import { configMaps, finalizerPatch, hasFinalizer, keyOf, parseKey, secrets } from '../../lib/kube/index.ts';
import { isForced, isRetaining } from '../cluster/cluster-health.ts';
import { fieldManager, finalizer, hubNames } from '../hub/names.ts';
import { type GitOpsCluster, gitOpsClusters } from '../hub/resources.ts';
import { sayRollout } from '../rollout/rollout-conditions.ts';
import { defaultRolloutStrategy } from '../spec/delivery-settings.ts';
import type { Foundation } from '../spec/foundation.ts';
import { releaseOf } from '../spec/release.ts';
import { parseGitOpsCluster } from '../spec/spec.ts';
import { untilRenewal, type World } from '../world.ts';
import { FleetEvents } from './fleet-events.ts';
import { nextStatus, writeStatus } from './fleet-status.ts';
import { foundationSteps, type Outcome, remainingSteps, runSteps } from './fleet-steps.ts';
import type { ClusterSummary, StepContext } from './steps.ts';

/** Reconciles GitOpsClusters: what their clusters have in common, their status, and their end. */
export class FleetReconciler {
  readonly #world: World;
  readonly #turns = new KeyedMutex();
  readonly #told: FleetEvents;
  readonly #statuses = new Map<string, { wanted: string; version: string | undefined }>();

  constructor(world: World) {
    this.#world = world;
    this.#told = new FleetEvents(world.events);
  }

  /** Brings everything that is common to a fleet into line, and its status. */
  async reconcile(key: string, signal: AbortSignal): Promise<{ requeueAfterMs: number } | undefined> {
    const { namespace = '', name } = parseKey(key);
    const gitOpsCluster = await this.#world.applier.current(
      gitOpsClusters,
      { namespace, name },
      this.#world.caches.gitOpsClusters.get({ namespace, name }),
      signal,
    );
    if (gitOpsCluster === undefined) {
      this.#world.foundations.delete(key);
      this.#statuses.delete(key);
      this.#told.forget(key);
      return undefined;
    }
    if (gitOpsCluster.metadata.deletionTimestamp) {
      return this.#finalize(gitOpsCluster, signal);
    }
    if (await this.#ensureFinalizer(gitOpsCluster, signal)) {
      return undefined; // comes again with the change
    }
    const context = this.#stepContext(gitOpsCluster, signal);
    const foundation = await runSteps(foundationSteps, context);
    this.#publish(context);
    const outcomes = [...foundation, ...(await runSteps(remainingSteps, context)), ...this.#rollout(key)];
    await this.#writeStatus(context, gitOpsCluster, outcomes);
    const errors = outcomes.flatMap(({ error }) => (error === undefined ? [] : [error]));
    if (errors.length > 0) {
      throw errors[0];
    }
    return { requeueAfterMs: untilRenewal(context.renewAt, context.now) };
  }

  #stepContext(gitOpsCluster: GitOpsCluster, signal: AbortSignal): StepContext {
    const { client, logger } = this.#world;
    const namespace = gitOpsCluster.metadata.namespace ?? '';
    const spec = parseGitOpsCluster(gitOpsCluster);
    const selection = this.#world.fleets.selectionOf(gitOpsCluster, spec);
    const key = keyOf(gitOpsCluster);
    const context: Omit<StepContext, 'clusters'> = {
      gitOpsCluster,
      key,
      namespace,
      spec,
      selection,
      caches: this.#world.caches,
      client,
      applier: this.#world.applier,
      logger,
      events: this.#world.events,
      now: this.#world.now(),
      signal,
      surroundings: this.#world.caches.surroundings(namespace),
      renewAt: Number.POSITIVE_INFINITY,
      endpoint: undefined,
      authority: undefined,
      authorities: undefined,
      rotation: undefined,
      clusterCertificates: () => this.#world.fleets.certificatesIn(namespace),
      inTurn: (what, work) => this.#turns.run(what, work),
    };
    // Summed up once, when a step asks for it: by then others have waited for the server and clusters may have reported.
    const { fleets } = this.#world;
    let summary: ClusterSummary | undefined;
    const get = () => {
      summary ??= fleets.summaryOf(key, selection);
      return summary;
    };
    return Object.defineProperty(context, 'clusters', { get }) as StepContext;
  }

  /** Hands what the foundation steps found to the clusters, and wakes them all if it changed. */
  #publish(context: StepContext): void {
    const { key, spec, authority, authorities, endpoint, namespace, gitOpsCluster } = context;
    if (!authority || !authorities || spec.addOn.problem !== undefined || spec.placement.problem !== undefined) {
      return;
    }
    const foundation: Foundation = {
      key,
      gitOpsCluster,
      namespace,
      placement: spec.placement.value,
      authority,
      authorities,
      addOn: spec.addOn.value,
      release: releaseOf(this.#world, namespace, spec.addOn.value),
      rolloutStrategy:
        spec.addOn.value.rolloutStrategy ?? this.#world.delivery.rolloutStrategy ?? defaultRolloutStrategy,
      endpoint,
      retains: isRetaining(gitOpsCluster),
    };
    const { gitOpsCluster: _, release, ...content } = foundation;
    const digest = JSON.stringify([content, release.version]);
    const isNew = this.#world.foundations.get(key)?.digest !== digest;
    this.#world.foundations.set(key, { foundation, digest });
    if (!isNew) {
      return;
    }
    // The selection as it is by now: who was selected meanwhile has been looked at already, and waits for this.
    const { fleets, wakeCluster } = this.#world;
    for (const cluster of fleets.summaryOf(key, fleets.selectionOf(gitOpsCluster, spec)).clusters) {
      wakeCluster(cluster);
    }
  }

  /** How the clusters follow the newest version. */
  #rollout(key: string): Outcome[] {
    const foundation = this.#world.foundations.get(key)?.foundation;
    if (foundation === undefined) {
      return [];
    }
    const result = sayRollout(this.#world.rollouts.planOf(foundation), foundation);
    return [{ condition: 'ClustersUpToDate', result }];
  }

  async #writeStatus(context: StepContext, gitOpsCluster: GitOpsCluster, outcomes: readonly Outcome[]): Promise<void> {
    const status = nextStatus(gitOpsCluster, outcomes, context);
    const wanted = JSON.stringify([status.clusters, status.conditions]);
    const settled = this.#statuses.get(context.key);
    // A CRD older than this program drops fields of the status: what it made of the same wish is not written again.
    if (settled?.wanted === wanted && settled.version === gitOpsCluster.metadata.resourceVersion) {
      return;
    }
    const written = await writeStatus(context, gitOpsCluster, status);
    const version = (written ?? gitOpsCluster).metadata.resourceVersion;
    this.#statuses.set(context.key, { wanted, version });
    if (written) {
      this.#told.tell(gitOpsCluster, status, context.clusters, context.now);
    }
  }

  async #ensureFinalizer(gitOpsCluster: GitOpsCluster, signal: AbortSignal): Promise<boolean> {
    const change = isRetaining(gitOpsCluster) ? { remove: finalizer } : { add: finalizer };
    const patch = finalizerPatch(gitOpsCluster, change);
    if (patch === undefined) {
      return false;
    }
    await this.#world.client.mergePatch(gitOpsClusters, gitOpsCluster.metadata, patch, { fieldManager, signal });
    return true;
  }

  /** Lets a GitOpsCluster go when nothing of it is left on its clusters, and removes what was made for it on the hub. */
  async #finalize(gitOpsCluster: GitOpsCluster, signal: AbortSignal): Promise<undefined> {
    if (!hasFinalizer(gitOpsCluster, finalizer)) {
      return undefined;
    }
    const { client } = this.#world;
    const key = keyOf(gitOpsCluster);
    if (isRetaining(gitOpsCluster)) {
      await this.#ensureFinalizer(gitOpsCluster, signal);
      return undefined;
    }
    if (this.#world.fleets.hasRemains(key, isForced(gitOpsCluster))) {
      const context = this.#stepContext(gitOpsCluster, signal);
      await this.#writeStatus(context, gitOpsCluster, await runSteps(remainingSteps.slice(-1), context));
      return undefined;
    }
    const namespace = gitOpsCluster.metadata.namespace ?? '';
    const others = this.#world.caches.gitOpsClusters
      .list(namespace)
      .filter((other) => other.metadata.uid !== gitOpsCluster.metadata.uid);
    if (others.length === 0) {
      const { principalTls, resourceProxyTls, jwt, authority, authorityTrust } = hubNames;
      for (const name of [principalTls, resourceProxyTls, jwt, authority, authorityTrust]) {
        const secret = this.#world.caches.ownSecrets.get({ namespace, name });
        if (secret) {
          await this.#world.applier.remove(secrets, secret, signal);
        }
      }
      const bundle = this.#world.caches.bundles.get({ namespace, name: hubNames.authorityBundle });
      if (bundle) {
        await this.#world.applier.remove(configMaps, bundle, signal);
      }
    }
    const patch = finalizerPatch(gitOpsCluster, { remove: finalizer });
    if (patch) {
      await client.mergePatch(gitOpsClusters, gitOpsCluster.metadata, patch, { fieldManager, signal });
    }
    this.#world.logger.info({ gitOpsCluster: key }, 'GitOpsCluster is cleaned up');
    return undefined;
  }
}
