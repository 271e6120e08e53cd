import { type Logger, wellKnown } from '../../lib/base/index.ts';
import {
  type ConfigMap,
  certificateSigningRequests,
  configMaps,
  crds,
  type Deployment,
  deployments,
  Informer,
  type InformerOptions,
  type KubeClient,
  type KubeObject,
  keyOf,
  leases,
  MultiNamespaceInformer,
  type MultiNamespaceInformerOptions,
  namespaces,
  type Secret,
  type Service,
  type StatefulSet,
  secrets,
  services,
  statefulSets,
} from '../../lib/kube/index.ts';
import { EndpointCaches, principalServices, type ServiceExposure } from '../endpoint/index.ts';
import { argoCdApplications } from './argo-kinds.ts';
import type { FleetReasons } from './condition-types.ts';
import { deliverableCrd, operatorKinds } from './crds.ts';
import { clustersOf, type HubApplication, slimApplication, urlsIn } from './hub-application.ts';
import { addOnName, argoCdParamsName, hubNames, keys, managedBy, redisProxyName, signerName } from './names.ts';
import {
  addOnDeploymentConfigs,
  clusterManagementAddOns,
  type GitOpsCluster,
  gitOpsClusters,
  managedClusterAddOns,
  managedClusters,
  manifestWorks,
  placementDecisions,
  placements,
} from './ocm-kinds.ts';
import { type PrincipalNamespaces, principalNamespaceOf } from './principal-namespace.ts';

/** Name of the CRD of Applications. */
export const applicationsCrd = 'applications.argoproj.io';

/** Names of the application controller in Argo CD's manifests and on OpenShift. */
const applicationControllerNames = ['argocd-application-controller', 'openshift-gitops-application-controller'];

/** ConfigMap with the principal's parameters. */
const principalParamsName = 'argocd-agent-params';

/** Names of the CRDs that managed clusters may get. */
export const deliveredCrds: readonly string[] = operatorKinds;

const ours = `${wellKnown.managedByLabel}=${managedBy}`;
const named = (name: string) => `metadata.name=${name}`;
const byOwner = { owner: (object: KubeObject) => [object.metadata.annotations?.[keys.owner] ?? ''] };
const byCluster = { cluster: (object: KubeObject) => [object.metadata.labels?.[keys.clusterName] ?? ''] };

/** Options of {@link Caches}. */
export interface CachesOptions {
  readonly client: KubeClient;
  readonly logger?: Logger | undefined;
  /** The namespaces with a principal; empty: all. Secrets and workloads of others are not read. */
  readonly watchNamespaces?: readonly string[] | undefined;
  /** The one of them whose principal serves the GitOpsClusters of other namespaces; undefined: they are not served. */
  readonly argoCdNamespace?: string | undefined;
}

/** Why a GitOpsCluster is not served. */
export interface NamespaceObstacle {
  readonly reason: Exclude<FleetReasons['RBACReady'], 'Success'>;
  readonly message: string;
}

