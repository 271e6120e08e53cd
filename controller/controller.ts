import { KeyedMutex, type Logger, wellKnown } from '../lib/base/index.ts';
import {
  EventRecorder,
  type Informer,
  type KubeClient,
  type KubeObject,
  keyOf,
  parseKey,
  WorkQueue,
} from '../lib/kube/index.ts';
import { Templates } from '../lib/manifests/index.ts';
import type { FleetReporter } from '../lib/ops/index.ts';
import { ClusterReconciler, defaultTroubleDelays, type TroubleDelays } from './cluster/index.ts';
import {
  areIdle,
  type ObservedCertificate,
  type ObservedCondition,
  type ObservedRollout,
  runQueues,
} from './daemon/index.ts';
import { FleetReconciler } from './fleet/index.ts';
import {
  Applier,
  addOnName,
  Caches,
  clustersOf,
  type GitOpsCluster,
  type HubEventReason,
  identifyHub,
  isGuest,
  keys,
} from './hub/index.ts';
import { ClusterReports, Ownership } from './ownership/index.ts';
import { Renderings } from './render/index.ts';
import { Rollouts } from './rollout/index.ts';
import { type DeliverySettings, type Foundation, parseGitOpsCluster } from './spec/index.ts';
import { observedCertificates, Signer } from './trust/index.ts';

/** Options of {@link Controller}. */
export interface ControllerOptions {
  readonly client: KubeClient;
  readonly logger: Logger;
  readonly delivery: DeliverySettings;
  /** The namespaces with a principal. Default: all. */
  readonly watchNamespaces?: readonly string[];
  /** The one of them whose principal serves the GitOpsClusters of other namespaces. Default: they are not served. */
  readonly argoCdNamespace?: string;
  /** Namespaces whose own Argo CD may be given the parameters that live access needs. Default: none. */
  readonly configuredNamespaces?: readonly string[];
  /** Name of this process in Events. */
  readonly instance: string;
  /** Clusters reconciled at the same time. Default 16. */
  readonly concurrency?: number;
  /** How long a cluster must be unselected before it is detached, in milliseconds. Default 2 s. */
  readonly settleMs?: number;
  /** How long the agent of a cluster that is detached may take to carry out deletions, in milliseconds. Default 60 s. */
  readonly drainMs?: number;
  /** How long a problem may last before it is reported as trouble. Default {@link defaultTroubleDelays}. */
  readonly troubleDelays?: TroubleDelays;
  /** Learns what happens to the fleet. Default: nobody does. */
  readonly fleetEvents?: FleetReporter | undefined;
  readonly clock?: () => Date;
}

/**
 * Enrolls clusters: watches GitOpsClusters, the decisions of their Placements and all objects made for them, and reconciles
 * differences.
 *
 * It has three work queues: GitOpsClusters (shared objects and status), clusters (the objects of one cluster) and requests
 * for certificates. A change of an object of one cluster reconciles that cluster only.
 */
export class Controller {
  readonly #options: ControllerOptions;
  readonly #caches: Caches;
  readonly #ownership: Ownership;
  readonly #applier: Applier;
  readonly #fleetQueue: WorkQueue;
  readonly #clusterQueue: WorkQueue;
  readonly #requestQueue: WorkQueue;
  readonly #events: EventRecorder<HubEventReason>;
  readonly #foundations = new Map<string, Foundation>();
  readonly #rollouts: Rollouts;
  readonly #selections = new Map<string, ReadonlySet<string>>();

