import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import type { Mount, ProcessUser } from './sandbox.ts';

/** How a container of a real image is run. */
export interface PodmanOptions {
  /** The image in podman's storage; nothing is pulled. */
  image: string;
  /** What to call the container, apart from what makes the name unique. */
  name: string;
  /** The pod's address, where its programs listen. */
  address: string;
  user: ProcessUser;
  environment: ReadonlyMap<string, string>;
  mounts: readonly Mount[];
  readOnlyRoot: boolean;
  noNewPrivileges: boolean;
  dropCapabilities: boolean;
  hostname: string;
  workingDir: string | undefined;
  command: readonly string[];
}

/** A container that podman is about to run. */
export interface PodmanContainer {
  /** Runs in the foreground until the container ends, and ends as it does; signals reach its first process. */
  command: string;
  args: string[];
  /** A command that runs another one inside the container. */
  inside(command: readonly string[], input?: 'stream' | 'terminal'): { command: string; args: string[] };
  /** Removes what is left of it when podman could not do so itself. */
  remove(): Promise<void>;
}

/** What podman is told before its command: a manager of cgroups that needs no systemd. */
export const podmanFlags = ['--cgroup-manager', 'cgroupfs'];

/** What containers get instead of limits that this machine may not be allowed to give. */
export const limitFlags = ['--ulimit', 'nofile=4096:4096', '--ulimit', 'nproc=4096:4096'];

const bindHook = resolve(import.meta.dirname, 'bind-address.mjs');

/**
 * A container as a kubelet would have it made: user, capabilities, privileges, root file system and mounts of the pod.
 * Its network is the machine's, as that of all pods of this node: Node.js in it listens on the pod's address.
 */
export function podmanContainer(options: PodmanOptions): PodmanContainer {
  const { user, environment, mounts } = options;
  const name = `${options.name}-${randomBytes(4).toString('hex')}`;
  const hook = '/pod/bind-address.mjs';
  const variables = new Map([
    ...environment,
    ['NODE_OPTIONS', `${environment.get('NODE_OPTIONS') ?? ''} --import=${hook}`],
    ['POD_BIND_ADDRESS', options.address],
  ]);
  const all = [...mounts, { from: bindHook, to: hook, readOnly: true }];
  const run = [
    ...['run', '--rm', '--name', name, '--pull', 'never', '--log-driver', 'none', '--network', 'host', '--no-hosts'],
    ...limitFlags,
    ...['--hostname', options.hostname, '--user', `${user.uid}:${user.gid}`],
    ...user.groups.flatMap((group) => ['--group-add', String(group)]),
    ...(options.readOnlyRoot ? ['--read-only', '--read-only-tmpfs=false'] : []),
    ...(options.dropCapabilities ? ['--cap-drop', 'ALL'] : []),
    ...(options.noNewPrivileges ? ['--security-opt', 'no-new-privileges'] : []),
    ...(options.workingDir === undefined ? [] : ['--workdir', options.workingDir]),
    ...all.flatMap(({ from, to, readOnly }) => ['--volume', `${from}:${to}:${readOnly ? 'ro' : 'rw'}`]),
    ...[...variables].flatMap(([variable, value]) => ['--env', `${variable}=${value}`]),
  ];
  // What the pod says replaces the image's entry point and command together.
  const [entrypoint = '', ...rest] = options.command;
  return {
    command: 'podman',
    args: [...podmanFlags, ...run, '--entrypoint', JSON.stringify([entrypoint]), options.image, ...rest],
    inside: (command, input) => {
      const flags = input === undefined ? [] : input === 'terminal' ? ['--interactive', '--tty'] : ['--interactive'];
      return { command: 'podman', args: [...podmanFlags, 'exec', ...flags, name, ...command] };
    },
    remove: () =>
      new Promise((done) => {
        execFile('podman', [...podmanFlags, 'rm', '--force', '--ignore', '--time', '0', name], () => done());
      }),
  };
}
