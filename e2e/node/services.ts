import { connect, createServer, type Server } from 'node:net';
import type { Logger } from '../../lib/base/index.ts';
import {
  type EndpointSlice,
  type Informer,
  type KubeClient,
  keyOf,
  type Service,
  services as serviceType,
} from '../../lib/kube/index.ts';
import type { AddressBlock } from './addresses.ts';

/** Where a TCP connection goes. */
export interface ServiceEndpoint {
  host: string;
  port: number;
}

interface Published {
  uid: string;
  address: string;
  listeners: Map<number, Listener>;
}

interface Listener {
  server: Server;
  /** As the cluster knows them. */
  endpoints: ServiceEndpoint[];
  next: number;
  listening: boolean;
}

/**
 * Does what cluster DNS, kube-proxy and a cloud's load balancers do. Every Service gets a loopback address of its own
 * for as long as it exists; its ports are open there while the Service has ready endpoints and closed otherwise, so a
 * caller sees "connection refused" as it would in a cluster. `LoadBalancer` Services announce that address as their
 * ingress IP: it is reached from every cluster on this machine.
 */
export class ServiceNetwork {
  readonly #client: KubeClient;
  readonly #services: Informer<Service>;
  readonly #slices: Informer<EndpointSlice>;
  readonly #block: AddressBlock;
  readonly #locate: (ip: string, port: number) => ServiceEndpoint;
  readonly #changed: () => void;
  readonly #logger: Logger;
  readonly #published = new Map<string, Published>();
  readonly #apiServer: URL;
  readonly #unsubscribe: (() => void)[];
  readonly #again = new Set<string>();
  #isClosed = false;

