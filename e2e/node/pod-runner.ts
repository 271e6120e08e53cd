import { mkdir, open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../../lib/base/index.ts';
import { isConflict, isNotFound, type KubeClient, rfc3339 } from '../../lib/kube/index.ts';
import { removeFolder } from '../testbed/index.ts';
import { ContainerLife, type RestartBackoff } from './container-life.ts';
import type { ClusterObjects } from './environment.ts';
import { VolumeError } from './errors.ts';
import type { PodPlace } from './fields.ts';
import type { ImageTable } from './images.ts';
import { isComplete, podStatus } from './status.ts';
import { type KubeletContainer, type KubeletPod, kubeletPods } from './types.ts';
import { PodVolumes } from './volumes.ts';

/** What a pod needs of its node. */
export interface PodSurroundings {
  client: KubeClient;
  folder: string;
  place: PodPlace;
  objects: ClusterObjects;
  images: ImageTable;
  backoff: RestartBackoff;
  logger: Logger;
  serviceVariables(namespace: string, links: boolean): Readonly<Record<string, string>>;
  /** Names and addresses for `/etc/hosts`, one per line. */
  hosts(namespace: string): string;
  record(pod: KubeletPod, type: 'Normal' | 'Warning', reason: string, message: string): void;
}

/**
 * Runs one pod. Everything that happens (the object changes, a container ends, a probe turns, a Secret appears) only
 * leads to `evaluate`, which compares what should be with what is and takes the next steps; evaluations never overlap.
 */
export class PodRunner {
  readonly #around: PodSurroundings;
  readonly #volumes: PodVolumes;
  readonly #init: ContainerLife[];
  readonly #main: ContainerLife[];
  readonly #startTime: string;
  readonly #stop = new AbortController();
  #pod: KubeletPod;
  #evaluating: Promise<void> | undefined;
  #again = false;
  #timer: NodeJS.Timeout | undefined;
  #ending: Promise<unknown> | undefined;
  #ended = false;
  #hasStarted = false;
  #written = '';
  #hosts = '';

  constructor(pod: KubeletPod, around: PodSurroundings) {
    this.#pod = pod;
    this.#around = around;
    this.#startTime = pod.status?.startTime ?? rfc3339(new Date());
    this.#volumes = new PodVolumes({
      folder: join(around.folder, 'volumes'),
      place: around.place,
      objects: around.objects,
      client: around.client,
    });
    this.#init = (pod.spec.initContainers ?? []).map((container) => this.#live(container, true));
    this.#main = pod.spec.containers.map((container) => this.#live(container, false));
  }

  /** The pod as it was last seen. */
  get pod(): KubeletPod {
    return this.#pod;
  }

  /** The pod's loopback address. */
  get address(): string {
    return this.#around.place.address;
  }

  /** A container by its name; the first one without a name. */
  container(name?: string): ContainerLife | undefined {
    const all = [...this.#main, ...this.#init];
    return name === undefined ? all[0] : all.find((life) => life.container.name === name);
  }

  /** Where a port of the pod is reached on this machine. */
  locate(port: number): { host: string; port: number } {
    for (const life of this.#main) {
      const substitute = life.run?.substitutes.get(port);
      if (substitute !== undefined) {
        return { host: '127.0.0.1', port: substitute };
      }
    }
    return { host: this.address, port };
  }

  /** The object has changed. */
  update(pod: KubeletPod): void {
    this.#pod = pod;
    this.poke();
  }

  /** Something that the pod may depend on has changed. */
  poke(): void {
    if (this.#stop.signal.aborted) {
      return;
    }
    if (this.#evaluating) {
      this.#again = true;
      return;
    }
    this.#evaluating = this.#evaluateAll();
  }

  /** Kills whatever runs, without a word to the API server, and removes the pod's folder. */
  async destroy(): Promise<void> {
    this.#stop.abort(new Error('the pod has gone'));
    clearTimeout(this.#timer);
    for (const life of [...this.#init, ...this.#main]) {
      life.run?.kill();
    }
    await this.#evaluating;
    await Promise.all([...this.#init, ...this.#main].map((life) => life.stop(0)));
    await removeFolder(this.#around.folder);
  }

  async #evaluateAll(): Promise<void> {
    clearTimeout(this.#timer);
    let nextAt = Number.POSITIVE_INFINITY;
    do {
      this.#again = false;
      try {
        nextAt = await this.#evaluate(this.#stop.signal);
      } catch (error) {
        if (this.#stop.signal.aborted) {
          break;
        }
        // The API server is away or refuses: processes run on, the status follows later.
        this.#around.logger.warn({ pod: this.#pod.metadata.name, error }, 'evaluating a pod failed');
        nextAt = Date.now() + 1_000;
      }
    } while (this.#again && !this.#stop.signal.aborted);
    this.#evaluating = undefined;
    if (Number.isFinite(nextAt) && !this.#stop.signal.aborted) {
      this.#timer = setTimeout(() => this.poke(), Math.min(2 ** 31 - 1, Math.max(10, nextAt - Date.now())));
    }
  }

  /** Takes the next steps; returns when to look again if nothing happens before. */
  async #evaluate(signal: AbortSignal): Promise<number> {
    const pod = this.#pod;
    if (pod.metadata.deletionTimestamp) {
      return this.#terminate(signal);
    }
    const retryAt = await this.#setUp(pod, signal);
    if (retryAt === undefined || this.#hasStarted) {
      this.#hasStarted = true;
      await this.#proceed(pod);
    } else {
      for (const life of this.#init) {
        life.wait(life === this.#init[0] ? 'ContainerCreating' : 'PodInitializing');
      }
      for (const life of this.#main) {
        life.wait(this.#init.length > 0 ? 'PodInitializing' : 'ContainerCreating');
      }
    }
    await this.#writeStatus(signal, false);
    const lives = [...this.#init, ...this.#main];
    return Math.min(retryAt ?? Number.POSITIVE_INFINITY, this.#volumes.renewAt, ...lives.map((life) => life.nextAt));
  }

  /** Volumes and names. Returns when to try again if something is missing. */
  async #setUp(pod: KubeletPod, signal: AbortSignal): Promise<number | undefined> {
    await this.#writeHosts(pod);
    try {
      await this.#volumes.update(pod, signal);
      return undefined;
    } catch (error) {
      if (!(error instanceof VolumeError)) {
        throw error;
      }
      if (!this.#hasStarted) {
        this.#around.record(pod, 'Warning', 'FailedMount', error.message);
      }
      return Date.now() + 5_000;
    }
  }

  async #proceed(pod: KubeletPod): Promise<void> {
    for (const [index, life] of this.#init.entries()) {
      await life.proceed(pod);
      if (isComplete(life.facts)) {
        continue;
      }
      for (const later of [...this.#init.slice(index + 1), ...this.#main]) {
        later.wait('PodInitializing');
      }
      return;
    }
    await Promise.all(this.#main.map((life) => life.proceed(pod)));
    const isOver = this.#main.every((life) => life.facts.state.terminated);
    if (isOver) {
      await Promise.all(this.#init.map((sidecar) => sidecar.stop(this.#graceMs())));
    }
  }

  async #terminate(signal: AbortSignal): Promise<number> {
    this.#ending ??= this.#stopContainers().then(() => {
      this.#ended = true;
      this.poke();
    });
    await this.#writeStatus(signal, this.#ended);
    if (!this.#ended) {
      return Number.POSITIVE_INFINITY;
    }
    const { uid } = this.#pod.metadata;
    await this.#around.client
      .delete(kubeletPods, this.#pod.metadata, { gracePeriodSeconds: 0, uid, signal })
      .catch((error: unknown) => {
        if (!isConflict(error)) {
          throw error; // another pod of that name: ours has gone
        }
      });
    return Number.POSITIVE_INFINITY;
  }

  async #stopContainers(): Promise<void> {
    const graceMs = this.#graceMs();
    await Promise.all(this.#main.map((life) => life.stop(graceMs)));
    await Promise.all(this.#init.map((life) => life.stop(graceMs)));
  }

  #graceMs(): number {
    const { metadata, spec } = this.#pod;
    return (metadata.deletionGracePeriodSeconds ?? spec.terminationGracePeriodSeconds ?? 30) * 1000;
  }

  async #writeStatus(signal: AbortSignal, terminating: boolean): Promise<void> {
    const { client, place } = this.#around;
    const status = podStatus(
      {
        pod: this.#pod,
        address: place.address,
        nodeAddress: place.nodeAddress,
        startTime: this.#startTime,
        init: this.#init.map((life) => life.facts),
        main: this.#main.map((life) => life.facts),
        terminating,
      },
      new Date(),
    );
    const text = JSON.stringify(status);
    if (text === this.#written) {
      return;
    }
    const patch = { metadata: { uid: this.#pod.metadata.uid }, status };
    try {
      const pod = await client.mergePatch(kubeletPods, this.#pod.metadata, patch, { subresource: 'status', signal });
      // Transition times are carried over from here even before the watch brings the object back.
      this.#pod = { ...this.#pod, ...(pod.status ? { status: pod.status } : {}) };
      this.#written = text;
    } catch (error) {
      if (!isNotFound(error)) {
        throw error; // of another pod of that name, too: until the watch says that ours has gone
      }
    }
  }

  async #writeHosts(pod: KubeletPod): Promise<void> {
    const { hostname, hostAliases } = pod.spec;
    const lines = [
      '127.0.0.1 localhost',
      `${this.address} ${hostname ?? pod.metadata.name}`,
      ...(hostAliases ?? []).map((alias) => `${alias.ip} ${(alias.hostnames ?? []).join(' ')}`),
      this.#around.hosts(pod.metadata.namespace ?? ''),
    ];
    const text = `${lines.join('\n')}\n`;
    if (text === this.#hosts) {
      return;
    }
    const path = this.#hostsFile;
    if (this.#hosts === '') {
      await mkdir(this.#around.folder, { recursive: true });
      await writeFile(path, text, { mode: 0o644 });
    } else {
      // In place, because containers have this very file; never shorter than it must be in between.
      const file = await open(path, 'r+');
      try {
        await file.write(text, 0);
        await file.truncate(Buffer.byteLength(text));
      } finally {
        await file.close();
      }
    }
    this.#hosts = text;
  }

  get #hostsFile(): string {
    return join(this.#around.folder, 'hosts');
  }

  #live(container: KubeletContainer, isInit: boolean): ContainerLife {
    const { folder, place, objects, images, backoff } = this.#around;
    const namespace = this.#pod.metadata.namespace ?? '';
    const writable = new Set((this.#pod.spec.volumes ?? []).filter((v) => v.emptyDir).map((v) => v.name));
    return new ContainerLife({
      container,
      isInit,
      pod: this.#pod,
      backoff,
      around: {
        folder,
        place,
        objects,
        images,
        serviceVariables: () => this.#around.serviceVariables(namespace, this.#pod.spec.enableServiceLinks !== false),
        volumePath: (name) => this.#volumes.pathOf(name),
        isReadOnlyVolume: (name) => !writable.has(name),
        hostsFile: this.#hostsFile,
      },
      news: {
        changed: () => this.poke(),
        normal: (reason, message) => this.#around.record(this.#pod, 'Normal', reason, message),
        warning: (reason, message) => this.#around.record(this.#pod, 'Warning', reason, message),
      },
    });
  }
}