  constructor(options: ControllerOptions) {
    const { client, logger, watchNamespaces, argoCdNamespace } = options;
    this.#options = options;
    this.#caches = new Caches({ client, logger, watchNamespaces, argoCdNamespace });
    this.#ownership = new Ownership(this.#caches, { settleMs: options.settleMs });
    this.#applier = new Applier(client);
    this.#events = new EventRecorder({
      client,
      component: 'open-cluster-management.io/gitops-controller',
      instance: options.instance,
      logger,
      echo: logger,
    });
    const now = options.clock ?? (() => new Date());
    const shared = {
      client,
      logger,
      events: this.#events,
      fleetEvents: options.fleetEvents,
      caches: this.#caches,
      ownership: this.#ownership,
      foundations: this.#foundations,
      now,
    };
    const reports = new ClusterReports(this.#caches, this.#ownership);
    const rollouts = new Rollouts({
      caches: this.#caches,
      applier: this.#applier,
      now,
      wakeCluster: (cluster) => this.#clusterQueue.add(cluster),
      changed: (key) => this.#statusChanged(key),
    });
    this.#rollouts = rollouts;
    const { delivery } = options;
    const forBoth = { ...shared, applier: this.#applier, reports, rollouts, delivery, templates: new Templates() };
    const fleets = new FleetReconciler({
      ...forBoth,
      configuredNamespaces: options.configuredNamespaces ?? [],
      mutex: new KeyedMutex(),
      clusterCertificates: (namespace) => reports.certificatesIn(namespace),
      wakeCluster: (cluster) => this.#clusterQueue.add(cluster),
    });
    const clusters = new ClusterReconciler({
      ...forBoth,
      renderings: new Renderings(),
      drainMs: options.drainMs ?? 60_000,
      troubleDelays: options.troubleDelays ?? defaultTroubleDelays,
      startedAt: now(),
      statusChanged: (key) => this.#statusChanged(key),
    });
    this.#fleetQueue = new WorkQueue({
      name: 'gitopsclusters',
      handler: (key, signal) => fleets.reconcile(key, signal),
      concurrency: 4,
      logger,
    });
    const signer = new Signer(shared);
    this.#requestQueue = new WorkQueue({
      name: 'requests',
      handler: (key, signal) => signer.reconcile(key, signal),
      concurrency: 4,
      logger,
    });
    this.#clusterQueue = new WorkQueue({
      name: 'clusters',
      handler: (key, signal) => clusters.reconcile(key, signal),
      concurrency: options.concurrency ?? 16,
      logger,
    });
  }

  /** Number of objects written so far, status and finalizers not counted. */
  get writes(): number {
    return this.#applier.writes;
  }

  /** Work queue statistics for metrics, by queue. */
  get stats() {
    return {
      gitopsclusters: this.#fleetQueue.stats,
      clusters: this.#clusterQueue.stats,
      requests: this.#requestQueue.stats,
    };
  }

  /** The conditions of all GitOpsClusters, as the cache has them. */
  conditions(): ObservedCondition[] {
    return this.#caches.gitOpsClusters
      .list()
      .flatMap(({ metadata: { namespace = '', name }, status }) =>
        (status?.conditions ?? []).map((one) => ({ namespace, name, type: one.type, status: one.status })),
      );
  }

  /** The progress of all rollouts. */
  rollouts(): ObservedRollout[] {
    return Array.from(this.#foundations, ([key, foundation]) => {
      const { namespace = '', name } = parseKey(key);
      return { namespace, name, ...this.#rollouts.progressOf(foundation) };
    });
  }

  /** The authorities and the servers' certificates of all principals. */
  certificates(): ObservedCertificate[] {
    return observedCertificates(this.#caches);
  }

  /** Kinds whose cache is not complete yet. Empty once reconciles run. */
  missing(): string[] {
    return this.#caches.missing();
  }

  /** Whether no reconcile is running or due. Later renewals of certificates do not count. */
  get isIdle(): boolean {
    return areIdle(this.#queues);
  }

  /** Runs until aborted. */
  run(signal: AbortSignal): Promise<void> {
    const { client, logger } = this.#options;
    const begin = async (until: AbortSignal) => {
      this.#ownership.hubId = await identifyHub(client, logger, until);
      this.#subscribe();
      logger.info({ gitOpsClusters: this.#caches.gitOpsClusters.size }, 'caches are complete');
      this.#allClusters();
    };
    return runQueues({ caches: this.#caches, queues: this.#queues, events: this.#events, begin, signal });
  }

  get #queues(): WorkQueue[] {
    return [this.#fleetQueue, this.#clusterQueue, this.#requestQueue];
  }

  #subscribe(): void {
    const caches = this.#caches;
    const on = <T extends KubeObject>(
      informer: Pick<Informer<T>, 'subscribe'>,
      changed: (object: T, old?: T) => void,
    ) => {
      informer.subscribe({
        added: (one) => changed(one),
        updated: (old, now) => changed(now, old),
        deleted: (one) => changed(one),
      });
    };
    on(caches.gitOpsClusters, (now, old) => {
      // Our own status writes do not affect the reconcile.
      if (old && old.metadata.generation === now.metadata.generation && sameMetadata(old, now)) {
        return;
      }
      this.#fleetQueue.add(keyOf(now));
      this.#selectionChanged(keyOf(now));
      this.#addressChanged(now, old);
    });
    on(caches.placements, ({ metadata }) => this.#placementChanged(metadata.namespace ?? '', metadata.name));
    on(caches.decisions, ({ metadata }) =>
      this.#placementChanged(metadata.namespace ?? '', metadata.labels?.[keys.placement] ?? ''),
    );
    on(caches.managedClusters, ({ metadata }, old) => {
      this.#clusterQueue.add(metadata.name);
      if (old === undefined) {
        this.#statusChanged(this.#ownership.ownerOf(metadata.name).owner);
      }
    });
    on(caches.namespaces, ({ metadata }, old) => {
      if (old === undefined && caches.managedClusters.get({ name: metadata.name })) {
        this.#clusterQueue.add(metadata.name);
        this.#statusChanged(this.#ownership.ownerOf(metadata.name).owner);
      }
    });
    on(caches.addOns, (now, old) => {
      this.#clusterQueue.add(now.metadata.namespace ?? '');
      this.#ownerChanged(now, old);
    });
    on(caches.works, (now, old) => {
      this.#clusterQueue.add(now.metadata.namespace ?? '');
      this.#ownerChanged(now, old);
    });
    on(caches.connections, ({ metadata }) => this.#clusterQueue.add(metadata.labels?.[wellKnown.agentNameLabel] ?? ''));
    on(caches.requests, ({ metadata }) => this.#requestQueue.add(metadata.name));
    on(caches.ownSecrets, (now, old) => {
      const { metadata } = now;
      this.#ownerChanged(now, old);
      const cluster = metadata.labels?.[keys.clusterName];
      if (cluster) {
        this.#clusterQueue.add(cluster);
      }
      const owner = metadata.annotations?.[keys.owner];
      if (owner) {
        this.#detachmentChanged(owner);
      }
    });
    on(caches.applications, (now, old) => {
      const namesAndUrls = [...clustersOf(now), ...(old ? clustersOf(old) : [])];
      const ofUrl = (url: string) =>
        caches.ownSecrets.byIndex('url', url).map(({ metadata }) => metadata.labels?.[keys.clusterName] ?? '');
      for (const cluster of new Set(namesAndUrls.flatMap((one) => [one, ...ofUrl(one)]))) {
        const addOn = caches.addOns.get({ namespace: cluster, name: addOnName });
        if (addOn?.metadata.annotations?.[keys.drainUntil]) {
          this.#clusterQueue.add(cluster);
        }
      }
    });
    on(caches.configs, ({ metadata }) => {
      const isOfCluster = caches.managedClusters.get({ name: metadata.namespace ?? '' }) !== undefined;
      if (isOfCluster) {
        this.#clusterQueue.add(metadata.namespace ?? '');
      } else {
        this.#allClusters();
      }
    });
    on(caches.addOnRegistrations, (now, old) => {
      if (JSON.stringify(old?.spec) !== JSON.stringify(now.spec)) {
        this.#allClusters();
      }
    });
    caches.onNamespaceChange((namespace) => {
      for (const one of caches.sharing(namespace)) {
        this.#fleetQueue.add(keyOf(one));
      }
    });
    caches.onCrdChange(() => {
      for (const one of caches.gitOpsClusters.list()) {
        this.#fleetQueue.add(keyOf(one));
      }
    });
  }

  #allClusters(): void {
    for (const cluster of this.#ownership.clusters()) {
      this.#clusterQueue.add(cluster);
    }
  }

  #placementChanged(namespace: string, placement: string): void {
    for (const one of this.#caches.gitOpsClusters.list(namespace)) {
      if (parseGitOpsCluster(one).placement.value !== placement) {
        continue;
      }
      this.#fleetQueue.add(keyOf(one));
      this.#selectionChanged(keyOf(one));
    }
  }

  /** GitOpsClusters of other namespaces use the principal's address that one of its own namespace sets. */
  #addressChanged(now: GitOpsCluster, old: GitOpsCluster | undefined): void {
    const { namespace = '', deletionTimestamp } = now.metadata;
    const of = (one: GitOpsCluster) => JSON.stringify(parseGitOpsCluster(one).server.value);
    const isHost = !isGuest(now, this.#caches.principalNamespaceOf(now));
    if (!isHost || (old && !deletionTimestamp && of(old) === of(now))) {
      return;
    }
    for (const one of this.#caches.sharing(namespace).filter((other) => isGuest(other, namespace))) {
      this.#fleetQueue.add(keyOf(one));
    }
  }

  /** Reconciles the clusters that a GitOpsCluster gained or lost, and no others. */
  #selectionChanged(key: string): void {
    const gitOpsCluster = this.#caches.gitOpsClusters.get(parseKey(key));
    const isThere = gitOpsCluster !== undefined && gitOpsCluster.metadata.deletionTimestamp === undefined;
    const selection = isThere ? this.#ownership.selectionOf(gitOpsCluster) : undefined;
    if (selection && !selection.known) {
      return;
    }
    const now = new Set(selection?.clusters ?? []);
    const before = this.#selections.get(key) ?? new Set<string>();
    if (isThere) {
      this.#selections.set(key, now);
    } else {
      this.#selections.delete(key);
    }
    const changed = [...now, ...before].filter((cluster) => now.has(cluster) !== before.has(cluster));
    for (const cluster of changed) {
      this.#clusterQueue.add(cluster);
    }
    for (const { metadata } of this.#caches.addOns.byIndex('owner', key)) {
      if (!now.has(metadata.namespace ?? '')) {
        this.#clusterQueue.add(metadata.namespace ?? '');
      }
    }
    // GitOpsClusters that select the same clusters report their owner in their status.
    for (const [other, clusters] of this.#selections) {
      if (other !== key && changed.some((cluster) => clusters.has(cluster))) {
        this.#statusChanged(other);
      }
    }
  }

  /** Updates the status after a delay of 0.1 to 1 s (for large fleets), so that changes of many clusters lead to one write. */
  #statusChanged(key: string | undefined): void {
    if (key !== undefined) {
      this.#fleetQueue.addAfter(key, Math.min(1_000, 100 + 2 * this.#caches.managedClusters.size));
    }
  }

  /** Reconciles the former owner of an object: its deletion may wait for the change of owner. */
  #ownerChanged(now: KubeObject, old: KubeObject | undefined): void {
    const before = old?.metadata.annotations?.[keys.owner];
    if (before !== undefined && before !== now.metadata.annotations?.[keys.owner]) {
      this.#detachmentChanged(before);
    }
  }

  #detachmentChanged(key: string): void {
    if (this.#caches.gitOpsClusters.get(parseKey(key))?.metadata.deletionTimestamp) {
      this.#statusChanged(key);
    }
  }
}

function sameMetadata(a: KubeObject, b: KubeObject): boolean {
  const relevant = ({ metadata }: KubeObject) =>
    JSON.stringify([metadata.annotations, metadata.labels, metadata.finalizers, metadata.deletionTimestamp]);
  return relevant(a) === relevant(b);
}
