import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { namespaces } from '../../lib/kube/index.ts';
import { createAuthority, generateJwtKey } from '../../lib/pki/index.ts';
import { type Network, startNetwork } from '../network/index.ts';
import { freePort, mapAgent, namespace, Program, pairAppProjects, prepareCluster, startRedis } from '../pair/index.ts';
import type { Random } from '../random/index.ts';
import { type Cluster, startCluster } from '../testbed/index.ts';
import type { ChaosMember } from './ledger.ts';
import { Part } from './part.ts';
import { Trust } from './trust.ts';

/** How large a fleet is. */
export interface StageOptions {
  /** Principals of the hub. */
  readonly replicas: number;
  /** Managed clusters. Every second agent is autonomous. */
  readonly clusters: number;
  /** Chooses the principal that a new connection goes to. */
  readonly random: Random;
  /** Gets a line about each step. */
  readonly log: (line: string) => void;
}

/** A principal and its ways. */
export interface StagedPrincipal {
  readonly part: Part;
  readonly port: number;
  readonly proxyPort: number;
  readonly apiWay: Network;
  /** From other principals to it. */
  readonly peerWay: Network;
}

/** An agent, its cluster and its ways. */
export interface StagedAgent extends ChaosMember {
  readonly part: Part;
  readonly cluster: Cluster;
  /** To the hub; a new connection goes to one of the principals that run, as through a Service. */
  readonly way: Network;
  readonly apiWay: Network;
}

/** A fleet of real processes on this machine. */
export interface ChaosStage {
  readonly hub: Cluster;
  readonly principals: readonly StagedPrincipal[];
  readonly agents: readonly StagedAgent[];
  readonly trust: Trust;
  /** All programs. */
  readonly parts: readonly Part[];
  stop(): Promise<void>;
}

/**
 * Memory that a program may take here, resident: half of what the charts give the principal, whose fleet is small here, and what
 * they give the agent.
 */
export const memoryBounds = { principal: 1024 * 2 ** 20, agent: 512 * 2 ** 20 } as const;

/** The options that Node.js would choose itself in a container with a limit. */
const heaps = {
  principal: '--max-old-space-size=512 --max-semi-space-size=16',
  agent: '--max-old-space-size=256 --max-semi-space-size=16',
} as const;

/** An AppProject that permits everything. */
export const permissiveProject = {
  sourceRepos: ['*'],
  destinations: [{ name: '*', namespace: '*', server: '*' }],
  sourceNamespaces: ['*'],
  clusterResourceWhitelist: [{ group: '*', kind: '*' }],
};

/** Starts clusters and prepares the programs, which do not run yet. */
export async function startStage(options: StageOptions): Promise<ChaosStage> {
  const { random, log } = options;
  const closing: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (const step of closing.splice(0).reverse()) {
      await step();
    }
  };
  try {
    const names = Array.from({ length: options.clusters }, (_, index) => `cluster${index + 1}`);
    const cluster = async (name: string) => {
      const started = await startCluster({ name });
      closing.push(() => started.stop());
      log(`${name} is up`);
      // Nothing here needs its controllers, which use the processors that the programs could use.
      await started.controllerManager.kill();
      return started;
    };
    const way = async (target: Parameters<typeof startNetwork>[0]) => {
      const started = await startNetwork(target);
      closing.push(() => started.close());
      return started;
    };
    const wayTo = (port: number) => way(() => ({ host: '127.0.0.1', port }));
    const wayToApi = async (to: Cluster, name: string) => {
      const { port } = new URL(to.server);
      const network = await wayTo(Number(port));
      const path = join(to.dir, `${name}-way.kubeconfig`);
      await writeFile(path, (await readFile(to.kubeconfig, 'utf8')).replaceAll(`:${port}`, `:${network.port}`));
      return { network, kubeconfig: path };
    };
    const part = async (kind: 'principal' | 'agent', name: string, args: readonly string[]) => {
      const [healthPort, metricsPort] = await Promise.all([freePort(), freePort()]);
      const ports = [`--healthz-port=${healthPort}`, `--metrics-port=${metricsPort}`];
      const program = new Program([kind, `--namespace=${namespace}`, ...ports, ...args], { NODE_OPTIONS: heaps[kind] });
      const made = new Part({ name, program, healthPort, boundBytes: memoryBounds[kind] });
      closing.push(() => made.close());
      return made;
    };

    const [authority, jwtKey, redis] = await Promise.all([
      createAuthority({ commonName: 'argocd-agent-ca@chaos' }),
      generateJwtKey(2048),
      startRedis(),
    ]);
    closing.push(() => redis.stop());
    const hub = await cluster('hub');
    const clusters: Cluster[] = [];
    for (const name of names) {
      clusters.push(await cluster(name));
    }
    await prepareCluster(hub.client);
    for (const name of names) {
      await hub.client.create(namespaces, { metadata: { name } });
      await mapAgent(hub.client, name);
    }
    await hub.client.create(pairAppProjects, { metadata: { name: 'default', namespace }, spec: permissiveProject });

    const principals = await Promise.all(
      Array.from({ length: options.replicas }, async (_, index): Promise<StagedPrincipal> => {
        const name = `principal${index + 1}`;
        const [port, proxyPort, peerPort] = await Promise.all([freePort(), freePort(), freePort()]);
        const [api, peerWay] = await Promise.all([wayToApi(hub, name), wayTo(peerPort)]);
        const program = await part('principal', name, [
          `--kubeconfig=${api.kubeconfig}`,
          '--allowed-namespaces=*',
          '--listen-host=127.0.0.1',
          `--listen-port=${port}`,
          '--auth=mtls:subject:CN=([^,]+)',
          `--resource-proxy-listen=127.0.0.1:${proxyPort}`,
          '--disable-redis-proxy',
          `--redis-server-address=127.0.0.1:${redis.port}`,
          '--enable-replicas',
          `--replica-listen=127.0.0.1:${peerPort}`,
          `--replica-address=127.0.0.1:${peerWay.port}`,
        ]);
        return { part: program, port, proxyPort, apiWay: api.network, peerWay };
      }),
    );

    const agents = await Promise.all(
      names.map(async (name, index): Promise<StagedAgent> => {
        const own = clusters[index] as Cluster;
        const mode = index % 2 === 1 ? 'autonomous' : 'managed';
        await prepareCluster(own.client);
        if (mode === 'autonomous') {
          await own.client.create(pairAppProjects, {
            metadata: { name: 'default', namespace },
            spec: permissiveProject,
          });
        }
        const api = await wayToApi(own, name);
        const toHub = await way(() => {
          const up = principals.filter(({ part }) => part.isUp);
          return up.length === 0 ? undefined : { host: '127.0.0.1', port: random.pick(up).port };
        });
        const program = await part('agent', `agent of ${name}`, [
          `--kubeconfig=${api.kubeconfig}`,
          '--creds=mtls:any',
          '--server-address=127.0.0.1',
          `--server-port=${toHub.port}`,
          `--agent-mode=${mode}`,
          `--redis-addr=127.0.0.1:${redis.port}`,
        ]);
        return { name, mode, cluster: own, part: program, way: toHub, apiWay: api.network };
      }),
    );
    const trust = new Trust({ authority, jwtKey, hub, agents });
    await trust.issueAll();
    return { hub, principals, agents, trust, parts: [...principals, ...agents].map((one) => one.part), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
