import { leases } from '../../lib/kube/index.ts';
import { namespace, pairApplications } from '../pair/index.ts';
import type { PlayedApplicationController } from './application-controller.ts';
import type { ChaosView } from './invariants.ts';
import type { Onlooker } from './onlooker.ts';
import type { ChaosStage } from './stage.ts';

/** Who is looked at beside the {@link ChaosStage}. */
export interface Lookout {
  readonly stage: ChaosStage;
  readonly controllers: readonly PlayedApplicationController[];
  readonly live: Onlooker;
}

/** Looks at everything that there is now, on all sides. */
export async function lookAround({ stage, controllers, live }: Lookout): Promise<ChaosView> {
  const { client } = stage.hub;
  const [onHub, held, agents, unhealthy, unanswered] = await Promise.all([
    client.list(pairApplications),
    client.list(leases, { namespace }),
    Promise.all(stage.agents.map(({ cluster }) => cluster.client.list(pairApplications))),
    Promise.all(stage.parts.map((part) => part.complaint())),
    live.askAll(),
  ]);
  const replicas = held.filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/component'] === 'replica');
  return {
    agents: stage.agents.map(({ name, mode }, index) => {
      const lease = held.find(({ metadata }) => metadata.name === `argocd-agent-${name}`);
      return {
        name,
        mode,
        onHub: onHub.filter(({ metadata }) => metadata.namespace === name),
        onCluster: agents[index] ?? [],
        holder: lease?.spec?.holderIdentity,
        isConnected: lease?.metadata.annotations?.['argocd-agent.argoproj-labs.io/connected'] === 'true',
      };
    }),
    runs: controllers.flatMap(({ runs }) => runs),
    goneCopies: controllers.flatMap((one) => one.goneCopies),
    replicas: replicas.map(({ spec }) => spec?.holderIdentity ?? ''),
    running: stage.principals.filter(({ part }) => part.isUp).length,
    unhealthy: unhealthy.filter((one) => one !== undefined),
    exits: stage.parts.flatMap(({ exits }) => exits),
    memory: stage.parts.map(({ name, mostBytes, boundBytes }) => ({ name, mostBytes, boundBytes })),
    unanswered,
    wrongAnswers: live.wrong,
  };
}
