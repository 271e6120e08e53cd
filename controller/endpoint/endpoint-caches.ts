import { type Logger, principalObjects } from '../../lib/base/index.ts';
import {
  type CustomResourceDefinition,
  crds,
  type EndpointSlice,
  endpointSlices,
  Informer,
  type KubeClient,
  type KubeNode,
  type KubeObject,
  MultiNamespaceInformer,
  type MultiNamespaceInformerOptions,
  nodes,
  type ResourceType,
  type Service,
  services,
} from '../../lib/kube/index.ts';
import type { ServiceExposure } from './candidates.ts';
import { principalServices } from './discovery.ts';
import { apiServices, gateways, ingresses, routes, slimNode, tlsRoutes } from './ingress-kinds.ts';

/** How long `synced` waits for kinds that only some hubs have, in milliseconds. */
const optionalKindsTimeoutMs = 10_000;
const maxRetryMs = 30_000;
const serviceName = 'kubernetes.io/service-name';

/** Options of {@link EndpointCaches}. */
export interface EndpointCachesOptions {
  readonly client: KubeClient;
  /** The principal's Services. */
  readonly principals: readonly Pick<MultiNamespaceInformer<Service>, 'subscribe'>[];
  /** The namespaces whose objects are followed; empty: all. */
  readonly namespaces: readonly string[];
  readonly logger?: Logger | undefined;
}

/**
 * Informers for the objects that expose the principal. Kinds that only some hubs have are followed once the hub has their
 * CRD or API; nodes once a Service of the principal is a NodePort.
 */
export class EndpointCaches {
  /** The caches of kinds that every hub has. The owner runs them and waits for them, together with its own. */
  readonly namespaced: readonly MultiNamespaceInformer<KubeObject>[];
  readonly #services: MultiNamespaceInformer<Service>;
  readonly #slices: MultiNamespaceInformer<EndpointSlice>;
  readonly #ingresses;
  readonly #routes;
  readonly #tlsRoutes;
  readonly #gateways;
  readonly #nodes: DeferredInformer<KubeNode>;
  readonly #apis: readonly Informer<KubeObject>[];

