import { rm } from 'node:fs/promises';
import { constants } from 'node:os';
import { join } from 'node:path';
import { freePort, removeFolder, type SupervisedProcess, spawnSupervised } from '../testbed/index.ts';
import { buildEnvironment, type ClusterObjects } from './environment.ts';
import { ContainerError } from './errors.ts';
import { expand } from './expand.ts';
import type { PodPlace } from './fields.ts';
import { parseImageName } from './image-name.ts';
import type { Image, ImageTable } from './images.ts';
import { ContainerLog } from './logs.ts';
import { type PodmanContainer, podmanContainer } from './podman.ts';
import { processUser } from './process-user.ts';
import { isExecutable, type Mount, type ProcessUser, prepareSandbox } from './sandbox.ts';
import type { KubeletContainer, KubeletPod } from './types.ts';

/** What starting a container takes, besides its pod. */
export interface ContainerSurroundings {
  /** The pod's folder; each run of a container gets one of its own in it. */
  folder: string;
  place: PodPlace;
  objects: ClusterObjects;
  images: ImageTable;
  /** The variables that announce Services. */
  serviceVariables(): Readonly<Record<string, string>>;
  /** The host folder of a volume. */
  volumePath(name: string): string;
  /** Whether programs may not write to the volume whatever the mount says: Secrets, ConfigMaps and the like. */
  isReadOnlyVolume(name: string): boolean;
  /** The pod's `/etc/hosts` on this machine. */
  hostsFile: string;
}

/** How a run of a container ended. */
export interface ContainerExit {
  exitCode: number;
  signal: number | undefined;
}

/** One run of a container: a process in a root file system of its own, or a real container of podman. */
export class ContainerRun {
  readonly startedAt = new Date();
  readonly log: ContainerLog;
  readonly image: Image;
  /** By container port, for programs that cannot listen on the pod's address. */
  readonly substitutes: ReadonlyMap<number, number>;
  readonly exited: Promise<ContainerExit>;
  readonly #process: SupervisedProcess;
  readonly #real: PodmanContainer | undefined;
  readonly #user: ProcessUser;
  readonly #environment: ReadonlyMap<string, string>;
  readonly #workingDir: string;

  private constructor(options: {
    process: SupervisedProcess;
    real: PodmanContainer | undefined;
    user: ProcessUser;
    environment: ReadonlyMap<string, string>;
    workingDir: string;
    log: ContainerLog;
    image: Image;
    substitutes: ReadonlyMap<number, number>;
    cleanUp: () => Promise<void>;
  }) {
    this.#process = options.process;
    this.#real = options.real;
    this.#user = options.user;
    this.#environment = options.environment;
    this.#workingDir = options.workingDir;
    this.log = options.log;
    this.image = options.image;
    this.substitutes = options.substitutes;
    this.exited = this.#end(options.cleanUp);
  }

  /**
   * Starts a container.
   *
   * @throws ContainerError when the pod asks for something that cannot be had
   */
  static async start(
    pod: KubeletPod,
    container: KubeletContainer,
    attempt: number,
    around: ContainerSurroundings,
  ): Promise<ContainerRun> {
    const substitutes = new Map<number, number>();
    const image = await pull(container.image, around, substitutes);
    const user = processUser(pod, container, image);
    const environment = buildEnvironment({
      pod,
      container,
      place: around.place,
      objects: around.objects,
      image: { PATH: standardPath, HOME: '/', ...image.env },
      services: around.serviceVariables(),
    });
    const entrypoint = container.command ?? image.entrypoint ?? [];
    const given = container.args ?? (container.command ? [] : (image.command ?? []));
    const command = [...entrypoint, ...given].map((word) => expand(word, environment));
    const mounts = mountsOf(container, around);
    const [program] = command;
    if (program === undefined) {
      throw new ContainerError('RunContainerError', 'no command specified');
    }
    if (image.podman === undefined && !isExecutable(program, image, mounts)) {
      throw new ContainerError(
        'StartError',
        `failed to create task: exec: "${program}": ${program.includes('/') ? 'no such file or directory' : 'executable file not found in $PATH'}`,
      );
    }
    const security = { ...pod.spec.securityContext, ...container.securityContext };
    const root = join(around.folder, 'containers', `${container.name}-${attempt}`);
    const confinement = {
      user,
      mounts,
      readOnlyRoot: security.readOnlyRootFilesystem === true,
      noNewPrivileges: security.allowPrivilegeEscalation === false,
      dropCapabilities: security.capabilities?.drop?.includes('ALL') === true,
      hostname: pod.spec.hostname ?? pod.metadata.name,
      command,
    };
    const real =
      image.podman === undefined
        ? undefined
        : podmanContainer({
            ...confinement,
            image: image.podman,
            name: `${pod.metadata.name}-${container.name}`,
            address: around.place.address,
            environment,
            workingDir: container.workingDir,
          });
    const workingDir = container.workingDir ?? image.workingDir ?? '/';
    const launch = real ?? (await prepareSandbox({ ...confinement, root, image, workingDir }));
    const log = new ContainerLog(join(around.folder, 'logs', container.name, `${attempt}.log`));
    const supervised = await spawnSupervised(launch.command, launch.args, {
      ...(real === undefined && { env: Object.fromEntries(environment) }),
      onOutput: (stdout, stderr) => log.record(stdout, stderr),
    });
    const cleanUp = async () => {
      await real?.remove();
      await removeFolder(root);
      await rm(`${root}.sh`, { force: true });
    };
    const parts = { process: supervised, real, user, environment, workingDir, log, image, substitutes };
    return new ContainerRun({ ...parts, cleanUp });
  }

