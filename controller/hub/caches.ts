import { type Logger, wellKnown } from '../../lib/base/index.ts';
import {
  certificateSigningRequests,
  configMaps,
  crds,
  deployments,
  Informer,
  type InformerOptions,
  type KubeClient,
  type KubeObject,
  leases,
  type Secret,
  type Service,
  secrets,
  services,
} from '../../lib/kube/index.ts';
import { EndpointCaches, principalServices, type ServiceExposure } from '../endpoint/index.ts';
import { argoCdApplications } from './argo-kinds.ts';
import { deliverableCrd, operatorKinds } from './crds.ts';
import { clustersOf, type HubApplication, slimApplication } from './hub-application.ts';
import { addOnName, hubNames, keys, managedBy, signerName } from './names.ts';
import {
  addOnDeploymentConfigs,
  clusterManagementAddOns,
  gitOpsClusters,
  managedClusterAddOns,
  managedClusters,
  manifestWorks,
  placementDecisions,
  placements,
} from './ocm-kinds.ts';

/** Name of the CRD of Applications. */
export const applicationsCrd = 'applications.argoproj.io';

/** Names of the CRDs that managed clusters may get. */
export const deliveredCrds: readonly string[] = operatorKinds;

const ours = `${wellKnown.managedByLabel}=${managedBy}`;
const named = (name: string) => `metadata.name=${name}`;
const byOwner = { owner: (object: KubeObject) => [object.metadata.annotations?.[keys.owner] ?? ''] };
const byCluster = { cluster: (object: KubeObject) => [object.metadata.labels?.[keys.clusterName] ?? ''] };

/** The informers of the advanced model: all objects on the hub that the controller reads. */
export class Caches {
  readonly gitOpsClusters;
  readonly placements;
  readonly decisions;
  readonly managedClusters;
  readonly addOns;
  readonly works;
  readonly configs;
  readonly addOnRegistrations;
  readonly ownSecrets;
  readonly bundles;
  readonly connections;
  /** CertificateSigningRequests for our signer. */
  readonly requests;
  /** The hub's Applications, indexed by cluster (see {@link clustersOf}). `synced` excludes them: the CRD may be missing. */
  readonly applications: Informer<HubApplication>;
  readonly #sharedSecrets: Readonly<Record<string, Informer<Secret>>>;
  readonly #principals: readonly Informer<Service>[];
  readonly #endpoints: EndpointCaches;
  readonly #crds;
  readonly #argoCd;
  readonly #all: readonly Informer<KubeObject>[];