  constructor(options: {
    client: KubeClient;
    /** Of all namespaces. */
    services: Informer<Service>;
    /** Indexed by `service`: `namespace/name` of the Service. */
    slices: Informer<EndpointSlice>;
    block: AddressBlock;
    /** Where an endpoint's address and port are reached on this machine. */
    locate(ip: string, port: number): ServiceEndpoint;
    /** The names that pods see are others now. */
    changed(): void;
    logger: Logger;
  }) {
    this.#client = options.client;
    this.#services = options.services;
    this.#slices = options.slices;
    this.#block = options.block;
    this.#locate = options.locate;
    this.#changed = options.changed;
    this.#logger = options.logger;
    this.#apiServer = new URL(options.client.server);
    this.#unsubscribe = [
      this.#services.subscribe({
        added: (service) => this.update(keyOf(service)),
        updated: (_, service) => this.update(keyOf(service)),
        deleted: (service) => this.update(keyOf(service)),
      }),
      this.#slices.subscribe({
        added: (slice) => this.#sliceChanged(slice),
        updated: (_, slice) => this.#sliceChanged(slice),
        deleted: (slice) => this.#sliceChanged(slice),
      }),
    ];
  }

  /** The address of a Service. */
  addressOf(namespace: string, name: string): string | undefined {
    return this.#published.get(`${namespace}/${name}`)?.address;
  }

  /** `/etc/hosts` lines with the names of all Services as pods of a namespace may write them. */
  hosts(namespace: string): string {
    const lines: string[] = [];
    for (const [key, { address }] of this.#published) {
      const [where = '', name = ''] = key.split('/');
      const names = ['.svc.cluster.local', '.svc', ''].map((suffix) => `${name}.${where}${suffix}`);
      lines.push([address, ...names, ...(where === namespace ? [name] : [])].join(' '));
    }
    return lines.join('\n');
  }

  /** The environment variables that announce the API server, and with `links` the namespace's Services. */
  variables(namespace: string, links: boolean): Record<string, string> {
    const variables: Record<string, string> = {};
    const announce = (name: string, host: string, ports: { port: number; name?: string }[]) => {
      const prefix = name.toUpperCase().replaceAll('-', '_');
      const [first] = ports;
      if (!first) {
        return;
      }
      variables[`${prefix}_SERVICE_HOST`] = host;
      variables[`${prefix}_SERVICE_PORT`] = String(first.port);
      variables[`${prefix}_PORT`] = `tcp://${host}:${first.port}`;
      for (const { port, name: portName } of ports) {
        if (portName) {
          variables[`${prefix}_SERVICE_PORT_${portName.toUpperCase().replaceAll('-', '_')}`] = String(port);
        }
        variables[`${prefix}_PORT_${port}_TCP`] = `tcp://${host}:${port}`;
        variables[`${prefix}_PORT_${port}_TCP_PROTO`] = 'tcp';
        variables[`${prefix}_PORT_${port}_TCP_PORT`] = String(port);
        variables[`${prefix}_PORT_${port}_TCP_ADDR`] = host;
      }
    };
    if (links) {
      for (const service of this.#services.list(namespace)) {
        const address = this.addressOf(namespace, service.metadata.name);
        if (!address || service.spec?.clusterIP === 'None') {
          continue;
        }
        announce(service.metadata.name, address, service.spec?.ports ?? []);
      }
    }
    announce('kubernetes', this.#apiServer.hostname, [{ name: 'https', port: Number(this.#apiServer.port || 443) }]);
    return variables;
  }

  /** Closes every port. */
  close(): void {
    this.#isClosed = true;
    for (const unsubscribe of this.#unsubscribe) {
      unsubscribe();
    }
    for (const { listeners } of this.#published.values()) {
      for (const { server } of listeners.values()) {
        server.close();
      }
    }
    this.#published.clear();
  }

  /** Brings one Service, `namespace/name`, up to date. */
  update(key: string): void {
    if (this.#isClosed) {
      return;
    }
    const [namespace = '', name = ''] = key.split('/');
    const service = this.#services.get({ namespace, name });
    let published = this.#published.get(key);
    if (published && published.uid !== service?.metadata.uid) {
      for (const { server } of published.listeners.values()) {
        server.close();
      }
      this.#block.free(published.address);
      this.#published.delete(key);
      published = undefined;
      this.#changed();
    }
    if (!service || service.spec?.type === 'ExternalName') {
      return;
    }
    if (!published) {
      const before = service.status?.loadBalancer?.ingress?.[0]?.ip;
      const address = (before && this.#block.takeThis(before)) || this.#block.take();
      published = { uid: service.metadata.uid ?? '', address, listeners: new Map() };
      this.#published.set(key, published);
      this.#changed();
    }
    this.#openPorts(key, service, published);
    if (service.spec?.type === 'LoadBalancer') {
      this.#announce(service, published.address);
    }
  }

  #openPorts(key: string, service: Service, published: Published): void {
    const ports = (service.spec?.ports ?? []).filter((port) => (port.protocol ?? 'TCP') === 'TCP');
    for (const [port, listener] of published.listeners) {
      if (ports.some((wanted) => wanted.port === port)) {
        continue;
      }
      listener.server.close();
      published.listeners.delete(port);
    }
    for (const port of ports) {
      const listener = published.listeners.get(port.port) ?? this.#listener(key, port.port, published);
      listener.endpoints =
        key === 'default/kubernetes'
          ? [{ host: this.#apiServer.hostname, port: Number(this.#apiServer.port || 443) }]
          : this.#endpoints(key, port.name);
      if (listener.endpoints.length > 0 && !listener.listening) {
        listener.listening = true;
        listener.server.listen({ host: published.address, port: port.port });
      } else if (listener.endpoints.length === 0 && listener.listening) {
        listener.listening = false;
        listener.server.close();
      }
    }
  }

  #endpoints(key: string, portName: string | undefined): ServiceEndpoint[] {
    return this.#slices.byIndex('service', key).flatMap((slice) => {
      const port = slice.ports?.find((candidate) => (candidate.name ?? '') === (portName ?? ''))?.port;
      if (port === undefined) {
        return [];
      }
      return (slice.endpoints ?? [])
        .filter((endpoint) => endpoint.conditions?.ready !== false)
        .flatMap((endpoint) => endpoint.addresses.map((host) => ({ host, port })));
    });
  }

  #listener(key: string, port: number, published: Published): Listener {
    const server = createServer({ noDelay: true, allowHalfOpen: true }, (incoming) => {
      const target = listener.endpoints[listener.next++ % Math.max(1, listener.endpoints.length)];
      if (!target) {
        return void incoming.resetAndDestroy();
      }
      // Looked up now: a container that was started again may be reached elsewhere, which the cluster is not told.
      const outgoing = connect({ ...this.#locate(target.host, target.port), noDelay: true, allowHalfOpen: true });
      incoming.pipe(outgoing).pipe(incoming);
      incoming.on('error', () => outgoing.resetAndDestroy());
      outgoing.on('error', () => incoming.resetAndDestroy());
    });
    const listener: Listener = { server, endpoints: [], next: 0, listening: false };
    server.on('error', (error) => {
      listener.listening = false;
      this.#logger.error({ service: key, address: published.address, port, error }, 'a Service port cannot be opened');
      this.#later(key);
    });
    published.listeners.set(port, listener);
    return listener;
  }

  #announce(service: Service, address: string): void {
    if (service.status?.loadBalancer?.ingress?.[0]?.ip === address) {
      return;
    }
    const status = { loadBalancer: { ingress: [{ ip: address, ipMode: 'VIP' }] } };
    this.#client
      .mergePatch(serviceType, service.metadata, { status }, { subresource: 'status' })
      .catch((error: unknown) => {
        this.#logger.warn({ service: keyOf(service), error }, 'announcing a load balancer address failed');
        this.#later(keyOf(service));
      });
  }

  /** Looks at a Service again in a second, however many of its ports ask for it meanwhile. */
  #later(key: string): void {
    if (this.#again.has(key)) {
      return;
    }
    this.#again.add(key);
    setTimeout(() => {
      this.#again.delete(key);
      this.update(key);
    }, 1_000).unref();
  }

  #sliceChanged(slice: EndpointSlice): void {
    const name = slice.metadata.labels?.['kubernetes.io/service-name'];
    if (name) {
      this.update(`${slice.metadata.namespace}/${name}`);
    }
  }
}