  /** The id of the container's first process on this machine. */
  get pid(): number {
    return this.#process.pid;
  }

  /** Sends a signal to the container's first process. */
  signal(signal: NodeJS.Signals): void {
    this.#process.signal(signal);
  }

  /** Ends the container with everything that it started, at once. */
  kill(): void {
    void this.#process.kill();
  }

  /**
   * A command of this machine that runs `command` inside the container, with its user and environment.
   *
   * @param input whether it reads what it is given, and whether that is a terminal. Default: it reads nothing
   */
  inside(command: readonly string[], input?: 'stream' | 'terminal'): { command: string; args: string[] } {
    if (this.#real) {
      return this.#real.inside(command, input);
    }
    const { uid, gid, groups } = this.#user;
    const drop =
      process.getuid?.() === 0
        ? [`--reuid=${uid}`, `--regid=${gid}`, groups.length > 0 ? `--groups=${groups.join(',')}` : '--clear-groups']
        : [];
    const variables = [...this.#environment].map(([name, value]) => `${name}=${value}`);
    const environment = ['/usr/bin/env', '-i', `--chdir=${this.#workingDir}`, ...variables];
    const enter = [`--target=${this.pid}`, '--mount', '--uts', '--root', ...(drop.length > 0 ? [] : ['--user'])];
    return {
      command: 'nsenter',
      args: [...enter, '--', '/usr/bin/setpriv', ...drop, '--pdeathsig=KILL', ...environment, ...command],
    };
  }

  async #end(cleanUp: () => Promise<void>): Promise<ContainerExit> {
    const { code, signal } = await this.#process.exited;
    await cleanUp();
    if (signal === null) {
      return { exitCode: code ?? 0, signal: undefined };
    }
    const number = constants.signals[signal];
    return { exitCode: 128 + number, signal: number };
  }
}

const standardPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

async function pull(
  reference: string,
  around: ContainerSurroundings,
  substitutes: Map<number, number>,
): Promise<Image> {
  const name = parseImageName(reference);
  const recipe = around.images[name.repository];
  if (!recipe) {
    throw new ContainerError(
      'ErrImagePull',
      `failed to pull and unpack image "${name.repository}:${name.tag}": failed to resolve reference "${name.repository}:${name.tag}": ${name.repository}:${name.tag}: not found`,
    );
  }
  const substitutePort = async (containerPort: number) => {
    const port = substitutes.get(containerPort) ?? (await freePort());
    substitutes.set(containerPort, port);
    return port;
  };
  return recipe({ name, address: around.place.address, substitutePort });
}

function mountsOf(container: KubeletContainer, around: ContainerSurroundings): Mount[] {
  const mounts = (container.volumeMounts ?? []).map((mount) => ({
    from: mount.subPath ? join(around.volumePath(mount.name), mount.subPath) : around.volumePath(mount.name),
    to: mount.mountPath.replace(/(.)\/+$/, '$1'),
    readOnly: mount.readOnly === true || around.isReadOnlyVolume(mount.name),
  }));
  return [{ from: around.hostsFile, to: '/etc/hosts', readOnly: true }, ...mounts];
}
