import { routingUrl } from '../../lib/argocd/index.ts';
import { type Logger, wellKnown } from '../../lib/base/index.ts';
import {
  Informer,
  type InformerOptions,
  type KubeClient,
  type KubeObject,
  type Secret,
  secrets,
} from '../../lib/kube/index.ts';
import { secretText } from '../../lib/pki/index.ts';
import { argoProjects, type ManagedCluster, managedClusters, urlsIn } from '../hub/index.ts';
import { pullKeys } from './names.ts';
import { type PullApplication, type PullWork, payloadIn, projectOf, pullApplications, pullWorks } from './resources.ts';
import { placeKey, pullIntentOf } from './target.ts';
import { applicationKeyOf } from './work.ts';

/** The informers of the basic pull model. */
export class BasicCaches {
  /** Applications with the pull label, indexed by `cluster`, `place` (see {@link placeKey}), `agent`, `url` and `project`. */
  readonly applications: Informer<PullApplication>;
  /** ManifestWorks with the pull label, indexed by `application` and by the `place` of their copy. */
  readonly works: Informer<PullWork>;
  readonly managedClusters: Informer<ManagedCluster>;
  /** Argo CD's cluster Secrets, indexed by the cluster's `name` and `url`, and by `agent`. */
  readonly clusterSecrets: Informer<Secret>;
  /** AppProjects of Argo CD's namespace. */
  readonly projects: Informer<KubeObject>;
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
        url: (one) => [routingUrl(one)].filter((url) => url !== undefined),
        project: (one) => [projectOf(one)],
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
      labelSelector: `${wellKnown.secretTypeLabel}=cluster`,
      transform: slimSecret,
      indexers: {
        name: (secret) => [secretText(secret.data, 'name') ?? ''],
        agent: ({ metadata }) => [metadata.labels?.[wellKnown.agentNameLabel] ?? ''],
        url: urlsIn,
      },
    });
    this.projects = follow({ type: argoProjects, namespace: argoCdNamespace });
    this.#all = all;
  }

  /** Runs all informers until aborted. */
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

/** The place of a work's copy (see {@link placeKey}). Undefined when the work contains no Application. */
export function placeOfWork(work: PullWork): string | undefined {
  const payload = payloadIn(work);
  const { namespace: cluster = '' } = work.metadata;
  return payload && placeKey({ cluster, namespace: payload.metadata.namespace, name: payload.metadata.name });
}

/** Names of the argocd-agent agents that may own an Application: its destination's name and its namespace. */
export function agentNamesOf({ metadata, spec }: PullApplication): string[] {
  return [...new Set([spec?.destination?.name ?? '', metadata.namespace ?? ''])].filter((name) => name !== '');
}

/** Whether a cluster Secret contains credentials. The cache drops the credentials themselves. */
export function hasConfig(secret: Secret): boolean {
  return secret.data?.config !== undefined;
}

function targets(application: PullApplication) {
  const intent = pullIntentOf(application);
  return intent.kind === 'valid' ? [intent.target] : [];
}

/** Drops the list of resources, which makes large Applications large and is not used here. */
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
  const { name, server, config, project } = secret.data ?? {};
  return {
    ...secret,
    data: {
      ...(name === undefined ? {} : { name }),
      ...(server === undefined ? {} : { server }),
      ...(project === undefined ? {} : { project }),
      ...(config === undefined ? {} : { config: '' }),
    },
  };
}
