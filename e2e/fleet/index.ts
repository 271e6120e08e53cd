import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { KubeClient } from '../../lib/kube/index.ts';
import { type GitServer, startGitServer } from '../git/index.ts';
import { addonChart, helm, installCrds, installHubArgoCd, ocmCrds } from '../hub/index.ts';
import { type ImageTable, type Node, standardImages, startNode } from '../node/index.ts';
import { type Membership, type Ocm, startOcm } from '../ocm/index.ts';
import { type Cluster, startTestbed, type Testbed } from '../testbed/index.ts';
import { type ToolName, toolPath } from '../tools/index.ts';
import { programLogs } from './logs.ts';
import { troubles } from './troubles.ts';

export * from './endpoint.ts';
export * from './guestbook.ts';
export * from './kinds.ts';
export * from './ports.ts';
export * from './principal.ts';
export * from './troubles.ts';

/** The name under which the add-on is installed. */
export const addonRelease = 'argocd-agent-addon';

/** The namespace that the README's Helm command installs into. */
export const releaseNamespace = 'open-cluster-management-agent-addon';

/** A managed cluster, as every provider gives it. */
export interface SharedMember {
  readonly cluster: Place;
}

/** A managed cluster with its node and its OCM agents. */
export interface FleetMember extends SharedMember {
  readonly cluster: Cluster;
  readonly node: Node;
  readonly membership: Membership;
}

/** A cluster, wherever it comes from. */
export type Place = Pick<Cluster, 'name' | 'client' | 'kubeconfig'>;

/** An OCM hub with Argo CD, ready for `helm install`, and its managed clusters, as every provider gives it. */
export interface SharedFleet {
  readonly hub: Place;
  readonly members: ReadonlyMap<string, SharedMember>;
  /** The address under which the clusters reach what listens on this machine. */
  readonly machine: string;
  /** The same fleet with what only processes of this machine can tell; undefined when its clusters are others. */
  readonly local?: RunningFleet;
  readonly git: GitServer;
  /** A folder for files of the run; it goes with the fleet. */
  readonly folder: string;
  /** Runs Helm against the hub and returns what it prints. */
  helm(...args: string[]): Promise<string>;
  /** The README's `helm install`, with values. */
  install(values?: object): Promise<string>;
  /** Starts another managed cluster and makes it a ManagedCluster with these labels. */
  join(name: string, labels: Record<string, string>): Promise<SharedMember>;
  /** The ends of the logs of this project's programs and what is wrong in the clusters, or where they are. */
  logs(lines?: number): Promise<string>;
  /** Ends everything that belongs to the fleet. */
  stop(): Promise<void>;
}

/** A fleet of this machine's processes. */
export interface RunningFleet extends SharedFleet {
  readonly hub: Cluster;
  readonly hubNode: Node;
  readonly members: ReadonlyMap<string, FleetMember>;
  join(name: string, labels: Record<string, string>): Promise<FleetMember>;
}

/** What a fleet is made of. */
export interface FleetOptions {
  /** How many managed clusters; two unless set. */
  clusters?: number;
  /** The labels of those clusters' ManagedClusters. */
  labels?: Record<string, string>;
  /** Record who asks the API servers for what, for a look at it afterwards. Default: no. */
  audit?: boolean;
  /** Images that the clusters can pull besides or instead of the standard ones. */
  images?: ImageTable;
  signal?: AbortSignal;
  /** Gets an error when a program that should never end, one of OCM's, ended. Default: it fails a test run. */
  crashed?: (error: Error) => void;
  /** Runs a named part of the start-up; to show or to measure it. */
  step?: <T>(what: string, part: () => Promise<T>) => Promise<T>;
  /** Resolves when tools are there that the next part runs. Default: each is made when it is first asked for. */
  need?: (...tools: readonly ToolName[]) => Promise<void>;
}

/** A fleet that could not be started. The message has the logs of the containers that ended with an error. */
export class FleetError extends Error {
  override readonly name = 'FleetError';
}

/**
 * Starts a hub and managed clusters up to the point where an operator would type `helm install`.
 * @throws FleetError when a step fails while nodes are up
 */
