import { setTimeout as sleep } from 'node:timers/promises';
import { namespace } from '../pair/index.ts';
import { type RefusedWrites, refuse } from './admission.ts';
import type { Fault } from './faults.ts';
import type { ChaosStage, StagedAgent, StagedPrincipal } from './stage.ts';

const slowMs = 400;

/** Does a fault and mends it; resolves when it is mended. What is killed is started again, without waiting until it works. */
export async function inflict(fault: Fault, stage: ChaosStage): Promise<void> {
  const { kind, target, forMs } = fault;
  const during = async (begin: () => unknown, end: () => unknown) => {
    await begin();
    await sleep(forMs);
    await end();
  };
  const principal = () => principalOf(stage, target);
  const agent = () => agentOf(stage, target);
  const hub = () => named(stage.hubs, ({ name }) => name === target, target);
  const refusing = async (refusal: RefusedWrites) => {
    const isHub = stage.hubs.some(({ name }) => name === target);
    const admit = await refuse(clusterOf(stage, target).client, refusal, placesOf(stage, refusal, isHub));
    await sleep(forMs);
    await admit();
  };
  switch (kind) {
    case 'kill principal':
      return during(
        () => killed(principal()),
        () => principal().part.start(),
      );
    case 'stop principal':
      return during(
        () => principal().part.end('SIGTERM'),
        () => principal().part.start(),
      );
    case 'freeze principal':
      return during(
        () => principal().part.freeze(),
        () => principal().part.thaw(),
      );
    case 'cut principal off from the API server':
      return during(
        () => principal().apiWay.refuse(),
        () => principal().apiWay.heal(),
      );
    case 'lose principal’s way to the API server':
      return during(
        () => principal().apiWay.blackHole(),
        () => principal().apiWay.heal(),
      );
    case 'cut the links to principal':
      return during(
        () => principal().peerWay.refuse(),
        () => principal().peerWay.heal(),
      );
    case 'kill agent':
      return during(
        () => agent().part.end('SIGKILL'),
        () => agent().part.start(),
      );
    case 'freeze agent':
      return during(
        () => agent().part.freeze(),
        () => agent().part.thaw(),
      );
    case 'cut agent off':
      return during(
        () => agent().ways.map((way) => way.refuse()),
        () => agent().ways.map((way) => way.heal()),
      );
    case 'lose agent’s way':
      return during(
        () => agent().ways.map((way) => way.blackHole()),
        () => agent().ways.map((way) => way.heal()),
      );
    case 'slow agent’s way':
      return during(
        () => agent().ways.map((way) => way.delay(slowMs)),
        () => agent().ways.map((way) => way.delay(0)),
      );
    case 'cut agent off from its API server':
      return during(
        () => agent().apiWay.refuse(),
        () => agent().apiWay.heal(),
      );
    case 'kill API server':
      return during(
        () => clusterOf(stage, target).apiServer.kill(),
        () => clusterOf(stage, target).apiServer.restart(),
      );
    case 'kill etcd':
      return during(
        () => clusterOf(stage, target).etcd.kill(),
        () => clusterOf(stage, target).etcd.restart(),
      );
    case 'forget history':
      return clusterOf(stage, target).compactHistory();
    case 'refuse statuses':
      return refusing('statuses');
    case 'refuse operations':
      return refusing('operations');
    case 'refuse copies':
      return refusing('copies');
    case 'cut the hubs off from each other':
      return during(
        () => stage.hubs.map(({ followWay }) => followWay?.refuse()),
        () => stage.hubs.map(({ followWay }) => followWay?.heal()),
      );
    case 'cut hub off from the Lease':
      return during(
        () => hub().leaseWay?.refuse(),
        () => hub().leaseWay?.heal(),
      );
    case 'new certificate for agent':
      return stage.trust.issueForAgent(target);
    case 'new certificates for principals':
      return stage.trust.issueForHub();
    case 'new authority':
      return stage.trust.change(() => sleep(forMs));
  }
}

/** Where Applications are on a hub or another cluster; of copies: only where no user has sources. */
function placesOf({ agents }: ChaosStage, refusal: RefusedWrites, isHub: boolean): string[] {
  const places = agents.filter(({ mode }) => refusal !== 'copies' || mode === 'autonomous');
  return isHub ? places.map(({ name }) => name) : [namespace];
}

/** A process that is killed leaves its connections to the networks in front of it: they are cut as its kernel cuts them. */
async function killed({ part, peerWay }: StagedPrincipal): Promise<void> {
  await part.end('SIGKILL');
  peerWay.cut();
}

function principalOf({ principals }: ChaosStage, name: string): StagedPrincipal {
  return named(principals, ({ part }) => part.name === name, name);
}

function agentOf({ agents }: ChaosStage, name: string): StagedAgent {
  return named(agents, (agent) => agent.name === name, name);
}

function clusterOf({ hubs, agents }: ChaosStage, name: string) {
  const all = [...hubs, ...agents].map(({ cluster }) => cluster);
  return named(all, (cluster) => cluster.name === name, name);
}

function named<T>(all: readonly T[], isIt: (one: T) => boolean, name: string): T {
  const found = all.find(isIt);
  if (found === undefined) {
    throw new Error(`there is no ${name}`);
  }
  return found;
}
