import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Network, startNetwork } from '../../e2e/network/index.ts';
import type { Hub } from './hub.ts';
import type { Principal } from './principal.ts';

const cutOffMs = 15_000;
const downMs = 2_000;
const slowMs = 10_000;
const stallMs = 200;
const clockMs = 10_000;

/** What a fault happens to: the first replica, its ways, and the hub. */
export interface FaultVictim {
  readonly principal: Principal;
  readonly hub: Hub;
  /** Between the replica and the API server. */
  readonly apiWay: Network;
  /** Between agents and the replica. */
  readonly agentWay: Network;
}

/** Faults of one replica, or of what it stands on, by name. */
export const replicaFaults = {
  kill: {
    summary: 'one replica is killed with SIGKILL',
    inflict: async ({ principal, agentWay }) => {
      await principal.kill();
      agentWay.cut();
    },
  },
  'api-server': {
    summary: `the API server is killed, and started again after ${downMs / 1000} s`,
    inflict: async ({ hub: { cluster } }) => {
      await cluster.apiServer.kill();
      await sleep(downMs);
      await cluster.apiServer.restart();
    },
  },
  'no-api': {
    summary: `one replica hears nothing of the API server for ${cutOffMs / 1000} s, and still of its agents`,
    inflict: ({ apiWay }) => lost(apiWay),
  },
  'no-agents': {
    summary: `one replica and its agents hear nothing of each other for ${cutOffMs / 1000} s`,
    inflict: ({ agentWay }) => lost(agentWay),
  },
  clock: {
    summary: `the clock of one replica jumps an hour ahead, and back after ${clockMs / 1000} s`,
    inflict: async ({ principal }) => {
      process.kill(principal.pid, 'SIGUSR2');
      await sleep(clockMs);
      process.kill(principal.pid, 'SIGUSR2');
    },
  },
  'slow-disk': {
    summary: `etcd stands still for ${stallMs} ms again and again, as on a slow disk, for ${slowMs / 1000} s`,
    inflict: async ({ hub: { cluster } }) => {
      const { pid } = cluster.etcd;
      if (pid === undefined) {
        throw new Error('etcd does not run');
      }
      for (let passed = 0; passed < slowMs; passed += 2 * stallMs) {
        process.kill(pid, 'SIGSTOP');
        await sleep(stallMs);
        process.kill(pid, 'SIGCONT');
        await sleep(stallMs);
      }
    },
  },
} satisfies Record<string, { summary: string; inflict: (victim: FaultVictim) => Promise<void> }>;

/** The name of one of them. */
export type ReplicaFault = keyof typeof replicaFaults;

/** The faults that a command line names; all when it names none. @throws Error that lists them when one does not exist */
export function chosenFaults(names: readonly string[] = Object.keys(replicaFaults)): ReplicaFault[] {
  return names.map((name) => {
    if (!Object.hasOwn(replicaFaults, name)) {
      throw new Error(`There is no fault ${JSON.stringify(name)}: use ${Object.keys(replicaFaults).join(', ')}.`);
    }
    return name as ReplicaFault;
  });
}

async function lost(way: Network): Promise<void> {
  way.blackHole();
  await sleep(cutOffMs);
  way.heal();
}

/** A way to the hub's API server that can be broken, and a kubeconfig that leads through it. */
export async function startApiWay({ cluster }: Hub): Promise<{ way: Network; kubeconfig: string }> {
  const text = await readFile(cluster.kubeconfig, 'utf8');
  const { host, hostname, port } = new URL(cluster.server);
  const way = await startNetwork(() => ({ host: hostname, port: Number(port) }));
  const kubeconfig = join(cluster.dir, `kubeconfig-${way.port}`);
  await writeFile(kubeconfig, text.replaceAll(host, `${hostname}:${way.port}`), { mode: 0o600 });
  return { way, kubeconfig };
}
