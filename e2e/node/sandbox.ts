import { lstatSync, readdirSync, readlinkSync, statSync } from 'node:fs';
import { chmod, chown, copyFile, mkdir, open, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Image } from './images.ts';

/** Who a container's process is. */
export interface ProcessUser {
  uid: number;
  gid: number;
  groups: number[];
}

/** A folder or file of this machine and where a container finds it. */
export interface Mount {
  from: string;
  to: string;
  readOnly: boolean;
}

/** How a container's process is put in place. */
export interface SandboxOptions {
  /** An empty folder that becomes the container's root. */
  root: string;
  image: Image;
  user: ProcessUser;
  mounts: Mount[];
  readOnlyRoot: boolean;
  noNewPrivileges: boolean;
  dropCapabilities: boolean;
  hostname: string;
  workingDir: string;
  command: string[];
}

/**
 * Prepares a container's root file system and gives the command that runs a process in it.
 *
 * The process gets a mount namespace and a host name of its own: its root is a folder with this machine's /usr, the
 * image's files and the pod's volumes at their real paths. There is no network, process or user namespace; without
 * root rights a user namespace provides the mounts, and every process is root in it.
 */
export async function prepareSandbox(options: SandboxOptions): Promise<{ command: string; args: string[] }> {
  const { root, image, user } = options;
  await layOut(options);
  const imageMounts = Object.entries(image.files ?? {}).flatMap(([to, file]) =>
    'from' in file ? [{ from: file.from, to, readOnly: true }] : [],
  );
  const mounts = [...imageMounts, ...[...options.mounts].sort((a, b) => a.to.length - b.to.length)];
  await makeMountPoints(root, mounts);
  // One `mount` for all of them: a process for each took a third of a second of CPU time for every container.
  const table = [
    ...hostFolders.map((folder) => ({ from: folder, to: folder, options: 'bind,ro' })),
    ...['/dev', '/proc'].map((folder) => ({ from: folder, to: folder, options: 'rbind' })),
    ...mounts.map(({ from, to, readOnly }) => ({ from, to, options: readOnly ? 'bind,ro' : 'bind' })),
  ];
  const fstab = `${root}.fstab`;
  const lines = table.map(({ from, to, options: how }) => `${inFstab(from)} ${inFstab(join(root, to))} none ${how}\n`);
  await writeFile(fstab, lines.join(''));
  const script = [
    'set -e',
    'container_path=$PATH',
    'PATH=/usr/sbin:/usr/bin:/sbin:/bin',
    `hostname ${quote(options.hostname)} 2>/dev/null || true`,
    `R=${quote(root)}`,
    'mount --bind "$R" "$R"',
    `mount --all --fstab ${quote(fstab)}`,
  ];
  if (options.readOnlyRoot) {
    script.push('mount -o remount,bind,ro "$R"');
  }
  const asRoot = process.getuid?.() === 0;
  const drop = asRoot
    ? [
        'setpriv',
        `--reuid=${user.uid}`,
        `--regid=${user.gid}`,
        user.groups.length > 0 ? `--groups=${user.groups.join(',')}` : '--clear-groups',
        ...(options.dropCapabilities ? ['--bounding-set=-all', '--inh-caps=-all'] : []),
        ...(options.noNewPrivileges ? ['--no-new-privs'] : []),
      ]
    : ['setpriv'];
  // The parent's death kills the process: nothing survives a runner that is killed itself.
  const run = [...drop, '--pdeathsig=KILL', '/usr/bin/env', `--chdir=${options.workingDir}`, ...options.command];
  script.push('PATH=$container_path', `exec /usr/sbin/chroot "$R" /usr/bin/${run.map(quote).join(' ')}`);
  const path = `${root}.sh`;
  await writeFile(path, `${script.join('\n')}\n`, { mode: 0o700 });
  return {
    command: '/usr/bin/unshare',
    args: [...(asRoot ? [] : ['--user', '--map-root-user']), '--mount', '--uts', '/bin/sh', path],
  };
}

/** Folders that every container shares with the machine. /usr/local is the image's own. */
const hostFolders = [
  ...readdirSync('/usr')
    .filter((name) => /^(bin|sbin|lib\w*|share)$/.test(name) && !lstatSync(`/usr/${name}`).isSymbolicLink())
    .map((name) => `/usr/${name}`),
  ...readdirSync('/')
    .filter((name) => /^(bin|sbin|lib\w*)$/.test(name) && !lstatSync(`/${name}`).isSymbolicLink())
    .map((name) => `/${name}`),
  ...['/etc/ssl', '/etc/alternatives'].filter(isFolder),
];

