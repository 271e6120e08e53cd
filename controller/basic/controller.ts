import { randomUUID } from 'node:crypto';
import { type Logger, wellKnown } from '../../lib/base/index.ts';
import {
  EventRecorder,
  type KubeClient,
  type KubeObject,
  keyOf,
  type Secret,
  WorkQueue,
} from '../../lib/kube/index.ts';
import { secretText } from '../../lib/pki/index.ts';
import { areIdle, runQueues } from '../daemon/index.ts';
import { Applier, identifyHub, urlsIn } from '../hub/index.ts';
import { ApplicationReconciler } from './application-reconciler.ts';
import type { BasicDeps, BasicEventReason } from './basic-deps.ts';
import { BasicCaches, placeOfWork } from './caches.ts';
import { pullKeys } from './names.ts';
import type { PullApplication } from './resources.ts';
import { isOwnSecret, SecretReconciler } from './secret-reconciler.ts';
import { placeKey, pullIntentOf } from './target.ts';
import { applicationKeyOf } from './work.ts';

/** Options of {@link BasicController}. */
export interface BasicControllerOptions {
  readonly client: KubeClient;
  readonly logger: Logger;
  /** Name of this process in Events. */
  readonly instance: string;
  /** Argo CD's namespace on the hub, for cluster Secrets. */
  readonly argoCdNamespace: string;
  /** Other namespaces whose Applications are served: names, globs, `/regular expressions/`. Default none. */
  readonly applicationNamespaces?: readonly string[];
  /** Applications reconciled at the same time. Default 16. */
  readonly concurrency?: number;
  /** How long a change of an Application waits for a running operation, in milliseconds. Default 300,000. */
  readonly patienceMs?: number;
  readonly clock?: () => Date;
}

/**
 * The controller of the basic pull model. It delivers labelled Applications to managed clusters in ManifestWorks and
 * copies their status back. A change of one object reconciles only the Applications that depend on it.
 */
export class BasicController {
  readonly #options: BasicControllerOptions;
  readonly #caches: BasicCaches;
  readonly #events: EventRecorder<BasicEventReason>;
  readonly #applications: WorkQueue;
  readonly #clusters: WorkQueue;
  readonly #works: Applier;
  readonly #secrets: Applier;
  #hubId: string | undefined;

