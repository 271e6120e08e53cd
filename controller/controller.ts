import {
  configMaps,
  EventRecorder,
  finalizerPatch,
  findCondition,
  hasFinalizer,
  type Informer,
  type KubeClient,
  type KubeLogger,
  type KubeObject,
  keyOf,
  namespaces,
  parseKey,
  secrets,
  WorkQueue,
} from '../lib/kube/index.ts';
import { Applier } from './applier.ts';
import { Caches } from './caches.ts';
import { ensureCluster } from './cluster.ts';
import { ownerMetadataOf } from './cluster-context.ts';
import { isForced } from './cluster-health.ts';
import { foundationSteps, nextStatus, type Outcome, remainingSteps, runSteps, writeStatus } from './fleet.ts';
import type { ClusterReport, DeliverySettings, Foundation } from './fleet-state.ts';
import { Fleets } from './fleets.ts';
import { currentOwnerOf, leaveCluster } from './leave.ts';
import { addOnName, fieldManager, finalizer, hubNames, keys, labelValue } from './names.ts';
import { Templates } from './render/templates.ts';
import { type GitOpsCluster, gitOpsClusters } from './resources.ts';
import { parseGitOpsCluster } from './spec.ts';
import type { StepContext } from './steps.ts';

/** Options of the controller. */
export interface ControllerOptions {
  readonly client: KubeClient;
  readonly logger: KubeLogger;
  readonly delivery: DeliverySettings;
  /** Name of this process in Events. */
  readonly instance: string;
  /** Clusters worked on at the same time. Default 16. */
  readonly concurrency?: number;
  /** How long a cluster must be unselected before it is left. Default 2 s. */
  readonly settleMs?: number;
  readonly clock?: () => Date;
}

const hour = 3_600_000;

/**
 * Enrolls fleets: follows GitOpsClusters, their Placements' decisions and everything made for them, and brings what is
 * there into line.
 *
 * Two queues: one of GitOpsClusters (what is common to a fleet, and its status), one of clusters (what is made for one
 * cluster). A change of something that belongs to one cluster leads to work on that cluster only.
 */
export class Controller {
  readonly #options: ControllerOptions;
  readonly #caches: Caches;
  readonly #fleets: Fleets;
  readonly #applier: Applier;
  readonly #templates = new Templates();
  readonly #fleetQueue: WorkQueue;
  readonly #clusterQueue: WorkQueue;
  readonly #events: EventRecorder;
  readonly #foundations = new Map<string, { foundation: Foundation; digest: string }>();
  readonly #selections = new Map<string, ReadonlySet<string>>();
  readonly #statuses = new Map<string, { wanted: string; version: string | undefined }>();

