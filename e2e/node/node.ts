import { mkdir } from 'node:fs/promises';
import type { Server } from 'node:https';
import { join } from 'node:path';
import type { Logger } from '../../lib/base/index.ts';
import {
  configMaps,
  type EndpointSlice,
  EventRecorder,
  endpointSlices,
  Informer,
  type KubeClient,
  type KubeObject,
  keyOf,
  nodes,
  type ResourceType,
  secrets,
  services,
} from '../../lib/kube/index.ts';
import type { Cluster } from '../testbed/index.ts';
import { toolPath } from '../tools/index.ts';
import { type AddressBlock, claimBlock, loopbackAddress } from './addresses.ts';
import type { RestartBackoff } from './container-life.ts';
import { type ImageTable, standardImages } from './images.ts';
import { createKubeletServer, kubeletPort } from './kubelet-server.ts';
import { PodRunner } from './pod-runner.ts';
import { keepNode, type NodeIdentity, registerNode } from './registration.ts';
import { Scheduler } from './scheduler.ts';
import { type ServiceEndpoint, ServiceNetwork } from './services.ts';
import { type KubeletPod, kubeletPods } from './types.ts';

/** How to start a node. */
export interface NodeOptions {
  /** The cluster that the node joins, with a client that may do everything. */
  cluster: Pick<Cluster, 'name' | 'client' | 'ca' | 'issueCertificate'>;
  /** Default: the cluster's name and `-node`. */
  name?: string;
  /** The images that can be pulled. Default: `standardImages`. */
  images?: ImageTable;
  /** A folder for pods; the node makes one of its name in it. */
  dir: string;
  labels?: Record<string, string>;
  backoff?: Partial<RestartBackoff>;
  logger?: Logger;
  signal?: AbortSignal;
}

const silent: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** Starts a node and resolves when it is ready to run pods. */
export async function startNode(options: NodeOptions): Promise<Node> {
  const node = new Node(options);
  try {
    await node.start();
  } catch (error) {
    await node.stop();
    throw error;
  }
  return node;
}

/**
 * One node of a cluster: scheduler, kubelet, proxy and load balancer in one, with processes of this machine as
 * containers. Losing the API server stops nothing that runs; when it is back, the node catches up.
 */
export class Node {
  readonly name: string;
  readonly #client: KubeClient;
  readonly #options: NodeOptions;
  readonly #logger: Logger;
  readonly #stop = new AbortController();
  readonly #runners = new Map<string, PodRunner>();
  readonly #folder: string;
  readonly #images: ImageTable;
  readonly #pods: Informer<KubeletPod>;
  readonly #server: Server;
  readonly #running: Promise<unknown>[] = [];
  readonly #scheduler: Scheduler;
  #block: AddressBlock | undefined;
  #network: ServiceNetwork | undefined;
  #recorder: EventRecorder | undefined;
  #pokeAll: NodeJS.Immediate | undefined;

