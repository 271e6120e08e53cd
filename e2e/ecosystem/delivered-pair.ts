import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { namespaces } from '../../lib/kube/index.ts';
import { applyDeliveredArgoCd } from '../argocd/index.ts';
import { fleetApplications, fleetAppProjects } from '../fleet/index.ts';
import { type GitServer, startGitServer } from '../git/index.ts';
import { type ImageTable, standardImages, startNode } from '../node/index.ts';
import { namespace, type Pair, type PairOptions, permissiveProject, startPair } from '../pair/index.ts';
import { type Cluster, startCluster } from '../testbed/index.ts';
import { toolPath } from '../tools/index.ts';

/** A hub and the cluster of an agent that runs the delivered Argo CD, with a Git server for what it deploys. */
export interface DeliveredPair {
  readonly pair: Pair<Cluster>;
  readonly git: GitServer;
  /** Holds the repositories below `git`; goes with the pair. */
  readonly folder: string;
  /** What is on the hub and what the programs said, for the output of a failing test. */
  troubles(): Promise<string>;
  stop(): Promise<void>;
}

/** What else a {@link DeliveredPair} has. */
export interface DeliveredPairOptions {
  /** Of the cluster. */
  readonly namespaces?: readonly string[];
  /** Images that the cluster's pods may have besides the standard ones. */
  readonly images?: ImageTable;
  /** How principal and agent are started. */
  readonly pair?: Pick<PairOptions, 'principal' | 'agent'>;
}

/** Starts it, with an AppProject `default` that admits everything. */
export async function startDeliveredPair(options: DeliveredPairOptions = {}): Promise<DeliveredPair> {
  const stops: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (const end of stops.splice(0).reverse()) {
      await end();
    }
  };
  try {
    const folder = await mkdtemp(join(tmpdir(), 'delivered-'));
    stops.push(() => rm(folder, { recursive: true, force: true }));
    const git = await startGitServer(join(folder, 'git'));
    stops.push(() => git.stop());
    const pair = await startPair(options.pair ?? {}, () => startCluster());
    stops.push(() => pair.stop());
    const { hub, managed } = pair;
    const images = { ...standardImages(toolPath), ...options.images };
    const node = await startNode({ cluster: managed, dir: join(folder, 'node'), images });
    stops.push(() => node.stop());
    for (const name of options.namespaces ?? []) {
      await managed.client.create(namespaces, { metadata: { name } });
    }
    await applyDeliveredArgoCd(managed.client, namespace);
    const metadata = { namespace, name: 'default' };
    await hub.client.create(fleetAppProjects, { metadata, spec: permissiveProject });
    return {
      pair,
      git,
      folder,
      async troubles() {
        const found = JSON.stringify(await hub.client.list(fleetApplications), null, 1);
        return [found, ...[pair.principal, pair.agent].map(({ output }) => output.slice(-3_000))].join('\n---\n');
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