async function layOut({ root, image, user, workingDir }: SandboxOptions): Promise<void> {
  for (const folder of [...hostFolders, '/dev', '/proc', '/etc', '/run', '/var', '/usr/local/bin', '/root']) {
    await mkdir(join(root, folder), { recursive: true, mode: 0o755 });
  }
  await mkdir(join(root, 'tmp'));
  await chmod(join(root, 'tmp'), 0o1777);
  for (const name of readdirSync('/')) {
    if (/^(bin|sbin|lib\w*)$/.test(name) && lstatSync(`/${name}`).isSymbolicLink()) {
      await symlink(readlinkSync(`/${name}`), join(root, name));
    }
  }
  await symlink('../run', join(root, 'var/run')); // relative: also right when seen from outside
  for (const name of ['ld.so.cache', 'localtime', 'mime.types', 'services', 'protocols']) {
    await copyFile(`/etc/${name}`, join(root, 'etc', name)).catch(ignoreMissing);
  }
  const owner = image.user ?? { name: 'root', uid: 0, gid: 0 };
  const names = new Map([[0, 'root']]).set(owner.uid, owner.name);
  if (!names.has(user.uid)) {
    names.set(user.uid, `user${user.uid}`);
  }
  const home = image.env?.HOME ?? '/';
  const lines = [...names].map(([uid, name]) => `${name}:x:${uid}:${uid}::${uid === 0 ? '/root' : home}:/bin/sh`);
  await writeFile(join(root, 'etc/passwd'), `${lines.join('\n')}\n`);
  await writeFile(join(root, 'etc/group'), [...names].map(([gid, name]) => `${name}:x:${gid}:\n`).join(''));
  await writeFile(join(root, 'etc/nsswitch.conf'), 'passwd: files\ngroup: files\nhosts: files\nservices: files\n');
  await writeFile(join(root, 'etc/resolv.conf'), '');
  await writeFile(join(root, 'etc/hosts'), '');
  for (const [path, file] of Object.entries(image.files ?? {})) {
    await mkdir(dirname(join(root, path)), { recursive: true, mode: 0o755 });
    if ('script' in file) {
      await writeFile(join(root, path), `#!/bin/sh\n${file.script}\n`, { mode: 0o755 });
    }
  }
  for (const folder of [...(image.folders ?? []), workingDir]) {
    await mkdir(join(root, folder), { recursive: true, mode: 0o755 });
    if (folder !== '/' && process.getuid?.() === 0) {
      await chown(join(root, folder), owner.uid, owner.gid);
    }
  }
}

/** Makes the files and folders that mounts cover, in the mounts before them where they lie in one. */
async function makeMountPoints(root: string, mounts: readonly Mount[]): Promise<void> {
  for (const [i, { from, to }] of mounts.entries()) {
    const around = mounts.slice(0, i).findLast((mount) => to.startsWith(`${mount.to}/`));
    const point = around ? join(around.from, to.slice(around.to.length)) : join(root, to);
    await mkdir(isFolder(from) ? point : dirname(point), { recursive: true, mode: 0o755 });
    if (!isFolder(from)) {
      await (await open(point, 'a')).close();
    }
  }
}

/** A path as fstab(5) wants it. */
function inFstab(path: string): string {
  return path.replace(/[\s\\]/g, (c) => `\\${c.charCodeAt(0).toString(8).padStart(3, '0')}`);
}

/**
 * Whether a command can be executed in a container of this image, as far as that is known without starting it:
 * looked up like `execvp` does, in the image's files and the folders shared with the machine.
 */
export function isExecutable(command: string, image: Image, mounts: readonly Mount[]): boolean {
  if (command.includes('/') && mounts.some((mount) => command.startsWith(`${mount.to}/`))) {
    return true;
  }
  const candidates = command.includes('/')
    ? [command]
    : ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'].map((f) => `${f}/${command}`);
  return candidates.some((path) => {
    if (image.files?.[path]) {
      return true;
    }
    const isShared = hostFolders.some((folder) => path.startsWith(`${folder}/`)) || /^\/s?bin\//.test(path);
    return isShared && statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  });
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') {
    throw error;
  }
}