  constructor({ client, principals, namespaces, logger }: EndpointCachesOptions) {
    const labelSelector = `${serviceName} in (${principalServices.join(',')})`;
    this.#slices = new MultiNamespaceInformer({ client, logger, namespaces, type: endpointSlices, labelSelector });
    this.#services = new MultiNamespaceInformer({
      client,
      logger,
      namespaces,
      type: services,
      labelSelector: principalObjects.labelSelector,
    });
    this.#ingresses = new MultiNamespaceInformer({ client, logger, namespaces, type: ingresses });
    this.namespaced = [
      this.#services,
      this.#slices,
      this.#ingresses,
    ] as unknown as MultiNamespaceInformer<KubeObject>[];
    const options = { client, logger, namespaces, backoff: { maxMs: maxRetryMs } };
    this.#routes = new DeferredInformer(options, routes);
    this.#tlsRoutes = new DeferredInformer(options, tlsRoutes('v1'));
    // A Gateway may be in any namespace, and nodes are in none.
    const everywhere = { ...options, namespaces: [] };
    this.#gateways = new DeferredInformer(everywhere, gateways('v1'));
    this.#nodes = new DeferredInformer({ ...everywhere, transform: slimNode }, nodes);
    const crd = (name: string, found: (version: string) => void) => {
      const informer = new Informer<CustomResourceDefinition>({
        client,
        logger,
        type: crds,
        fieldSelector: `metadata.name=${name}`,
      });
      const startVersion = ({ spec }: CustomResourceDefinition) => {
        const served = (spec?.versions ?? []).filter((version) => version.served).map((version) => version.name);
        const version = served.includes('v1') ? 'v1' : served.at(-1);
        if (version !== undefined) {
          found(version);
        }
      };
      informer.subscribe({ added: startVersion, updated: (_, now) => startVersion(now) });
      return informer;
    };
    const routeApi = new Informer({
      client,
      logger,
      type: apiServices,
      fieldSelector: `metadata.name=${routes.version}.${routes.group}`,
    });
    routeApi.subscribe({ added: () => this.#routes.start() });
    this.#apis = [
      routeApi,
      crd('tlsroutes.gateway.networking.k8s.io', (version) => this.#tlsRoutes.start(tlsRoutes(version))),
      crd('gateways.gateway.networking.k8s.io', (version) => this.#gateways.start(gateways(version))),
    ] as Informer<KubeObject>[];
    const startNodes = ({ spec }: Service) => {
      if (spec?.type === 'NodePort') {
        this.#nodes.start();
      }
    };
    for (const informer of principals) {
      informer.subscribe({ added: startNodes, updated: (_, now) => startNodes(now) });
    }
  }

  /** The objects that may expose a Service. */
  exposureOf(service: Service | undefined, namespace: string): ServiceExposure {
    return {
      service,
      services: this.#services.list(namespace),
      slices: this.#slices
        .list(namespace)
        .filter(({ metadata }) => metadata.labels?.[serviceName] === service?.metadata.name),
      nodes: service?.spec?.type === 'NodePort' ? this.#nodes.list() : [],
      ingresses: this.#ingresses.list(namespace),
      routes: this.#routes.list(namespace),
      tlsRoutes: this.#tlsRoutes.list(namespace),
      gateways: this.#gateways.list(),
    };
  }

  /** Calls `changed` for each change, with the namespace that it concerns; without one it concerns all namespaces. */
  subscribe(changed: (namespace?: string) => void): void {
    const onChange = ({ metadata }: KubeObject) => changed(metadata.namespace);
    for (const informer of this.namespaced) {
      informer.subscribe({ added: onChange, updated: (_, now) => onChange(now), deleted: onChange });
    }
    for (const informer of [this.#routes, this.#tlsRoutes]) {
      informer.subscribe(onChange);
    }
    // A Gateway may serve routes of other namespaces.
    for (const informer of [this.#gateways, this.#nodes]) {
      informer.subscribe(() => changed());
    }
  }

  /** Runs all informers but {@link EndpointCaches.namespaced} until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const deferred = [this.#routes, this.#tlsRoutes, this.#gateways, this.#nodes];
    await Promise.all([...this.#apis, ...deferred].map((one) => one.run(signal)));
  }

  /** Kinds of every hub whose cache is not complete yet, without {@link EndpointCaches.namespaced}. */
  missing(): string[] {
    return this.#apis.filter(({ hasSynced }) => !hasSynced).map(({ type }) => type.kind);
  }

  /**
   * Resolves when all caches but {@link EndpointCaches.namespaced} are complete. Kinds that only some hubs have are waited
   * for at most 10 s: the controller may not be allowed to read them.
   */
  async synced(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#apis.map((informer) => informer.synced(signal)));
    const limit = AbortSignal.any([signal, AbortSignal.timeout(optionalKindsTimeoutMs)]);
    const deferred = [this.#routes, this.#tlsRoutes, this.#gateways, this.#nodes];
    await Promise.all(deferred.map((one) => one.synced(limit).catch(() => signal.throwIfAborted())));
  }
}

/** An informer that starts when {@link DeferredInformer.start} is called. */
class DeferredInformer<T extends KubeObject> {
  readonly #options: Omit<MultiNamespaceInformerOptions<T>, 'type'>;
  readonly #started = Promise.withResolvers<MultiNamespaceInformer<T>>();
  readonly #type: ResourceType<T>;
  readonly #handlers: ((object: KubeObject) => void)[] = [];
  #informer: MultiNamespaceInformer<T> | undefined;

  constructor(options: Omit<MultiNamespaceInformerOptions<T>, 'type'>, type: ResourceType<T>) {
    this.#options = options;
    this.#type = type;
  }

  start(type: ResourceType<T> = this.#type): void {
    if (this.#informer !== undefined) {
      return;
    }
    this.#informer = new MultiNamespaceInformer<T>({ ...this.#options, type });
    for (const handler of this.#handlers) {
      this.#connect(this.#informer, handler);
    }
    this.#started.resolve(this.#informer);
  }

  subscribe(changed: (object: KubeObject) => void): void {
    this.#handlers.push(changed);
    if (this.#informer) {
      this.#connect(this.#informer, changed);
    }
  }

  list(namespace?: string): T[] {
    return this.#informer?.list(namespace) ?? [];
  }

  async run(signal: AbortSignal): Promise<void> {
    const aborted = new Promise<undefined>((resolve) => {
      if (signal.aborted) {
        resolve(undefined);
      }
      signal.addEventListener('abort', () => resolve(undefined), { once: true });
    });
    const informer = await Promise.race([this.#started.promise, aborted]);
    await informer?.run(signal);
  }

  async synced(signal: AbortSignal): Promise<void> {
    await this.#informer?.settled(signal);
  }

  #connect(informer: MultiNamespaceInformer<T>, changed: (object: KubeObject) => void): void {
    informer.subscribe({
      added: changed,
      updated: (old, now) => {
        if (contentOf(old) !== contentOf(now)) {
          changed(now);
        }
      },
      deleted: changed,
    });
  }
}

/** The parts of an object that matter here, as text: not its metadata. */
function contentOf(object: KubeObject): string {
  const { spec, status } = object as KubeObject & { spec?: unknown; status?: unknown };
  return JSON.stringify([spec, status]);
}
