import type { Logger } from '../../lib/base/index.ts';
import {
  Informer,
  type InformerOptions,
  type KubeClient,
  type KubeObject,
  type Secret,
  secrets,
} from '../../lib/kube/index.ts';
import { secretText } from '../../lib/pki/index.ts';
import { type ManagedCluster, managedClusters } from '../hub/index.ts';
import { pullKeys } from './names.ts';
import { type PullApplication, type PullWork, payloadIn, pullApplications, pullWorks } from './resources.ts';
import { placeKey, pullIntentOf } from './target.ts';
import { applicationKeyOf } from './work.ts';

/** What the basic pull model reads, as caches that follow the hub's API server. */
export class BasicCaches {
  /** Applications with the pull label, by the clusters and the places on them that they ask for. */
  readonly applications: Informer<PullApplication>;
  /** Works with the pull label, by Application and by the place of the copy that they bring. */
  readonly works: Informer<PullWork>;
  readonly managedClusters: Informer<ManagedCluster>;
  /** Cluster Secrets of Argo CD, by the cluster's name and by the agent that they belong to. */
  readonly clusterSecrets: Informer<Secret>;
  readonly #all: readonly Informer<KubeObject>[];

  constructor(client: KubeClient, options: { argoCdNamespace: string; logger?: Logger }) {
    const { logger, argoCdNamespace } = options;
    const all: Informer<KubeObject>[] = [];
    const follow = <T extends KubeObject>(what: Omit<InformerOptions<T>, 'client'>): Informer<T> => {
      const informer = new Informer<T>({ client, logger, backoff: { maxMs: 30_000 }, ...what });
      all.push(informer as unknown as Informer<KubeObject>);
      return informer;
    };
    this.applications = follow({
      type: pullApplications,
      labelSelector: pullKeys.pull,
      transform: slimApplication,
      indexers: {
        cluster: (one) => targets(one).map(({ cluster }) => cluster),
        place: (one) => targets(one).map(placeKey),
        agent: agentNamesOf,
      },
    });
    this.works = follow({
      type: pullWorks,
      labelSelector: `${pullKeys.pull}=true`,
      indexers: {
        application: (work) => [applicationKeyOf(work) ?? ''],
        place: (work) => [placeOfWork(work) ?? ''],
      },
    });
    this.managedClusters = follow({ type: managedClusters, transform: slimCluster });
    this.clusterSecrets = follow({
      type: secrets,
      namespace: argoCdNamespace,
      labelSelector: `${pullKeys.secretType}=cluster`,
      transform: slimSecret,
      indexers: {
        name: (secret) => [secretText(secret.data, 'name') ?? ''],
        agent: ({ metadata }) => [metadata.labels?.[pullKeys.agentName] ?? ''],
      },
    });
    this.#all = all;
  }

  /** Follows the server until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#all.map((informer) => informer.run(signal)));
  }

  /** Resolves when every cache is complete. */
  async synced(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#all.map((informer) => informer.synced(signal)));
  }

  /** Kinds whose cache is not complete yet. */
  missing(): string[] {
    return this.#all.filter(({ hasSynced }) => !hasSynced).map(({ type }) => type.kind);
  }
}

/** Where a work puts its copy. */
export function placeOfWork(work: PullWork): string | undefined {
  const payload = payloadIn(work);
  const { namespace: cluster = '' } = work.metadata;
  return payload && placeKey({ cluster, namespace: payload.metadata.namespace, name: payload.metadata.name });
}

/** Agents of argocd-agent that may have an Application: named by its destination, or like its namespace. */
export function agentNamesOf({ metadata, spec }: PullApplication): string[] {
  return [...new Set([spec?.destination?.name ?? '', metadata.namespace ?? ''])].filter((name) => name !== '');
}

/** Whether a cluster Secret says how to log in; what it says is not kept. */
export function hasConfig(secret: Secret): boolean {
  return secret.data?.config !== undefined;
}

function targets(application: PullApplication) {
  const wish = pullIntentOf(application);
  return wish.kind === 'wanted' ? [wish.target] : [];
}

/** A large Application is large by its list of resources, which is not used here. */
function slimApplication(application: PullApplication): PullApplication {
  if (!application.status) {
    return application;
  }
  const { resources: _, summary: __, ...status } = application.status;
  return { ...application, status };
}

function slimCluster({ apiVersion, kind, metadata, status }: ManagedCluster): ManagedCluster {
  const claims = status?.clusterClaims?.filter(({ name }) => name === 'id.k8s.io') ?? [];
  const { name, uid, resourceVersion, labels, deletionTimestamp } = metadata;
  return {
    ...(apiVersion ? { apiVersion } : {}),
    ...(kind ? { kind } : {}),
    metadata: {
      name,
      ...(uid ? { uid } : {}),
      ...(resourceVersion ? { resourceVersion } : {}),
      ...(labels ? { labels } : {}),
      ...(deletionTimestamp ? { deletionTimestamp } : {}),
    },
    ...(claims.length > 0 ? { status: { clusterClaims: claims } } : {}),
  };
}

function slimSecret(secret: Secret): Secret {
  const { name, server, config } = secret.data ?? {};
  return {
    ...secret,
    data: {
      ...(name === undefined ? {} : { name }),
      ...(server === undefined ? {} : { server }),
      ...(config === undefined ? {} : { config: '' }),
    },
  };
}