  constructor(options: NodeOptions) {
    this.name = options.name ?? `${options.cluster.name}-node`;
    this.#options = options;
    this.#client = options.cluster.client;
    this.#images = options.images ?? standardImages(toolPath);
    this.#logger = options.logger ?? silent;
    this.#folder = join(options.dir, this.name);
    this.#server = createKubeletServer(options.cluster.ca, (namespace, name) => this.#runner(namespace, name));
    this.#pods = new Informer({ client: this.#client, type: kubeletPods, logger: this.#logger });
    this.#scheduler = new Scheduler({
      client: this.#client,
      nodeName: this.name,
      find: (key) => this.#pods.get(key),
      warn: (pod, reason, message) => this.#record(pod, 'Warning', reason, message),
    });
    options.signal?.addEventListener('abort', () => void this.stop(), { once: true });
  }

  /** Joins the cluster. */
  async start(): Promise<void> {
    const signal = this.#stop.signal;
    await mkdir(this.#folder, { recursive: true });
    const known = await this.#client.get(nodes, { name: this.name }, signal);
    const addresses = (known?.status?.addresses as { type: string; address: string }[] | undefined) ?? [];
    const before = addresses.find(({ type }) => type === 'InternalIP')?.address;
    const block = await claimBlock(this.#server, kubeletPort, before);
    this.#block = block;
    const { certificate, key } = await this.#options.cluster.issueCertificate({
      commonName: `system:node:${this.name}`,
      organizations: ['system:nodes'],
      hosts: [block.node, this.name],
    });
    this.#server.setSecureContext({ cert: certificate, key, ca: this.#options.cluster.ca });
    this.#recorder = new EventRecorder({
      client: this.#client,
      component: 'kubelet',
      instance: this.name,
      logger: this.#logger,
    });

    const secretCache = this.#informer(secrets);
    const configMapCache = this.#informer(configMaps);
    const serviceCache = this.#informer(services);
    const sliceCache = this.#informer<EndpointSlice>(endpointSlices, {
      service: (slice) => {
        const name = slice.metadata.labels?.['kubernetes.io/service-name'];
        return name ? [`${slice.metadata.namespace}/${name}`] : [];
      },
    });
    await Promise.all([secretCache, configMapCache, serviceCache, sliceCache].map((cache) => cache.synced(signal)));
    this.#network = new ServiceNetwork({
      client: this.#client,
      services: serviceCache,
      slices: sliceCache,
      block,
      locate: (ip, port) => this.#locate(ip, port),
      changed: () => this.#pokeLater(),
      logger: this.#logger,
    });
    for (const cache of [secretCache, configMapCache]) {
      cache.subscribe({
        added: (object, initial) => !initial && this.#pokeNamespace(object),
        updated: (_, object) => this.#pokeNamespace(object),
        deleted: (object) => this.#pokeNamespace(object),
      });
    }

    const identity: NodeIdentity = {
      name: this.name,
      address: block.node,
      kubeletPort,
      labels: this.#options.labels ?? {},
    };
    await registerNode(this.#client, identity, signal);
    this.#running.push(keepNode(this.#client, identity, this.#logger, signal), this.#scheduler.run(signal));
    const objects = {
      secret: (namespace: string, name: string) => secretCache.get({ namespace, name }),
      configMap: (namespace: string, name: string) => configMapCache.get({ namespace, name }),
    };
    this.#pods.subscribe({
      added: (pod) => this.#seen(pod, objects),
      updated: (_, pod) => this.#seen(pod, objects),
      deleted: (pod) => void this.#forget(pod.metadata.uid ?? ''),
    });
    this.#running.push(this.#pods.run(signal));
    await this.#pods.synced(signal);
  }

  /** The node's loopback address, where its kubelet listens. */
  get address(): string {
    return this.#block?.node ?? '';
  }

  /** The loopback address of a Service; undefined while there is no such Service. */
  serviceAddress(namespace: string, name: string): string | undefined {
    return this.#network?.addressOf(namespace, name);
  }

  /** Where a port of a running pod is reached on this machine. */
  podEndpoint(namespace: string, name: string, port: number): ServiceEndpoint | undefined {
    return this.#runner(namespace, name)?.locate(port);
  }

  /**
   * The id of the process of a container, by the beginning of its pod's name; undefined when none runs.
   *
   * @param container default: the pod's first
   */
  pidOf(namespace: string, podNamePrefix: string, container?: string): number | undefined {
    return this.#find(namespace, podNamePrefix, container)?.pid;
  }

  /** Kills a container's process with SIGKILL and returns its id; undefined when none runs. */
  kill(namespace: string, podNamePrefix: string, container?: string): number | undefined {
    const run = this.#find(namespace, podNamePrefix, container);
    run?.signal('SIGKILL');
    return run?.pid;
  }

  /** The last lines of a container's log, for messages of failing tests; undefined when it has none. */
  async log(namespace: string, podNamePrefix: string, container?: string, lines = 50): Promise<string | undefined> {
    const runner = [...this.#runners.values()].find((candidate) => isNamed(candidate, namespace, podNamePrefix));
    return runner?.container(container)?.log(false)?.tail(lines);
  }

  /** Kills every container and closes every port. The cluster is told nothing, as when a machine loses power. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error(`the node ${this.name} has stopped`));
    clearImmediate(this.#pokeAll);
    this.#network?.close();
    this.#server.closeAllConnections();
    this.#server.close();
    await Promise.all([...this.#runners.keys()].map((uid) => this.#forget(uid)));
    await Promise.allSettled([...this.#running, this.#recorder?.close()]);
  }

  #informer<T extends KubeObject>(type: ResourceType<T>, indexers: Record<string, (o: T) => string[]> = {}) {
    const informer = new Informer<T>({ client: this.#client, type, indexers, logger: this.#logger });
    this.#running.push(informer.run(this.#stop.signal));
    return informer;
  }

  #seen(pod: KubeletPod, objects: ConstructorParameters<typeof PodRunner>[1]['objects']): void {
    const uid = pod.metadata.uid ?? '';
    const runner = this.#runners.get(uid);
    if (runner) {
      runner.update(pod);
      return;
    }
    if (this.#stop.signal.aborted || !this.#block || !this.#network) {
      return;
    }
    if (!pod.spec.nodeName) {
      this.#scheduler.add(pod);
      return;
    }
    const isOver = pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
    if (pod.spec.nodeName !== this.name || (isOver && !pod.metadata.deletionTimestamp)) {
      return;
    }
    const address = this.#block.take();
    const network = this.#network;
    const started = new PodRunner(pod, {
      client: this.#client,
      folder: join(this.#folder, uid),
      place: { address, nodeName: this.name, nodeAddress: this.address },
      objects,
      images: this.#images,
      backoff: { initialMs: 1_000, maxMs: 10_000, resetAfterMs: 30_000, ...this.#options.backoff },
      logger: this.#logger,
      serviceVariables: (namespace, links) => network.variables(namespace, links),
      hosts: (namespace) => network.hosts(namespace),
      record: (about, type, reason, message) => this.#record(about, type, reason, message),
    });
    this.#runners.set(uid, started);
    started.poke();
  }

  async #forget(uid: string): Promise<void> {
    const runner = this.#runners.get(uid);
    if (!runner) {
      return;
    }
    this.#runners.delete(uid);
    await runner.destroy();
    this.#block?.free(runner.address);
  }

  #record(about: KubeletPod, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const object = { ...about, apiVersion: 'v1', kind: 'Pod' };
    if (type === 'Normal') {
      this.#recorder?.normal(object, reason, message);
    } else {
      this.#recorder?.warning(object, reason, message);
    }
    this.#logger.info({ pod: keyOf(about), reason, note: message }, 'pod event');
  }

  #locate(ip: string, port: number): ServiceEndpoint {
    const address = loopbackAddress(ip);
    for (const runner of this.#runners.values()) {
      if (runner.address === address) {
        return runner.locate(port);
      }
    }
    // Of a pod that has just gone: nobody listens there.
    return { host: address, port };
  }

  #pokeNamespace(object: KubeObject): void {
    for (const runner of this.#runners.values()) {
      if (runner.pod.metadata.namespace === object.metadata.namespace) {
        runner.poke();
      }
    }
  }

  #pokeLater(): void {
    this.#pokeAll ??= setImmediate(() => {
      this.#pokeAll = undefined;
      for (const runner of this.#runners.values()) {
        runner.poke();
      }
    });
  }

  #runner(namespace: string, name: string): PodRunner | undefined {
    return [...this.#runners.values()].find(
      ({ pod }) => pod.metadata.namespace === namespace && pod.metadata.name === name,
    );
  }

  #find(namespace: string, podNamePrefix: string, container: string | undefined) {
    for (const runner of this.#runners.values()) {
      const run = isNamed(runner, namespace, podNamePrefix) ? runner.container(container)?.run : undefined;
      if (run) {
        return run;
      }
    }
    return undefined;
  }
}

function isNamed({ pod }: PodRunner, namespace: string, prefix: string): boolean {
  return pod.metadata.namespace === namespace && pod.metadata.name.startsWith(prefix);
}
