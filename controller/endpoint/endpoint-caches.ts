import type { Logger } from '../../lib/base/index.ts';
import {
  type CustomResourceDefinition,
  crds,
  Informer,
  type InformerOptions,
  type KubeClient,
  type KubeNode,
  type KubeObject,
  nodes,
  type ResourceType,
  type Service,
} from '../../lib/kube/index.ts';
import type { ServiceExposure } from './candidates.ts';
import { apiServices, gateways, ingresses, routes, slimNode, tlsRoutes } from './ingress-kinds.ts';

/** How long the start waits for kinds that the hub has beyond Kubernetes' own. */
const patienceMs = 10_000;
const retryMs = 30_000;

/**
 * What leads to the principal from outside, as caches that follow the hub's API server. Kinds that only some hubs have are
 * followed from when the hub has them; nodes from when a Service of the principal has node ports.
 */
export class EndpointCaches {
  readonly #ingresses;
  readonly #routes;
  readonly #tlsRoutes;
  readonly #gateways;
  readonly #nodes: DeferredInformer<KubeNode>;
  readonly #signs: readonly Informer<KubeObject>[];

  constructor(client: KubeClient, principals: readonly Informer<Service>[], logger?: Logger) {
    const options = { client, logger, backoff: { maxMs: retryMs } };
    this.#ingresses = new Informer({ client, logger, type: ingresses });
    this.#routes = new DeferredInformer(options, routes);
    this.#tlsRoutes = new DeferredInformer(options, tlsRoutes('v1'));
    this.#gateways = new DeferredInformer(options, gateways('v1'));
    this.#nodes = new DeferredInformer({ ...options, transform: slimNode }, nodes);
    const crd = (name: string, found: (version: string) => void) => {
      const informer = new Informer<CustomResourceDefinition>({
        client,
        logger,
        type: crds,
        fieldSelector: `metadata.name=${name}`,
      });
      const look = ({ spec }: CustomResourceDefinition) => {
        const served = (spec?.versions ?? []).filter((version) => version.served).map((version) => version.name);
        const version = served.includes('v1') ? 'v1' : served.at(-1);
        if (version !== undefined) {
          found(version);
        }
      };
      informer.subscribe({ added: look, updated: (_, now) => look(now) });
      return informer;
    };
    const routeApi = new Informer({
      client,
      logger,
      type: apiServices,
      fieldSelector: `metadata.name=${routes.version}.${routes.group}`,
    });
    routeApi.subscribe({ added: () => this.#routes.start() });
    this.#signs = [
      routeApi,
      crd('tlsroutes.gateway.networking.k8s.io', (version) => this.#tlsRoutes.start(tlsRoutes(version))),
      crd('gateways.gateway.networking.k8s.io', (version) => this.#gateways.start(gateways(version))),
    ] as Informer<KubeObject>[];
    const ofService = ({ spec }: Service) => {
      if (spec?.type === 'NodePort') {
        this.#nodes.start();
      }
    };
    for (const informer of principals) {
      informer.subscribe({ added: ofService, updated: (_, now) => ofService(now) });
    }
  }

  /** What may lead to a Service. */
  exposureOf(service: Service | undefined, namespace: string): ServiceExposure {
    return {
      service,
      nodes: service?.spec?.type === 'NodePort' ? this.#nodes.list() : [],
      ingresses: this.#ingresses.list(namespace),
      routes: this.#routes.list(namespace),
      tlsRoutes: this.#tlsRoutes.list(namespace),
      gateways: this.#gateways.list(),
    };
  }

  /** Hears of changes: of what concerns a namespace, or, when it is left out, any. */
  subscribe(changed: (namespace?: string) => void): void {
    const hear = ({ metadata }: KubeObject) => changed(metadata.namespace);
    const ingresses = this.#ingresses as unknown as Informer<KubeObject>;
    ingresses.subscribe({ added: hear, updated: (_, now) => hear(now), deleted: hear });
    for (const late of [this.#routes, this.#tlsRoutes]) {
      late.subscribe(hear);
    }
    // A Gateway serves routes of other namespaces.
    for (const late of [this.#gateways, this.#nodes]) {
      late.subscribe(() => changed());
    }
  }

  /** Follows the server until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const always = [this.#ingresses as unknown as Informer<KubeObject>, ...this.#signs];
    const late = [this.#routes, this.#tlsRoutes, this.#gateways, this.#nodes];
    await Promise.all([...always, ...late].map((one) => one.run(signal)));
  }

  /** Kinds of every hub whose cache is not complete yet. */
  missing(): string[] {
    return [this.#ingresses, ...this.#signs].filter(({ hasSynced }) => !hasSynced).map(({ type }) => type.kind);
  }

  /** Resolves when everything that the hub has is cached; what it does not let be read is not waited for long. */
  async synced(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#ingresses, ...this.#signs].map((informer) => informer.synced(signal)));
    const limit = AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]);
    const late = [this.#routes, this.#tlsRoutes, this.#gateways, this.#nodes];
    await Promise.all(late.map((one) => one.synced(limit).catch(() => signal.throwIfAborted())));
  }
}

/** An informer that is started once there is something to follow. */
class DeferredInformer<T extends KubeObject> {
  readonly #options: Omit<InformerOptions<T>, 'type'>;
  readonly #started = Promise.withResolvers<Informer<T>>();
  readonly #type: ResourceType<T>;
  readonly #handlers: ((object: KubeObject) => void)[] = [];
  #informer: Informer<T> | undefined;

  constructor(options: Omit<InformerOptions<T>, 'type'>, type: ResourceType<T>) {
    this.#options = options;
    this.#type = type;
  }

  start(type: ResourceType<T> = this.#type): void {
    if (this.#informer !== undefined) {
      return;
    }
    this.#informer = new Informer<T>({ ...this.#options, type });
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
    await this.#informer?.synced(signal);
  }

  #connect(informer: Informer<T>, changed: (object: KubeObject) => void): void {
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

/** What is of interest of an object: not its version. */
function contentOf(object: KubeObject): string {
  const { spec, status } = object as KubeObject & { spec?: unknown; status?: unknown };
  return JSON.stringify([spec, status]);
}