  constructor(options: BasicControllerOptions) {
    const { client, logger, argoCdNamespace } = options;
    this.#options = options;
    this.#caches = new BasicCaches(client, { argoCdNamespace, logger });
    this.#works = new Applier(client, (work) => work.metadata.labels?.[pullKeys.pull] === 'true');
    this.#secrets = new Applier(client, isOwnSecret);
    this.#events = new EventRecorder({
      client,
      component: 'open-cluster-management.io/argocd-pull-integration',
      instance: options.instance,
      logger,
    });
    const deps: BasicDeps = {
      client,
      logger,
      argoCdNamespace,
      applicationNamespaces: options.applicationNamespaces ?? [],
      events: this.#events,
      caches: this.#caches,
      works: this.#works,
      secrets: this.#secrets,
      now: options.clock ?? (() => new Date()),
      newId: randomUUID,
      patienceMs: options.patienceMs ?? 300_000,
      hubId: () => this.#hubId,
    };
    const applications = new ApplicationReconciler(deps);
    const clusters = new SecretReconciler(deps);
    this.#applications = new WorkQueue({
      name: 'applications',
      handler: (key, signal) => applications.reconcile(key, signal),
      concurrency: options.concurrency ?? 16,
      logger,
    });
    this.#clusters = new WorkQueue({
      name: 'clusters',
      handler: (key, signal) => clusters.reconcile(key, signal),
      concurrency: 4,
      logger,
    });
  }

  /** Number of ManifestWorks and Secrets written so far. */
  get writes(): number {
    return this.#works.writes + this.#secrets.writes;
  }

  /** Work queue statistics for metrics, by queue. */
  get stats() {
    return { applications: this.#applications.stats, clusters: this.#clusters.stats };
  }

  /** Kinds whose cache is not complete yet. Empty once reconciles run. */
  missing(): string[] {
    return this.#caches.missing();
  }

  /** Whether no reconcile is running or queued. */
  get isIdle(): boolean {
    return areIdle([this.#applications, this.#clusters]);
  }

  /** Runs until aborted. */
  run(signal: AbortSignal): Promise<void> {
    const { client, logger } = this.#options;
    const begin = async (until: AbortSignal) => {
      this.#hubId = await identifyHub(client, logger, until);
      logger.info({ applications: this.#caches.applications.size }, 'caches are complete');
      this.#subscribe();
    };
    const queues = [this.#applications, this.#clusters];
    return runQueues({ caches: this.#caches, queues, events: this.#events, begin, signal });
  }

  /** Handlers receive all existing objects on subscription. That starts the first reconciles and finds left-over works. */
  #subscribe(): void {
    const { applications, works, managedClusters, clusterSecrets, projects } = this.#caches;
    applications.subscribe({
      added: (one) => this.#applicationChanged(one),
      updated: (old, now) => this.#applicationChanged(now, old),
      deleted: (one) => this.#applicationChanged(one),
    });
    const workChanged = (key: string | undefined) => key !== undefined && this.#applications.add(key);
    works.subscribe({
      added: (work) => workChanged(applicationKeyOf(work)),
      updated: (old, now) => {
        workChanged(applicationKeyOf(now));
        if (applicationKeyOf(old) !== applicationKeyOf(now)) {
          workChanged(applicationKeyOf(old));
        }
      },
      deleted: (work) => {
        workChanged(applicationKeyOf(work));
        this.#wakePlace(placeOfWork(work));
      },
    });
    const clusterChanged = (name: string) => {
      this.#clusters.add(name);
      this.#wake(applications.byIndex('cluster', name));
      // Works of deleted Applications may wait for the deletion of the cluster.
      for (const work of works.list(name)) {
        workChanged(applicationKeyOf(work));
      }
    };
    managedClusters.subscribe({
      added: ({ metadata }) => clusterChanged(metadata.name),
      updated: (old, now) => {
        // Other fields change often and do not matter here.
        const relevant = ({ metadata, status }: typeof now) =>
          JSON.stringify([metadata.deletionTimestamp !== undefined, metadata.labels?.['local-cluster'], status]);
        if (relevant(old) !== relevant(now)) {
          clusterChanged(now.metadata.name);
        }
      },
      deleted: ({ metadata }) => clusterChanged(metadata.name),
    });
    const secretChanged = (secret: Secret) => {
      const named = secretText(secret.data, 'name');
      if (named) {
        this.#clusters.add(named);
        this.#admissionChanged(applications.byIndex('cluster', named));
      }
      if (secret.metadata.name.endsWith('-secret')) {
        this.#clusters.add(secret.metadata.name.slice(0, -7));
      }
      const agent = secret.metadata.labels?.[wellKnown.agentNameLabel];
      if (agent) {
        this.#wake(applications.byIndex('agent', agent));
      }
      this.#wake(urlsIn(secret).flatMap((url) => applications.byIndex('url', url)));
    };
    const projectChanged = ({ metadata }: KubeObject) =>
      this.#admissionChanged(applications.byIndex('project', metadata.name));
    projects.subscribe({
      added: projectChanged,
      updated: (_, now) => projectChanged(now),
      deleted: projectChanged,
    });
    clusterSecrets.subscribe({
      added: secretChanged,
      updated: (old, now) => {
        secretChanged(old);
        secretChanged(now);
      },
      deleted: secretChanged,
    });
  }

  #applicationChanged(now: PullApplication, old?: PullApplication): void {
    this.#applications.add(keyOf(now));
    // Other Applications may claim the place that this one gave up.
    const places = new Set([now, ...(old ? [old] : [])].map(placeOfApplication));
    for (const place of places) {
      this.#wakePlace(place, keyOf(now));
    }
  }

  /** Reconciles those of the Applications that projects and cluster Secrets admit: those outside Argo CD's namespace. */
  #admissionChanged(applications: readonly PullApplication[]): void {
    for (const one of applications) {
      if (one.metadata.namespace !== this.#options.argoCdNamespace) {
        this.#applicationChanged(one);
      }
    }
  }

  #wakePlace(place: string | undefined, except?: string): void {
    if (place === undefined) {
      return;
    }
    this.#wake(this.#caches.applications.byIndex('place', place).filter((one) => keyOf(one) !== except));
  }

  #wake(applications: readonly PullApplication[]): void {
    for (const one of applications) {
      this.#applications.add(keyOf(one));
    }
  }
}

function placeOfApplication(application: PullApplication): string | undefined {
  const intent = pullIntentOf(application);
  return intent.kind === 'valid' ? placeKey(intent.target) : undefined;
}