  constructor(client: KubeClient, logger?: Logger) {
    const all: Informer<KubeObject>[] = [];
    const follow = <T extends KubeObject>(options: Omit<InformerOptions<T>, 'client'>): Informer<T> => {
      const informer = new Informer<T>({ client, logger, ...options });
      all.push(informer as unknown as Informer<KubeObject>);
      return informer;
    };
    this.gitOpsClusters = follow({ type: gitOpsClusters });
    this.placements = follow({ type: placements });
    this.decisions = follow({
      type: placementDecisions,
      indexers: {
        placement: ({ metadata }) => [`${metadata.namespace}/${metadata.labels?.[keys.placement] ?? ''}`],
      },
    });
    this.managedClusters = follow({ type: managedClusters });
    this.addOns = follow({ type: managedClusterAddOns, fieldSelector: named(addOnName), indexers: byOwner });
    this.works = follow({ type: manifestWorks, labelSelector: ours, indexers: byOwner });
    this.configs = follow({ type: addOnDeploymentConfigs });
    this.addOnRegistrations = follow({ type: clusterManagementAddOns, fieldSelector: named(addOnName) });
    this.ownSecrets = follow({ type: secrets, labelSelector: ours, indexers: { ...byOwner, ...byCluster } });
    this.bundles = follow({ type: configMaps, labelSelector: ours });
    this.connections = follow({
      type: leases,
      labelSelector: `${wellKnown.partOfLabel}=argocd-agent,app.kubernetes.io/component=connection`,
      indexers: {
        agent: ({ metadata }) => [`${metadata.namespace}/${metadata.labels?.[wellKnown.agentNameLabel] ?? ''}`],
      },
    });
    this.requests = follow({ type: certificateSigningRequests, fieldSelector: `spec.signerName=${signerName}` });
    // Secrets with these names may belong to users and lack our label.
    const { authority, authorityTrust, principalTls, resourceProxyTls, jwt } = hubNames;
    const shared = [authority, authorityTrust, principalTls, resourceProxyTls, jwt];
    this.#sharedSecrets = Object.fromEntries(
      shared.map((name) => [name, follow({ type: secrets, fieldSelector: named(name) })]),
    );
    this.#principals = principalServices.map((name) => follow({ type: services, fieldSelector: named(name) }));
    this.#endpoints = new EndpointCaches(client, this.#principals, logger);
    this.#crds = deliveredCrds.map((name) =>
      follow({ type: crds, fieldSelector: named(name), transform: deliverableCrd }),
    );
    this.#argoCd = ['argocd-server', 'argocd-redis', ...principalServices].map((name) =>
      follow({ type: deployments, fieldSelector: named(name) }),
    );
    this.#all = all;
    this.applications = new Informer<HubApplication>({
      client,
      logger,
      type: argoCdApplications,
      transform: slimApplication,
      indexers: { cluster: clustersOf },
      backoff: { maxMs: 30_000 },
    });
  }

  /** One of the Secrets in `hubNames` that all GitOpsClusters of a namespace share. */
  sharedSecret(namespace: string, name: string): Secret | undefined {
    return this.#sharedSecrets[name]?.get({ namespace, name });
  }

  /** The principal's Service in a namespace, and the objects that expose it. */
  serviceExposure(namespace: string): ServiceExposure {
    return this.#endpoints.exposureOf(this.#principals.flatMap((informer) => informer.list(namespace))[0], namespace);
  }

  /** A CRD of the hub, stripped for delivery (see {@link deliverableCrd}). */
  crd(name: string) {
    return this.#crds.map((informer) => informer.get({ name })).find(Boolean);
  }

  /** Image of a Deployment on the hub: `argocd-server`, `argocd-redis` or the principal. */
  hubImage(namespace: string, name: string): string | undefined {
    const [deployment] = this.#argoCd.flatMap((informer) => informer.get({ namespace, name }) ?? []);
    return deployment?.spec?.template?.spec?.containers[0]?.image;
  }

  /** Image of the principal in a namespace. Its Deployment has the name of its Service. */
  principalImage(namespace: string): string | undefined {
    return principalServices.map((name) => this.hubImage(namespace, name)).find(Boolean);
  }

  /** Calls `changed` for each change of a Secret, Service, ConfigMap or Deployment that concerns a whole namespace. */
  onNamespaceChange(changed: (namespace: string) => void): void {
    const informers = [...Object.values(this.#sharedSecrets), ...this.#principals, ...this.#argoCd, this.bundles];
    for (const informer of informers as unknown as Informer<KubeObject>[]) {
      const onChange = ({ metadata }: KubeObject) => changed(metadata.namespace ?? '');
      informer.subscribe({ added: onChange, updated: (_, now) => onChange(now), deleted: onChange });
    }
    this.#endpoints.subscribe((namespace) => {
      const all = this.gitOpsClusters.list().map(({ metadata }) => metadata.namespace ?? '');
      for (const one of namespace === undefined ? new Set(all) : [namespace]) {
        changed(one);
      }
    });
  }

  /** Calls `changed` when a CRD to deliver changes. */
  onCrdChange(changed: () => void): void {
    for (const informer of this.#crds) {
      informer.subscribe({
        added: changed,
        updated: (old, now) => {
          if (JSON.stringify(old.spec) !== JSON.stringify(now.spec)) {
            changed();
          }
        },
        deleted: changed,
      });
    }
  }

  /** Runs all informers until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([
      ...this.#all.map((informer) => informer.run(signal)),
      this.#endpoints.run(signal),
      this.#runApplications(signal),
    ]);
  }

  /** Waits for the CRD of Applications: Argo CD may be installed on the hub after this controller started. */
  async #runApplications(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const stops = this.#crds.map((informer) =>
      informer.subscribe({ added: ({ metadata }) => metadata.name === applicationsCrd && resolve() }),
    );
    signal.addEventListener('abort', () => resolve(), { once: true });
    await promise;
    for (const stop of stops) {
      stop();
    }
    if (!signal.aborted) {
      await this.applications.run(signal);
    }
  }

  /** Resolves when every cache is complete. */
  async synced(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#all.map((informer) => informer.synced(signal)));
    await this.#endpoints.synced(signal);
  }

  /** Kinds whose cache is not complete yet. */
  missing(): string[] {
    const missing = this.#all.filter(({ hasSynced }) => !hasSynced).map(({ type }) => type.kind);
    return [...new Set([...missing, ...this.#endpoints.missing()])];
  }
}
