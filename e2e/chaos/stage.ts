import { createAuthority, generateJwtKey } from '../../lib/pki/index.ts';
import { type Network, startNetwork } from '../network/index.ts';
import {
  admitAgent,
  agentLine,
  argoCdProgram,
  freePort,
  namespace,
  Program,
  type ProgramLine,
  pairAppProjects,
  permissiveProject,
  prepareCluster,
  principalLine,
  putArgoCdSettings,
  startApiWay,
} from '../pair/index.ts';
import type { Random } from '../random/index.ts';
import { startRedis } from '../redis/index.ts';
import { type Cluster, startCluster } from '../testbed/index.ts';
import type { ChaosMember } from './ledger.ts';
import { Part } from './part.ts';
import { Trust } from './trust.ts';

/** How large a fleet is. */
export interface StageOptions {
  /** One, or two of which the second follows the first. */
  readonly hubs: 1 | 2;
  /** Principals of each hub. */
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
  /** From other principals of its hub to it. */
  readonly peerWay: Network;
  /** Where it takes orders of an operator: `host:port`. */
  readonly adminAddress: string;
}

/** A hub and its ways. */
export interface StagedHub {
  readonly name: string;
  readonly cluster: Cluster;
  readonly principals: readonly StagedPrincipal[];
  /** Argo CD's own ApplicationSet controller. It runs while the hub is active: docs/second-hub.md. */
  readonly setController: Part;
  /** From the other hub's principals to one of its own that run, as through a Service; undefined with one hub. */
  readonly followWay: Network | undefined;
  /** To the cluster with the Lease of the active hub; undefined with one hub. */
  readonly leaseWay: Network | undefined;
}

/** An agent, its cluster and its ways. */
export interface StagedAgent extends ChaosMember {
  readonly part: Part;
  readonly cluster: Cluster;
  /** To each hub. */
  readonly ways: readonly Network[];
  readonly apiWay: Network;
}

/** A fleet of real processes on this machine. */
export class ChaosStage {
  readonly hubs: readonly StagedHub[];
  readonly agents: readonly StagedAgent[];
  readonly trust: Trust;
  readonly stop: () => Promise<void>;
  #active: StagedHub;

  constructor(made: Pick<ChaosStage, 'hubs' | 'agents' | 'trust' | 'stop'>) {
    this.hubs = made.hubs;
    this.agents = made.agents;
    this.trust = made.trust;
    this.stop = made.stop;
    this.#active = theFirst(made.hubs);
  }

  /** The hub that users work with. */
  get active(): StagedHub {
    return this.#active;
  }