/** The informers of the advanced model: all objects on the hub that the controller reads. */
export class Caches {
  readonly gitOpsClusters;
  readonly placements;
  readonly decisions;
  readonly managedClusters;
  /** All namespaces, by name only: OCM creates a cluster's namespace after it has accepted the cluster. */
  readonly namespaces;
  readonly addOns;
  readonly works;
  readonly configs;
  readonly addOnRegistrations;
  readonly ownSecrets;
  readonly bundles;
  readonly connections;
  /** CertificateSigningRequests for our signer. */
  readonly requests;
  /** The hub's Applications, indexed by name and URL of the cluster (see {@link clustersOf}). `synced` excludes them: the CRD may be missing. */
  readonly applications: Informer<HubApplication>;
  readonly #sharedSecrets: Readonly<Record<string, MultiNamespaceInformer<Secret>>>;
  readonly #principals: readonly MultiNamespaceInformer<Service>[];
  readonly #endpoints: EndpointCaches;
  readonly #crds;
  readonly #argoCd;
  readonly #applicationControllers: readonly [
    MultiNamespaceInformer<StatefulSet>,
    MultiNamespaceInformer<Deployment>,
  ][];
  readonly #argoCdDeployments: MultiNamespaceInformer<Deployment>;
  readonly #argoCdParams: MultiNamespaceInformer<ConfigMap>;
  readonly #principalParams: MultiNamespaceInformer<ConfigMap>;
  readonly #redisProxies: MultiNamespaceInformer<Service>;
  /** Caches of the whole hub. */
  readonly #all: readonly Informer<KubeObject>[];
  /** Caches of the namespaces that are served. */
  readonly #served: readonly MultiNamespaceInformer<KubeObject>[];
  readonly #watchNamespaces: readonly string[];
  readonly #principalNamespaces: PrincipalNamespaces;
  #hasSettled = false;

  constructor({ client, logger, watchNamespaces = [], argoCdNamespace }: CachesOptions) {
    this.#watchNamespaces = watchNamespaces;
    const isServed = argoCdNamespace && (watchNamespaces.length === 0 || watchNamespaces.includes(argoCdNamespace));
    this.#principalNamespaces = { own: watchNamespaces, shared: isServed ? argoCdNamespace : undefined };
    const all: Informer<KubeObject>[] = [];
    const follow = <T extends KubeObject>(options: Omit<InformerOptions<T>, 'client'>): Informer<T> => {
      const informer = new Informer<T>({ client, logger, ...options });
      all.push(informer as unknown as Informer<KubeObject>);
      return informer;
    };
    const served: MultiNamespaceInformer<KubeObject>[] = [];
    const followServed = <T extends KubeObject>(
      options: Omit<MultiNamespaceInformerOptions<T>, 'client' | 'namespaces'>,
    ): MultiNamespaceInformer<T> => {
      const informer = new MultiNamespaceInformer<T>({ client, logger, namespaces: watchNamespaces, ...options });
      served.push(informer as unknown as MultiNamespaceInformer<KubeObject>);
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
    this.namespaces = follow({
      type: namespaces,
      transform: ({ metadata: { name, uid = '', resourceVersion = '' } }) => ({
        metadata: { name, uid, resourceVersion },
      }),
    });
    this.addOns = follow({ type: managedClusterAddOns, fieldSelector: named(addOnName), indexers: byOwner });
    this.works = follow({ type: manifestWorks, labelSelector: ours, indexers: byOwner });
    this.configs = follow({ type: addOnDeploymentConfigs });
    this.addOnRegistrations = follow({ type: clusterManagementAddOns, fieldSelector: named(addOnName) });
    this.ownSecrets = followServed({
      type: secrets,
      labelSelector: ours,
      indexers: { ...byOwner, ...byCluster, url: urlsIn },
    });
    this.bundles = followServed({ type: configMaps, labelSelector: ours });
    this.connections = followServed({
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
      shared.map((name) => [name, followServed({ type: secrets, fieldSelector: named(name) })]),
    );
    this.#principals = principalServices.map((name) => followServed({ type: services, fieldSelector: named(name) }));
    const principals = this.#principals;
    this.#endpoints = new EndpointCaches({ client, principals, namespaces: watchNamespaces, logger });
    this.#crds = deliveredCrds.map((name) =>
      follow({ type: crds, fieldSelector: named(name), transform: deliverableCrd }),
    );
    this.#argoCd = ['argocd-server', 'argocd-redis', ...principalServices].map((name) =>
      followServed({ type: deployments, fieldSelector: named(name) }),
    );
    this.#applicationControllers = applicationControllerNames.map((name) => [
      followServed({ type: statefulSets, fieldSelector: named(name) }),
      followServed({ type: deployments, fieldSelector: named(name) }),
    ]);
    this.#argoCdDeployments = followServed({ type: deployments, labelSelector: `${wellKnown.partOfLabel}=argocd` });
    this.#argoCdParams = followServed({ type: configMaps, fieldSelector: named(argoCdParamsName) });
    this.#principalParams = followServed({ type: configMaps, fieldSelector: named(principalParamsName) });
    this.#redisProxies = followServed({ type: services, fieldSelector: named(redisProxyName) });
    this.#all = all;
    this.#served = [...served, ...this.#endpoints.namespaced];
    this.applications = new Informer<HubApplication>({
      client,
      logger,
      type: argoCdApplications,
      transform: slimApplication,
      indexers: { cluster: clustersOf },
      backoff: { maxMs: 30_000 },
    });
  }

  /** The namespace of a GitOpsCluster's principal, authority and cluster Secrets: its own one or Argo CD's. */
  principalNamespaceOf(gitOpsCluster: Pick<GitOpsCluster, 'metadata'>): string {
    const key = keyOf(gitOpsCluster);
    return principalNamespaceOf(gitOpsCluster, this.#principalNamespaces, {
      hasAddOns: () => this.addOns.byIndex('owner', key).length > 0,
      hasSecretsIn: (namespace) =>
        this.ownSecrets.byIndex('owner', key).some(({ metadata }) => metadata.namespace === namespace),
    });
  }

  /** The GitOpsClusters of all namespaces that share the principal of a namespace. */
  sharing(principalNamespace: string): GitOpsCluster[] {
    return this.gitOpsClusters.list().filter((one) => this.principalNamespaceOf(one) === principalNamespace);
  }

  /** Why nothing is done for a GitOpsCluster; undefined when it is served. */
  obstacleTo(gitOpsCluster: Pick<GitOpsCluster, 'metadata'>): NamespaceObstacle | undefined {
    if (this.#watchNamespaces.length === 0) {
      return undefined;
    }
    const namespace = this.principalNamespaceOf(gitOpsCluster);
    if (!this.#watchNamespaces.includes(namespace)) {
      return { reason: 'NamespaceNotServed', message: this.#refusal(namespace) };
    }
    const unread = this.#served.find((informer) => informer.problemIn(namespace) !== undefined);
    return (
      unread && {
        reason: 'NamespaceNotReadable',
        message: `namespace ${namespace} cannot be read: ${unread.problemIn(namespace)}; helm upgrade restores the Role and RoleBinding of the controller there`,
      }
    );
  }

  #refusal(namespace: string): string {
    const { shared } = this.#principalNamespaces;
    const what = `the controller has no rights in namespace ${namespace}, so nothing is done for this GitOpsCluster`;
    const list = `add the namespace to the chart's value controller.gitOpsNamespaces (without the chart: to --watch-namespaces, with a Role), or set controller.allNamespaces to true`;
    return shared === undefined
      ? `${what}: ${list}`
      : `${what}, whose clusters have certificates of an authority there: ${list}; or delete this GitOpsCluster and create it again, for the principal in namespace ${shared}`;
  }

  /** One of the Secrets in `hubNames` that all GitOpsClusters of a principal share. */
  sharedSecret(namespace: string, name: string): Secret | undefined {
    return this.#sharedSecrets[name]?.get({ namespace, name });
  }

  /** The Secrets of all principals in `hubNames` that hold a certificate and its key. */
  certificateSecrets(): Secret[] {
    const { authority, principalTls, resourceProxyTls } = hubNames;
    return [authority, principalTls, resourceProxyTls].flatMap((name) => this.#sharedSecrets[name]?.list() ?? []);
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
    return this.#hubDeployment(namespace, name)?.spec?.template?.spec?.containers[0]?.image;
  }

  /** Application controllers of the hub's own Argo CD in a namespace. */
  applicationControllers(namespace: string): (StatefulSet | Deployment)[] {
    return this.#applicationControllers.flat().flatMap((informer) => informer.list(namespace));
  }

  /** Programs of the hub's own Argo CD in a namespace. */
  argoCdWorkloads(namespace: string): (StatefulSet | Deployment)[] {
    const controllers = this.#applicationControllers.flatMap(([informer]) => informer.list(namespace));
    return [...this.#argoCdDeployments.list(namespace), ...controllers];
  }

  /** The parameters of Argo CD's programs in a namespace. */
  argoCdParams(namespace: string): ConfigMap | undefined {
    return this.#argoCdParams.get({ namespace, name: argoCdParamsName });
  }

  /** The Redis to which the principal's Redis proxy forwards; undefined when the principal of a namespace has no proxy. */
  redisBehindProxy(namespace: string): string | undefined {
    const params = this.#principalParams.get({ namespace, name: principalParamsName });
    return this.#redisProxies.get({ namespace, name: redisProxyName })
      ? params?.data?.['principal.redis.server.address'] || 'argocd-redis:6379'
      : undefined;
  }

  /** Image of the principal in a namespace. */
  principalImage(namespace: string): string | undefined {
    return this.principalDeployment(namespace)?.spec?.template?.spec?.containers[0]?.image;
  }

  /** The principal in a namespace. Its Deployment has the name of its Service. */
  principalDeployment(namespace: string): Deployment | undefined {
    return principalServices.map((name) => this.#hubDeployment(namespace, name)).find(Boolean);
  }

  #hubDeployment(namespace: string, name: string): Deployment | undefined {
    return this.#argoCd.flatMap((informer) => informer.get({ namespace, name }) ?? [])[0];
  }

  /**
   * Calls `changed` with the namespace of a principal for each change of a Secret, Service, ConfigMap, Deployment or
   * StatefulSet that concerns all its GitOpsClusters, and when the namespace has become readable.
   */
  onNamespaceChange(changed: (namespace: string) => void): void {
    const informers = [
      ...Object.values(this.#sharedSecrets),
      ...this.#principals,
      ...this.#argoCd,
      ...this.#applicationControllers.flat(),
      this.#argoCdDeployments,
      this.#argoCdParams,
      this.#principalParams,
      this.#redisProxies,
      this.bundles,
    ];
    for (const informer of informers as unknown as MultiNamespaceInformer<KubeObject>[]) {
      const onChange = ({ metadata }: KubeObject) => changed(metadata.namespace ?? '');
      informer.subscribe({ added: onChange, updated: (_, now) => onChange(now), deleted: onChange });
    }
    for (const namespace of this.#watchNamespaces) {
      // They reject when the caches stop.
      const complete = Promise.all(this.#served.map((informer) => informer.syncedIn(namespace)));
      complete.then(() => changed(namespace)).catch(() => undefined);
    }
    this.#endpoints.subscribe((namespace) => {
      const all = this.gitOpsClusters.list().map((one) => this.principalNamespaceOf(one));
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
      ...this.#served.map((informer) => informer.run(signal)),
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

  /** Resolves when every cache is complete. Served namespaces that cannot be read are not waited for. */
  async synced(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#all.map((informer) => informer.synced(signal)));
    await Promise.all(this.#served.map((informer) => informer.settled(signal)));
    await this.#endpoints.synced(signal);
    this.#hasSettled = true;
  }

  /** Kinds whose cache is not complete yet, except those that {@link Caches.synced} does not wait for. */
  missing(): string[] {
    const awaited = this.#hasSettled ? this.#all : [...this.#all, ...this.#served];
    const missing = awaited.filter(({ hasSynced }) => !hasSynced).map(({ type }) => type.kind);
    return [...new Set([...missing, ...this.#endpoints.missing()])];
  }
}