export async function startFleet(options: FleetOptions = {}): Promise<RunningFleet> {
  const { clusters: count = 2, labels = {}, audit = false, images = {} } = options;
  const { step = (_, part) => part(), need = () => Promise.resolve() } = options;
  const ended = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, ended.signal]) : ended.signal;
  const members = new Map<string, FleetMember>();
  const stops: (() => Promise<unknown>)[] = [];
  const places: { name: string; client: KubeClient; node: Node }[] = [];
  const stop = async () => {
    ended.abort();
    for (const end of stops.reverse()) {
      await end();
    }
  };
  try {
    await need('supervise', 'etcd', 'kube-apiserver', 'kube-controller-manager');
    const testbed = await step(`hub and ${count} managed clusters: etcd, API server, controller manager`, () =>
      startTestbed({ clusters: count, audit, signal }),
    );
    stops.push(() => testbed.stop());
    const nodes = await step('a process node on each cluster', () =>
      Promise.all([testbed.hub, ...testbed.managed].map((cluster) => startNodeOf(cluster, testbed, images, signal))),
    );
    stops.push(() => Promise.all(nodes.map((node) => node.stop())));
    for (const [i, { name, client }] of [testbed.hub, ...testbed.managed].entries()) {
      places.push({ name, client, node: nodes[i] as Node });
    }
    const [hubNode] = nodes;
    if (!hubNode) {
      throw new Error('the testbed has no hub');
    }
    const git = await startGitServer(join(testbed.dir, 'git'));
    stops.push(() => git.stop());
    await need('helm', 'argocd', 'redis-server');
    await step("Argo CD's API server, application-set controller and Redis on the hub", () =>
      installHubArgoCd(testbed.hub, signal),
    );
    await need('ocm');
    const ocm = await step("OCM's CRDs and controllers on the hub", () =>
      startHubOcm(testbed.hub, { ...options, signal }),
    );
    stops.push(() => ocm.stop());
    const enlist = async (cluster: Cluster, node: Node, clusterLabels: Record<string, string>) => {
      const member = { cluster, node, membership: await ocm.join(cluster, clusterLabels) };
      members.set(cluster.name, member);
      return member;
    };
    await step(`${count} ManagedClusters registered`, () =>
      Promise.all(testbed.managed.map((cluster, i) => enlist(cluster, nodes[i + 1] as Node, labels))),
    );
    const hubHelm = (...args: string[]) => helm(args, { kubeconfig: testbed.hub.kubeconfig, signal });
    const fleet: RunningFleet = {
      logs: async (lines) => [await programLogs({ hubNode, members }, lines), await troubles(places, lines)].join('\n'),
      machine: '127.0.0.1',
      hub: testbed.hub,
      hubNode,
      members,
      git,
      folder: testbed.dir,
      helm: hubHelm,
      async install(values = {}) {
        const file = join(testbed.dir, 'values.yaml');
        await writeFile(file, stringify(values));
        return await hubHelm(
          'install',
          addonRelease,
          addonChart,
          '--namespace',
          releaseNamespace,
          '--create-namespace',
          '--values',
          file,
        );
      },
      async join(name, clusterLabels) {
        const cluster = await testbed.addCluster(name);
        const node = await startNodeOf(cluster, testbed, images, signal);
        stops.push(() => node.stop());
        places.push({ name, client: cluster.client, node });
        return await enlist(cluster, node, clusterLabels);
      },
      stop,
    };
    return Object.assign(fleet, { local: fleet });
  } catch (error) {
    const crashed = signal.aborted ? '' : await troubles(places);
    await stop();
    throw crashed === '' ? error : new FleetError(`${(error as Error).message}\n${crashed}`, { cause: error });
  }
}

async function startNodeOf(cluster: Cluster, testbed: Testbed, images: ImageTable, signal: AbortSignal): Promise<Node> {
  return await startNode({
    cluster,
    name: `${cluster.name}-node`,
    images: { ...standardImages(toolPath), ...images },
    dir: join(testbed.dir, 'nodes', cluster.name),
    signal,
  });
}

async function startHubOcm(
  hub: Cluster,
  { signal, crashed }: { signal: AbortSignal; crashed?: (error: Error) => void },
): Promise<Ocm> {
  await installCrds(hub.client, await ocmCrds('hub'), signal);
  return await startOcm(hub, { signal, ...(crashed && { crashed }) });
}
