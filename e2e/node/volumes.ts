import { chmod, chown, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { KubeClient } from '../../lib/kube/index.ts';
import { type VolumeFile, writeAtomically } from './atomic-folder.ts';
import type { ClusterObjects } from './environment.ts';
import { VolumeError } from './errors.ts';
import { fieldValue, type PodPlace, resourceValue } from './fields.ts';
import { ServiceAccountTokens } from './tokens.ts';
import type { DownwardFile, KeyToPath, KubeletPod, Projection, Volume } from './types.ts';

/**
 * The volumes of one pod, as folders on this machine. `update` is called before the first container starts and
 * whenever something that a volume shows may have changed; only differences are written.
 */
export class PodVolumes {
  readonly #folder: string;
  readonly #place: PodPlace;
  readonly #objects: ClusterObjects;
  readonly #tokens: ServiceAccountTokens;
  readonly #written = new Map<string, string>();
  readonly #made = new Set<string>();

  constructor(options: { folder: string; place: PodPlace; objects: ClusterObjects; client: KubeClient }) {
    this.#folder = options.folder;
    this.#place = options.place;
    this.#objects = options.objects;
    this.#tokens = new ServiceAccountTokens(options.client);
  }

  /** The folder of a volume. */
  pathOf(name: string): string {
    return join(this.#folder, name);
  }

  /** Until when the volumes can stay as they are, unless an object changes: a token must be renewed then. */
  get renewAt(): number {
    return this.#tokens.renewAt;
  }

  /**
   * Brings all volumes up to date.
   *
   * @throws VolumeError that says what is missing, in a kubelet's words. Volumes that were set up before keep their files.
   */
  async update(pod: KubeletPod, signal: AbortSignal): Promise<void> {
    const problems: string[] = [];
    for (const volume of pod.spec.volumes ?? []) {
      try {
        await this.#updateOne(pod, volume, signal);
      } catch (error) {
        if (!(error instanceof VolumeError)) {
          throw error;
        }
        problems.push(`MountVolume.SetUp failed for volume "${volume.name}" : ${error.message}`);
      }
    }
    if (problems.length > 0) {
      throw new VolumeError(problems.join('; '));
    }
  }

  async #updateOne(pod: KubeletPod, volume: Volume, signal: AbortSignal): Promise<void> {
    const path = this.pathOf(volume.name);
    const group = pod.spec.securityContext?.fsGroup;
    if (volume.emptyDir) {
      if (this.#made.has(volume.name)) {
        return;
      }
      await mkdir(path, { recursive: true });
      await chmod(path, 0o777);
      if (group !== undefined && process.getuid?.() === 0) {
        await chown(path, 0, group);
        await chmod(path, 0o2777);
      }
      this.#made.add(volume.name);
      return;
    }
    const files = await this.#filesOf(pod, volume, signal);
    const digest = JSON.stringify(
      [...files].map(([name, f]) => [name, f.mode, Buffer.from(f.content).toString('base64')]),
    );
    if (this.#written.get(volume.name) === digest) {
      return;
    }
    await writeAtomically(path, files, process.getuid?.() === 0 ? group : undefined);
    this.#written.set(volume.name, digest);
  }

  async #filesOf(pod: KubeletPod, volume: Volume, signal: AbortSignal): Promise<Map<string, VolumeFile>> {
    const { secret, configMap, downwardAPI, projected } = volume;
    if (secret) {
      return this.#secretFiles(pod, { ...secret, name: secret.secretName }, secret.defaultMode ?? 0o644);
    }
    if (configMap) {
      return this.#configMapFiles(pod, configMap, configMap.defaultMode ?? 0o644);
    }
    if (downwardAPI) {
      return this.#downwardFiles(pod, downwardAPI.items ?? [], downwardAPI.defaultMode ?? 0o644);
    }
    if (projected) {
      const mode = projected.defaultMode ?? 0o644;
      const files = new Map<string, VolumeFile>();
      for (const source of projected.sources ?? []) {
        for (const [name, file] of await this.#projectedFiles(pod, source, mode, signal)) {
          files.set(name, file);
        }
      }
      return files;
    }
    const kind = Object.keys(volume).find((key) => key !== 'name') ?? 'nothing';
    throw new VolumeError(`no volume plugin matched: the node has no driver for ${kind}`);
  }

  async #projectedFiles(pod: KubeletPod, source: Projection, mode: number, signal: AbortSignal) {
    if (source.secret) {
      return this.#secretFiles(pod, source.secret, mode);
    }
    if (source.configMap) {
      return this.#configMapFiles(pod, source.configMap, mode);
    }
    if (source.downwardAPI) {
      return this.#downwardFiles(pod, source.downwardAPI.items ?? [], mode);
    }
    const files = new Map<string, VolumeFile>();
    if (source.serviceAccountToken) {
      const { path, ...request } = source.serviceAccountToken;
      const content = await this.#tokens.get(pod, request, signal);
      files.set(path, { content, mode });
    }
    return files;
  }

  #secretFiles(pod: KubeletPod, source: { name: string; items?: KeyToPath[]; optional?: boolean }, mode: number) {
    const found = this.#objects.secret(pod.metadata.namespace ?? '', source.name);
    const data = found && new Map(Object.entries(found.data ?? {}).map(([k, v]) => [k, Buffer.from(v, 'base64')]));
    return keyFiles('secret', source, data, mode);
  }

  #configMapFiles(pod: KubeletPod, source: { name?: string; items?: KeyToPath[]; optional?: boolean }, mode: number) {
    const found = this.#objects.configMap(pod.metadata.namespace ?? '', source.name ?? '');
    const data = found && new Map<string, Buffer>();
    for (const [key, value] of Object.entries(found?.data ?? {})) {
      data?.set(key, Buffer.from(value));
    }
    for (const [key, value] of Object.entries(found?.binaryData ?? {})) {
      data?.set(key, Buffer.from(value, 'base64'));
    }
    return keyFiles('configmap', { ...source, name: source.name ?? '' }, data, mode);
  }

  #downwardFiles(pod: KubeletPod, items: DownwardFile[], mode: number): Map<string, VolumeFile> {
    return new Map(
      items.map((item) => {
        const container = pod.spec.containers.find((c) => c.name === item.resourceFieldRef?.containerName);
        const content = item.resourceFieldRef
          ? resourceValue(container?.resources, item.resourceFieldRef.resource)
          : fieldValue(pod, this.#place, item.fieldRef?.fieldPath ?? '');
        return [item.path, { content, mode: item.mode ?? mode }];
      }),
    );
  }
}

function keyFiles(
  kind: 'secret' | 'configmap',
  source: { name: string; items?: KeyToPath[]; optional?: boolean },
  data: ReadonlyMap<string, Buffer> | undefined,
  mode: number,
): Map<string, VolumeFile> {
  if (!data) {
    if (source.optional) {
      return new Map();
    }
    throw new VolumeError(`${kind} "${source.name}" not found`);
  }
  const files = new Map<string, VolumeFile>();
  if (!source.items) {
    for (const [key, content] of data) {
      files.set(key, { content, mode });
    }
    return files;
  }
  for (const item of source.items) {
    const content = data.get(item.key);
    if (content) {
      files.set(item.path, { content, mode: item.mode ?? mode });
    } else if (!source.optional) {
      throw new VolumeError(`references non-existent ${kind} key: ${item.key}`);
    }
  }
  return files;
}
