import { randomUUID } from 'node:crypto';
import type { Logger } from '../../lib/base/index.ts';
import { EventRecorder, type KubeClient, keyOf, type Secret, WorkQueue } from '../../lib/kube/index.ts';
import { secretText } from '../../lib/pki/index.ts';
import { areIdle, runQueues } from '../daemon/index.ts';
import { Applier, identifyHub } from '../hub/index.ts';
import { ApplicationReconciler } from './application-reconciler.ts';
import type { BasicDeps } from './basic-deps.ts';
import { BasicCaches, placeOfWork } from './caches.ts';
import { pullKeys } from './names.ts';
import type { PullApplication } from './resources.ts';
import { isOwnSecret, SecretReconciler } from './secret-reconciler.ts';
import { placeKey, pullIntentOf } from './target.ts';
import { applicationKeyOf } from './work.ts';

/** Options of the basic pull model's controller. */
export interface BasicControllerOptions {
  readonly client: KubeClient;
  readonly logger: Logger;
  /** Name of this process in Events. */
  readonly instance: string;
  /** Argo CD's namespace on the hub, for cluster Secrets. */
  readonly argoCdNamespace: string;
  /** Applications worked on at the same time. Default 16. */
  readonly concurrency?: number;
  /** How long a change of an Application waits for the operation that is under way. Default 5 minutes. */
  readonly patienceMs?: number;
  readonly clock?: () => Date;
}

/**
 * The basic pull model: Applications that are labelled for it go to their managed clusters as ManifestWorks, and their
 * status comes back. A change of one object leads to work on the Applications that it concerns, and on no others.
 */
export class BasicController {
  readonly #options: BasicControllerOptions;
  readonly #caches: BasicCaches;
  readonly #events: EventRecorder;
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

  /** Works and Secrets written so far. */
  get writes(): number {
    return this.#works.writes + this.#secrets.writes;
  }

  /** Figures for metrics, by queue. */
  get stats() {
    return { applications: this.#applications.stats, clusters: this.#clusters.stats };
  }

  /** Kinds whose cache is not complete; empty when work is being done. */
  missing(): string[] {
    return this.#caches.missing();
  }

  /** Whether nothing is under way or due. */
  get isIdle(): boolean {
    return areIdle([this.#applications, this.#clusters]);
  }

  /** Works until aborted. */
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

  /** Handlers hear of everything that is there when they subscribe: that is the start, and finds what was left behind. */
  #subscribe(): void {
    const { applications, works, managedClusters, clusterSecrets } = this.#caches;
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
      // Of Applications that are gone, works may wait for the cluster's end.
      for (const work of works.list(name)) {
        workChanged(applicationKeyOf(work));
      }
    };
    managedClusters.subscribe({
      added: ({ metadata }) => clusterChanged(metadata.name),
      updated: (old, now) => {
        // Everything else in it changes often and means nothing here.
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
      }
      if (secret.metadata.name.endsWith('-secret')) {
        this.#clusters.add(secret.metadata.name.slice(0, -7));
      }
      const agent = secret.metadata.labels?.[pullKeys.agentName];
      if (agent) {
        this.#wake(applications.byIndex('agent', agent));
      }
    };
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
    // Others may ask for the place that it leaves.
    const places = new Set([now, ...(old ? [old] : [])].map(placeOfApplication));
    for (const place of places) {
      this.#wakePlace(place, keyOf(now));
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
  const wish = pullIntentOf(application);
  return wish.kind === 'wanted' ? placeKey(wish.target) : undefined;
}
