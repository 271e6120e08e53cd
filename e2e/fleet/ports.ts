import { readdir, readFile, readlink } from 'node:fs/promises';
import { kubeletPort } from '../node/index.ts';

/**
 * The ports that a fleet of this machine listens on, at loopback addresses of its own: of containers, Services and
 * kubelets. The ports of API servers and of Argo CD's API are chosen among those that are free.
 */
export const fleetPorts: readonly number[] = [
  ...[80, 443, 6379, 7000, 8000, 8002, 8003, 8080, 8081, 8082, 8083, 8084, 8181, 8443, 8446, 9090, 9443],
  kubeletPort,
];

/** A port that somebody has on all addresses of the machine. */
export interface TakenPort {
  readonly port: number;
  /** The process that has it, as `name (process 42)`; undefined when only another user may know. */
  readonly owner: string | undefined;
}

/**
 * Which of these ports are taken on all addresses, so that nobody can listen on them at any loopback address.
 *
 * @param proc the folder of the processes; only tests have another one than `/proc`
 */
export async function takenPorts(ports: readonly number[], proc = '/proc'): Promise<TakenPort[]> {
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((table) => readFile(`${proc}/net/${table}`, 'utf8').catch(() => '')),
  );
  const inodes = new Map<number, string>();
  for (const line of tables.flatMap((table) => table.split('\n').slice(1))) {
    const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
    const [address = '', port = ''] = local.split(':');
    if (state === listening && /^0+$/.test(address)) {
      inodes.set(Number.parseInt(port, 16), inode);
    }
  }
  const taken = ports.filter((port) => inodes.has(port));
  if (taken.length === 0) {
    return [];
  }
  const owners = await ownersOf(proc, new Set(taken.map((port) => inodes.get(port) ?? '')));
  return taken.map((port) => ({ port, owner: owners.get(inodes.get(port) ?? '') }));
}

/** The state LISTEN in the tables of the kernel. */
const listening = '0A';

/** The processes that have these sockets, by inode. */
async function ownersOf(proc: string, inodes: ReadonlySet<string>): Promise<Map<string, string>> {
  const owners = new Map<string, string>();
  for (const pid of (await readdir(proc)).filter((entry) => /^\d+$/.test(entry))) {
    // Processes end meanwhile, and those of others are closed to an ordinary user.
    const files = await readdir(`${proc}/${pid}/fd`).catch(() => []);
    const targets = await Promise.all(files.map((file) => readlink(`${proc}/${pid}/fd/${file}`).catch(() => '')));
    for (const target of targets) {
      const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
      if (inode !== undefined && inodes.has(inode)) {
        const name = await readFile(`${proc}/${pid}/comm`, 'utf8').catch(() => '?');
        owners.set(inode, `${name.trim()} (process ${pid})`);
      }
    }
  }
  return owners;
}

/** Ports that are taken, in words. */
export function portsInTheWay(taken: readonly TakenPort[]): string {
  const lines = taken.map(({ port, owner }) => `  ${port}: ${owner ?? 'a process of another user'}`);
  return [
    'The pods of the demo listen on these ports, and other programs have them on all addresses of this machine:',
    ...lines,
    'End these programs, or run the demo in a network namespace of its own, once its tools are made:',
    `  sudo unshare --net sh -c 'ip link set lo up && su -c "npm run demo" "$SUDO_USER"'`,
  ].join('\n');
}
