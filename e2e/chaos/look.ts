import { leases } from '../../lib/kube/index.ts';
import { type ArgoObject, namespace, pairApplicationSets, pairApplications, pairAppProjects } from '../pair/index.ts';
import type { BusyController } from './application-controller.ts';
import { generatedBy } from './application-sets.ts';
import type { HubOperator } from './hub-operator.ts';
import type { ChaosView } from './invariants.ts';
import { keptOutLabel, type Ledger } from './ledger.ts';
import type { Onlooker } from './onlooker.ts';
import type { Part } from './part.ts';
import type { ChaosStage } from './stage.ts';

/** Who is looked at beside the {@link ChaosStage}. */
export interface Lookout {
  readonly stage: ChaosStage;
  readonly controllers: readonly BusyController[];
  readonly live: Onlooker;
  readonly operator: HubOperator;
  /** The ApplicationSets that users want. */
  readonly sets: Ledger;
}

/** A principal of a standby hub has to say that it follows. */
async function complaintOf(part: Part, { standby }: ChaosStage): Promise<string | undefined> {
  const complaint = await part.complaint();
  if (!standby?.principals.some((one) => one.part === part)) {
    return complaint;
  }
  return complaint?.includes('503 HA state: replicating') ? undefined : `${part.name} does not follow: ${complaint}`;
}

/** Looks at everything that there is now, on all sides. */
export async function lookAround({ stage, controllers, live, operator, sets: wanted }: Lookout): Promise<ChaosView> {
  const { active, standby } = stage;
  const { client } = active.cluster;
  const [onHub, sets, projects, onStandby, setsOnStandby, held, agents, projectsOfAgents, unhealthy, unanswered] =
    await Promise.all([
      client.list(pairApplications),
      client.list(pairApplicationSets),
      client.list(pairAppProjects, { namespace }),
      standby?.cluster.client.list(pairApplications),
      standby?.cluster.client.list(pairApplicationSets),
      client.list(leases, { namespace }),
      Promise.all(stage.agents.map(({ cluster }) => cluster.client.list(pairApplications))),
      Promise.all(stage.agents.map(({ cluster }) => cluster.client.list(pairAppProjects, { namespace }))),
      Promise.all(stage.parts.map((part) => complaintOf(part, stage))),
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
    generated: generatedBy(wanted),
    sets,
    projects: {
      onHub: projects,
      onClusters: new Map(stage.agents.map(({ name }, index) => [name, projectsOfAgents[index] ?? []])),
    },
    goneCopies: controllers.flatMap((one) => one.goneCopies),
    removedWorkloads: controllers.flatMap((one) => one.removedWorkloads),
    replicas: replicas.map(({ spec }) => spec?.holderIdentity ?? ''),
    running: active.principals.filter(({ part }) => part.isUp).length,
    unhealthy: unhealthy.filter((one) => one !== undefined),
    exits: stage.parts.flatMap(({ exits }) => exits),
    memory: stage.parts.map(({ name, mostBytes, boundBytes }) => ({ name, mostBytes, boundBytes })),
    failovers: operator.findings,
    both: onStandby && sharedBy([...onHub, ...sets], [...onStandby, ...(setsOnStandby ?? [])]),
    unanswered,
    wrongAnswers: live.wrong,
  };
}

/** What is kept out of synchronisation is of one hub alone. The standby may have what it was before. */
export function sharedBy(active: readonly ArgoObject[], standby: readonly ArgoObject[]) {
  const isKeptOut = ({ metadata }: ArgoObject) => metadata.labels?.[keptOutLabel] === 'true';
  const keyOf = ({ metadata }: ArgoObject) => `${metadata.namespace}/${metadata.name}`;
  const ofOne = new Set([...active, ...standby].filter(isKeptOut).map(keyOf));
  const isShared = (one: ArgoObject) => !ofOne.has(keyOf(one));
  return { active: active.filter(isShared), standby: standby.filter(isShared) };
}