  constructor(options: ControllerOptions) {
    const { client, logger } = options;
    this.#options = options;
    this.#caches = new Caches(client, logger);
    this.#fleets = new Fleets(this.#caches, { settleMs: options.settleMs });
    this.#applier = new Applier(client);
    this.#events = new EventRecorder({
      client,
      component: 'open-cluster-management.io/gitops-controller',
      instance: options.instance,
      logger,
    });
    this.#fleetQueue = new WorkQueue({
      name: 'gitopsclusters',
      handler: (key, signal) => this.#reconcileFleet(key, signal),
      concurrency: 4,
      logger,
    });
    this.#clusterQueue = new WorkQueue({
      name: 'clusters',
      handler: (key, signal) => this.#reconcileCluster(key, signal),
      concurrency: options.concurrency ?? 16,
      logger,
    });
  }

  /** Number of objects written so far, status and finalizers not counted. */
  get writes(): number {
    return this.#applier.writes;
  }

  /** Figures for metrics. */
  get stats() {
    return { fleets: this.#fleetQueue.stats, clusters: this.#clusterQueue.stats };
  }

  /** Kinds whose cache is not complete; empty when work is being done. */
  missing(): string[] {
    return this.#caches.missing();
  }

  /** Whether nothing is under way or due. Certificates to renew later do not count. */
  get isIdle(): boolean {
    const busy = (queue: WorkQueue) => queue.length + queue.stats.active + queue.stats.retrying;
    return busy(this.#fleetQueue) + busy(this.#clusterQueue) === 0;
  }

  /** Works until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const caches = this.#caches.run(signal);
    try {
      await this.#caches.synced(signal);
      this.#fleets.hubId = (await this.#options.client.get(namespaces, { name: 'kube-system' }, signal))?.metadata.uid;
      this.#subscribe();
      this.#options.logger.info({ gitOpsClusters: this.#caches.gitOpsClusters.size }, 'caches are complete');
      for (const cluster of this.#fleets.clusters()) this.#clusterQueue.add(cluster);
      await Promise.all([this.#fleetQueue.run(signal), this.#clusterQueue.run(signal)]);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      await caches;
      await this.#events.close();
    }
  }

  #subscribe(): void {
    const caches = this.#caches;
    const on = <T extends KubeObject>(informer: Informer<T>, hear: (object: T, old?: T) => void) => {
      informer.subscribe({ added: (o) => hear(o), updated: (old, now) => hear(now, old), deleted: (o) => hear(o) });
    };
    on(caches.gitOpsClusters, (now, old) => {
      // Our own status writes change nothing that the reconcile reads.
      if (old && old.metadata.generation === now.metadata.generation && sameMetadata(old, now)) return;
      this.#fleetQueue.add(keyOf(now));
      this.#selectionChanged(keyOf(now));
    });
    on(caches.placements, ({ metadata }) => this.#placementChanged(metadata.namespace ?? '', metadata.name));
    on(caches.decisions, ({ metadata }) =>
      this.#placementChanged(metadata.namespace ?? '', metadata.labels?.[keys.placement] ?? ''),
    );
    on(caches.managedClusters, ({ metadata }, old) => {
      this.#clusterQueue.add(metadata.name);
      if (old === undefined) this.#statusChanged(this.#fleets.ownershipOf(metadata.name).owner);
    });
    on(caches.addOns, ({ metadata }) => this.#clusterQueue.add(metadata.namespace ?? ''));
    on(caches.works, ({ metadata }) => this.#clusterQueue.add(metadata.namespace ?? ''));
    on(caches.connections, ({ metadata }) => this.#clusterQueue.add(metadata.labels?.[keys.agentName] ?? ''));
    on(caches.ownSecrets, ({ metadata }) => {
      const cluster = metadata.labels?.[keys.clusterName];
      if (cluster) this.#clusterQueue.add(cluster);
      const owner = metadata.annotations?.[keys.owner];
      if (owner) this.#leavingChanged(owner);
    });
    on(caches.configs, ({ metadata }) => {
      const isOfCluster = caches.managedClusters.get({ name: metadata.namespace ?? '' }) !== undefined;
      if (isOfCluster) this.#clusterQueue.add(metadata.namespace ?? '');
      else this.#allClusters();
    });
    on(caches.addOnRegistrations, (now, old) => {
      if (JSON.stringify(old?.spec) !== JSON.stringify(now.spec)) this.#allClusters();
    });
    caches.onNamespaceChange((namespace) => {
      for (const one of caches.gitOpsClusters.list(namespace)) this.#fleetQueue.add(keyOf(one));
    });
    caches.onCrdChange(() => this.#allClusters());
  }

  #allClusters(): void {
    for (const cluster of this.#fleets.clusters()) this.#clusterQueue.add(cluster);
  }

  #placementChanged(namespace: string, placement: string): void {
    for (const one of this.#caches.gitOpsClusters.list(namespace)) {
      if (parseGitOpsCluster(one).placement.value !== placement) continue;
      this.#fleetQueue.add(keyOf(one));
      this.#selectionChanged(keyOf(one));
    }
  }

  /** Wakes the clusters that a GitOpsCluster gains or loses, and nobody else. */
  #selectionChanged(key: string): void {
    const gitOpsCluster = this.#caches.gitOpsClusters.get(parseKey(key));
    const isThere = gitOpsCluster !== undefined && gitOpsCluster.metadata.deletionTimestamp === undefined;
    const selection = isThere ? this.#fleets.selectionOf(gitOpsCluster) : undefined;
    if (selection && !selection.known) return;
    const now = new Set(selection?.clusters ?? []);
    const before = this.#selections.get(key) ?? new Set<string>();
    if (isThere) this.#selections.set(key, now);
    else this.#selections.delete(key);
    const changed = [...now, ...before].filter((cluster) => now.has(cluster) !== before.has(cluster));
    for (const cluster of changed) this.#clusterQueue.add(cluster);
    for (const { metadata } of this.#caches.addOns.byIndex('owner', key)) {
      if (!now.has(metadata.namespace ?? '')) this.#clusterQueue.add(metadata.namespace ?? '');
    }
    // Whoever else selects the same clusters says in its status who has them.
    for (const [other, clusters] of this.#selections) {
      if (other !== key && changed.some((cluster) => clusters.has(cluster))) this.#statusChanged(other);
    }
  }

  /** Status is summed up a little later, so that a hundred clusters' news make one write. */
  #statusChanged(key: string | undefined): void {
    if (key !== undefined) this.#fleetQueue.addAfter(key, 100);
  }

  #leavingChanged(key: string): void {
    if (this.#caches.gitOpsClusters.get(parseKey(key))?.metadata.deletionTimestamp) this.#statusChanged(key);
  }

  async #reconcileFleet(key: string, signal: AbortSignal): Promise<{ requeueAfterMs: number } | undefined> {
    const gitOpsCluster = await this.#applier.current(
      gitOpsClusters,
      namespaced(key),
      this.#caches.gitOpsClusters.get(parseKey(key)),
      signal,
    );
    if (gitOpsCluster === undefined) {
      this.#foundations.delete(key);
      this.#statuses.delete(key);
      return undefined;
    }
    if (gitOpsCluster.metadata.deletionTimestamp) return this.#finalize(gitOpsCluster, signal);
    if (await this.#addFinalizer(gitOpsCluster, signal)) return undefined; // comes again with the change
    const context = this.#stepContext(gitOpsCluster, signal);
    const foundation = await runSteps(foundationSteps, context);
    this.#publish(context);
    const outcomes = [...foundation, ...(await runSteps(remainingSteps, context))];
    await this.#writeStatus(context, gitOpsCluster, outcomes);
    const errors = outcomes.flatMap(({ error }) => (error === undefined ? [] : [error]));
    if (errors.length > 0) throw errors[0];
    return { requeueAfterMs: untilRenewal(context.renewAt, context.now) };
  }

  #stepContext(gitOpsCluster: GitOpsCluster, signal: AbortSignal): StepContext {
    const { client, logger } = this.#options;
    const namespace = gitOpsCluster.metadata.namespace ?? '';
    const spec = parseGitOpsCluster(gitOpsCluster);
    const selection = this.#fleets.selectionOf(gitOpsCluster, spec);
    const key = keyOf(gitOpsCluster);
    const context: Omit<StepContext, 'clusters'> = {
      gitOpsCluster,
      key,
      namespace,
      spec,
      selection,
      caches: this.#caches,
      client,
      applier: this.#applier,
      logger,
      now: this.#now(),
      signal,
      service: this.#caches.principalService(namespace),
      renewAt: Number.POSITIVE_INFINITY,
      endpoint: undefined,
      authority: undefined,
      authorities: undefined,
    };
    // Summed up when a step asks for it, which is after others have waited for the server.
    const fleets = this.#fleets;
    return Object.defineProperty(context, 'clusters', { get: () => fleets.summaryOf(key, selection) }) as StepContext;
  }

  /** Hands what the foundation steps found to the clusters, and wakes them all if it changed. */
  #publish(context: StepContext): void {
    const { key, spec, authority, authorities, endpoint, namespace, gitOpsCluster } = context;
    if (!authority || !authorities || spec.addOn.problem !== undefined || spec.placement.problem !== undefined) return;
    const foundation: Foundation = {
      key,
      gitOpsCluster,
      namespace,
      placement: spec.placement.value,
      authority,
      authorities,
      addOn: spec.addOn.value,
      endpoint,
    };
    const images = ['argocd-server', 'argocd-redis'].map((name) => this.#caches.hubImage(namespace, name));
    const { gitOpsCluster: _, ...content } = foundation;
    const digest = JSON.stringify([content, images]);
    const isNew = this.#foundations.get(key)?.digest !== digest;
    this.#foundations.set(key, { foundation, digest });
    if (!isNew) return;
    const summary = this.#fleets.summaryOf(key, context.selection);
    for (const cluster of summary.clusters) this.#clusterQueue.add(cluster);
  }

  async #writeStatus(context: StepContext, gitOpsCluster: GitOpsCluster, outcomes: readonly Outcome[]): Promise<void> {
    const status = nextStatus(gitOpsCluster, outcomes, context);
    const wanted = JSON.stringify([
      status.clusters,
      status.availableClusters,
      status.connectedClusters,
      status.conditions,
    ]);
    const settled = this.#statuses.get(context.key);
    // A CRD older than this program drops fields of the status: what it made of the same wish is not written again.
    if (settled?.wanted === wanted && settled.version === gitOpsCluster.metadata.resourceVersion) return;
    const written = await writeStatus(context, gitOpsCluster, status);
    const version = (written ?? gitOpsCluster).metadata.resourceVersion;
    this.#statuses.set(context.key, { wanted, version });
    if (written) this.#tell(gitOpsCluster, status);
  }

  /** Events for what operators must know: a condition that turned bad, and that all is well again. */
  #tell(gitOpsCluster: GitOpsCluster, status: NonNullable<GitOpsCluster['status']>): void {
    for (const { type, status: value, reason, message } of status.conditions ?? []) {
      const before = findCondition(gitOpsCluster.status?.conditions, type);
      if (before?.status === value && before.message === message) continue;
      const isTrouble = value === 'False' && reason !== 'InProgress';
      if (type === 'Ready') {
        if (value === 'True' && before?.status !== 'True') this.#events.normal(gitOpsCluster, 'Ready', message);
      } else if (isTrouble) this.#events.warning(gitOpsCluster, `${type}Failed`, message);
    }
  }

  async #addFinalizer(gitOpsCluster: GitOpsCluster, signal: AbortSignal): Promise<boolean> {
    const patch = finalizerPatch(gitOpsCluster, { add: finalizer });
    if (patch === undefined) return false;
    await this.#options.client.mergePatch(gitOpsClusters, gitOpsCluster.metadata, patch, { fieldManager, signal });
    return true;
  }

  /** Lets a GitOpsCluster go when nothing of it is left on its clusters, and removes what was made for it on the hub. */
  async #finalize(gitOpsCluster: GitOpsCluster, signal: AbortSignal): Promise<undefined> {
    if (!hasFinalizer(gitOpsCluster, finalizer)) return undefined;
    const { client } = this.#options;
    const key = keyOf(gitOpsCluster);
    if (this.#fleets.hasRemains(key, isForced(gitOpsCluster))) {
      const context = this.#stepContext(gitOpsCluster, signal);
      await this.#writeStatus(context, gitOpsCluster, await runSteps(remainingSteps.slice(-1), context));
      return undefined;
    }
    const namespace = gitOpsCluster.metadata.namespace ?? '';
    const others = this.#caches.gitOpsClusters
      .list(namespace)
      .filter((other) => other.metadata.uid !== gitOpsCluster.metadata.uid);
    if (others.length === 0) {
      for (const name of [hubNames.principalTls, hubNames.resourceProxyTls, hubNames.jwt, hubNames.authority]) {
        const secret = this.#caches.ownSecrets.get({ namespace, name });
        if (secret) await this.#applier.remove(secrets, secret, signal);
      }
      const bundle = this.#caches.bundles.get({ namespace, name: hubNames.authorityBundle });
      if (bundle) await this.#applier.remove(configMaps, bundle, signal);
    }
    const patch = finalizerPatch(gitOpsCluster, { remove: finalizer });
    if (patch) await client.mergePatch(gitOpsClusters, gitOpsCluster.metadata, patch, { fieldManager, signal });
    this.#options.logger.info({ gitOpsCluster: key }, 'GitOpsCluster is cleaned up');
    return undefined;
  }

  async #reconcileCluster(cluster: string, signal: AbortSignal): Promise<{ requeueAfterMs: number } | undefined> {
    const { owner } = this.#fleets.ownershipOf(cluster);
    const grace = this.#fleets.graceOf(cluster, owner !== undefined, this.#now().getTime());
    if (owner === undefined) {
      if (currentOwnerOf(cluster, this.#caches) === undefined) this.#report(cluster, undefined);
      else if (grace > 0 && !this.#isOwnerGoing(cluster)) return { requeueAfterMs: grace };
      else await this.#leave(cluster, signal);
      return undefined;
    }
    const skipped = this.#fleets.reasonToSkip(cluster);
    if (skipped !== undefined) {
      this.#report(cluster, { cluster, owner, skipped, problems: {}, isAvailable: false, isConnected: false });
      return undefined;
    }
    const foundation = this.#foundations.get(owner)?.foundation;
    if (foundation === undefined) return undefined; // woken when it is there
    const context = {
      cluster,
      foundation,
      caches: this.#caches,
      client: this.#options.client,
      applier: this.#applier,
      templates: this.#templates,
      delivery: this.#options.delivery,
      logger: this.#options.logger,
      now: this.#now(),
      signal,
      ownerMetadata: ownerMetadataOf(owner, cluster),
      renewAt: Number.POSITIVE_INFINITY,
    };
    const { report, errors } = await ensureCluster(context);
    await this.#removeStrays(cluster, foundation.namespace, signal);
    this.#report(cluster, report);
    if (errors.length > 0) throw errors[0];
    return { requeueAfterMs: untilRenewal(context.renewAt, context.now) };
  }

  /** A GitOpsCluster that is deleted says clearly that its clusters shall go: there is nothing to wait for. */
  #isOwnerGoing(cluster: string): boolean {
    const owner = currentOwnerOf(cluster, this.#caches);
    const found = owner === undefined ? undefined : this.#caches.gitOpsClusters.get(parseKey(owner));
    return found === undefined || found.metadata.deletionTimestamp !== undefined;
  }

  /** Secrets of a cluster that moved to a GitOpsCluster in another namespace. */
  async #removeStrays(cluster: string, namespace: string, signal: AbortSignal): Promise<void> {
    for (const secret of this.#caches.ownSecrets.byIndex('cluster', labelValue(cluster))) {
      if (secret.metadata.namespace !== namespace) await this.#applier.remove(secrets, secret, signal);
    }
  }

  async #leave(cluster: string, signal: AbortSignal): Promise<void> {
    const owner = currentOwnerOf(cluster, this.#caches) ?? '';
    const { client, logger } = this.#options;
    const waiting = await leaveCluster({
      cluster,
      client,
      logger,
      caches: this.#caches,
      applier: this.#applier,
      now: this.#now(),
      signal,
    });
    if (waiting === undefined) logger.info({ cluster, addOn: addOnName }, 'left the cluster');
    const none = { problems: {}, isAvailable: false, isConnected: false };
    this.#report(cluster, waiting === undefined ? undefined : { cluster, owner, leaving: waiting, ...none });
    this.#leavingChanged(owner);
  }

  #report(cluster: string, report: ClusterReport | undefined): void {
    for (const key of this.#fleets.report(cluster, report)) this.#statusChanged(key);
  }

  #now(): Date {
    return this.#options.clock?.() ?? new Date();
  }
}

function untilRenewal(renewAt: number, now: Date): number {
  // Timers hold no more than 24 days, and nothing is lost by looking twice a day.
  return Math.max(1_000, Math.min(renewAt - now.getTime(), 12 * hour));
}

function sameMetadata(a: KubeObject, b: KubeObject): boolean {
  const relevant = ({ metadata }: KubeObject) =>
    JSON.stringify([metadata.annotations, metadata.labels, metadata.finalizers, metadata.deletionTimestamp]);
  return relevant(a) === relevant(b);
}

function namespaced(key: string): { namespace: string; name: string } {
  const { namespace = '', name } = parseKey(key);
  return { namespace, name };
}
