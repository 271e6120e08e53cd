import { join } from 'node:path';
import { namespaces } from '../../lib/kube/index.ts';
import { applyDeliveredArgoCd } from '../argocd/index.ts';
import type { GitServer } from '../git/index.ts';
import { startNode } from '../node/index.ts';
import {
  type AgentCluster,
  argoCdProgram,
  freePort,
  namespace,
  type Pair,
  type Program,
  pairAppProjects,
  permissiveProject,
  putArgoCdSettings,
} from '../pair/index.ts';
import type { Cluster } from '../testbed/index.ts';
import { startDeliveredPair } from './delivered-pair.ts';

/** The namespace of the workloads. */
export const target = 'shop';
/** The agent of the autonomous cluster, and its namespace on the hub. */
export const autonomous = 'auto';
/** Namespaces of Applications, besides Argo CD's, that the principal handles at first. */
export const teams = ['team-one', 'team-two'] as const;

/** A hub with its ApplicationSet controller, a managed and an autonomous cluster, both with the delivered Argo CD. */
export interface LeavingScene {
  readonly pair: Pair<Cluster>;
  readonly own: AgentCluster<Cluster>;
  readonly agents: readonly Program[];
  readonly git: GitServer;
  stopPrincipal(): Promise<void>;
  /** Starts another one, which does not handle this namespace any more. */
  startPrincipal(forbidden: (typeof teams)[number]): Promise<void>;
  /** What the programs said, for the output of a failing test. */
  troubles(): Promise<string>;
  stop(): Promise<void>;
}

/** Starts it. */
export async function startLeavingScene(): Promise<LeavingScene> {
  const allowed = new Set<string>(teams);
  const principal = () => ({
    allowedNamespaces: [autonomous, ...allowed],
    args: ['--destination-based-mapping', '--label-selector=tier!=none'],
  });
  const agentArgs = ['--destination-based-mapping', `--allowed-namespaces=${teams.join(',')}`];
  const scene = await startDeliveredPair({
    namespaces: [target, ...teams],
    pair: { principal: principal(), agent: { args: agentArgs } },
  });
  const { pair, git } = scene;
  const stops = [() => scene.stop()];
  const stop = async () => {
    for (const end of stops.splice(0).reverse()) {
      await end();
    }
  };
  try {
    for (const name of teams) {
      await pair.hub.client.create(namespaces, { metadata: { name } });
    }
    const own = await pair.addAgent({ name: autonomous, mode: 'autonomous' });
    const node = await startNode({ cluster: own.cluster, dir: join(scene.folder, 'autonomous-node') });
    stops.push(() => node.stop());
    await own.cluster.client.create(namespaces, { metadata: { name: target } });
    await applyDeliveredArgoCd(own.cluster.client, namespace);
    await own.cluster.client.create(pairAppProjects, {
      metadata: { namespace, name: 'default' },
      spec: permissiveProject,
    });
    const sets = await startApplicationSets(pair.hub);
    stops.push(async () => void (await sets.stop('SIGKILL')));
    let running = pair.principal;
    return {
      pair,
      own,
      agents: [pair.agent, own.agent],
      git,
      async stopPrincipal() {
        await running.stop();
      },
      async startPrincipal(forbidden) {
        allowed.delete(forbidden);
        running = (await pair.newPrincipal({ port: pair.principalPort, ...principal() })).program;
        running.start();
      },
      async troubles() {
        return [running, pair.agent, own.agent].map(({ output }) => output.slice(-6_000)).join('\n---\n');
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startApplicationSets(hub: Cluster): Promise<Program> {
  await putArgoCdSettings(hub);
  const port = async () => `127.0.0.1:${await freePort()}`;
  const sets = await argoCdProgram('argocd-applicationset-controller', hub, [
    `--metrics-addr=${await port()}`,
    `--probe-addr=${await port()}`,
    `--webhook-addr=${await port()}`,
  ]);
  sets.start();
  await sets.says(/Starting workers/);
  return sets;
}