  /** The hub that follows it; undefined with one hub. */
  get standby(): StagedHub | undefined {
    return this.hubs.find((hub) => hub !== this.#active);
  }

  /** The cluster of the active hub. */
  get hub(): Cluster {
    return this.#active.cluster;
  }

  /** Of all hubs. */
  get principals(): readonly StagedPrincipal[] {
    return this.hubs.flatMap(({ principals }) => principals);
  }

  /** All programs. */
  get parts(): readonly Part[] {
    return [...this.principals, ...this.agents].map((one) => one.part);
  }

  /** Users work with the other hub from now on. */
  turn(): void {
    this.#active = this.standby ?? this.#active;
  }
}

function theFirst<T>(all: readonly T[]): T {
  const [first] = all;
  if (first === undefined) {
    throw new RangeError('there is none');
  }
  return first;
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
    const wayToApi = async (to: Cluster) => {
      const started = await startApiWay(to);
      closing.push(() => started.way.close());
      return started;
    };
    const part = (kind: keyof typeof heaps, name: string, { args, healthPort }: ProgramLine) => {
      const program = new Program(args, { NODE_OPTIONS: heaps[kind] });
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
    const isPaired = options.hubs === 2;
    const hubClusters: Cluster[] = [];
    for (const name of isPaired ? ['hub1', 'hub2'] : ['hub']) {
      hubClusters.push(await cluster(name));
    }
    const clusters: Cluster[] = [];
    for (const name of names) {
      clusters.push(await cluster(name));
    }
    for (const one of hubClusters) {
      await prepareCluster(one.client);
      await putArgoCdSettings(one);
    }
    const { client } = theFirst(hubClusters);
    for (const name of names) {
      await admitAgent(client, name);
    }
    await client.create(pairAppProjects, { metadata: { name: 'default', namespace }, spec: permissiveProject });

    const hubs: StagedHub[] = [];
    /** A new connection goes to one of the principals of a hub that run, as through a Service. */
    const wayToHub = (index: number) =>
      way(() => {
        const up = hubs[index]?.principals.filter(({ part }) => part.isUp) ?? [];
        return up.length === 0 ? undefined : { host: '127.0.0.1', port: random.pick(up).port };
      });
    const waysToHubs = () => Promise.all(hubClusters.map((_, index) => wayToHub(index)));
    const followWays = isPaired ? await waysToHubs() : [];
    for (const [index, own] of hubClusters.entries()) {
      const lease = isPaired ? await wayToApi(theFirst(clusters)) : undefined;
      const principals = await Promise.all(
        Array.from({ length: options.replicas }, async (_, number): Promise<StagedPrincipal> => {
          const name = `${isPaired ? `${own.name}-` : ''}principal${number + 1}`;
          const [proxyPort, peerPort, admin] = await Promise.all([freePort(), freePort(), freePort()]);
          const [api, peerWay] = await Promise.all([wayToApi(own), way(() => ({ host: '127.0.0.1', port: peerPort }))]);
          const peer = followWays[1 - index]?.port;
          const line = await principalLine({
            kubeconfig: api.kubeconfig,
            resourceProxy: proxyPort,
            redis: redis.port,
            replica: { listen: peerPort, reached: peerWay.port },
            ...(peer === undefined ? {} : { ha: { role: index === 0 ? 'primary' : 'replica', peer, admin } }),
            args: lease ? [`--ha-lease-kubeconfig=${lease.kubeconfig}`, '--ha-lease-namespace=default'] : [],
          });
          const adminAddress = `127.0.0.1:${admin}`;
          const { port } = line;
          return { part: part('principal', name, line), port, proxyPort, apiWay: api.way, peerWay, adminAddress };
        }),
      );
      const [setHealth, setMetrics, webhook] = await Promise.all([freePort(), freePort(), freePort()]);
      const setController = new Part({
        name: `ApplicationSet controller of ${own.name}`,
        program: await argoCdProgram('argocd-applicationset-controller', own, [
          `--applicationset-namespaces=${names.join(',')}`,
          '--enable-scm-providers=false',
          `--probe-addr=127.0.0.1:${setHealth}`,
          `--metrics-addr=127.0.0.1:${setMetrics}`,
          `--webhook-addr=127.0.0.1:${webhook}`,
        ]),
        healthPort: setHealth,
        boundBytes: Number.POSITIVE_INFINITY,
      });
      closing.push(() => setController.close());
      hubs.push({
        name: own.name,
        cluster: own,
        principals,
        setController,
        followWay: followWays[index],
        leaseWay: lease?.way,
      });
    }

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
        const api = await wayToApi(own);
        const ways = await waysToHubs();
        const line = await agentLine({
          kubeconfig: api.kubeconfig,
          server: ways.length > 1 ? ways.map(({ port }) => port) : theFirst(ways).port,
          mode,
          redis: redis.port,
          // Users ask for what their mirror shows; by then the cluster may want another revision.
          args: ['--operation-revisions=any'],
        });
        const program = part('agent', `agent of ${name}`, line);
        return { name, mode, cluster: own, part: program, ways, apiWay: api.way };
      }),
    );
    const trust = new Trust({ authority, jwtKey, hubs: hubClusters, agents });
    await trust.issueAll();
    return new ChaosStage({ hubs, agents, trust, stop });
  } catch (error) {
    await stop();
    throw error;
  }
}
