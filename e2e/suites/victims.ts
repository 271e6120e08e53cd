import { setTimeout as sleep } from 'node:timers/promises';
import { type RunningFleet, releaseNamespace } from '../fleet/index.ts';
import type { Node } from '../node/index.ts';
import type { Cluster } from '../testbed/index.ts';

/** Something that can be killed: a program in a pod, which its node starts again, or a part of a control plane. */
export interface Victim {
  readonly name: string;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** Brings it back when nobody else does; resolves when it works. */
  revive(): Promise<void>;
}

const clusters = ['hub', 'cluster1', 'cluster2'] as const;

/** The names of everything that must survive being killed. */
export const victimNames: readonly string[] = [
  'principal',
  'controller',
  ...clusters.slice(1).map((cluster) => `agent of ${cluster}`),
  ...clusters.flatMap((cluster) => [`API server of ${cluster}`, `etcd of ${cluster}`]),
];

/** The victim of a name from {@link victimNames}. */
export function victimOf(fleet: RunningFleet, name: string): Victim {
  const [what = '', where = ''] = name.split(' of ');
  if (what === 'principal') {
    return program(name, fleet.hubNode, 'argocd', 'argocd-agent-principal');
  }
  if (what === 'controller') {
    return program(name, fleet.hubNode, releaseNamespace, 'argocd-agent-addon-controller');
  }
  const member = fleet.members.get(where);
  if (what === 'agent' && member) {
    return program(name, member.node, 'argocd', 'argocd-agent-agent');
  }
  const cluster = where === 'hub' ? fleet.hub : member?.cluster;
  if (!cluster) {
    throw new Error(`there is no ${name}`);
  }
  return component(name, cluster, what === 'etcd' ? 'etcd' : 'apiServer');
}

function program(name: string, node: Node, namespace: string, pod: string): Victim {
  return {
    name,
    async kill() {
      // It may not have been delivered yet, or wait for its restart after an earlier death: then the next run is killed.
      const deadline = Date.now() + 300_000;
      while (node.kill(namespace, pod) === undefined) {
        if (Date.now() > deadline) {
          throw new Error(`no ${name} runs`);
        }
        await sleep(20);
      }
    },
    revive: async () => undefined,
  };
}

function component(name: string, cluster: Cluster, part: 'etcd' | 'apiServer'): Victim {
  return { name, kill: () => cluster[part].kill(), revive: () => cluster[part].restart() };
}
