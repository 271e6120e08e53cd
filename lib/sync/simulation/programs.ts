import {
  AgentParts,
  AgentSync,
  AutonomousApplications,
  Mirrors,
  PrincipalParts,
  PrincipalSync,
  type SyncLog,
} from '../../argocd/index.ts';
import { ClusterStore } from './cluster-store.ts';
import { agentNamespace, clusterOf, principalUid } from './layout.ts';
import type { AgentProgram, PrincipalProgram, Process, Scene, Site } from './world.ts';

/** Starts the agent of a site. */
export function startAgent(scene: Scene, site: Pick<Site, 'name' | 'mode' | 'cluster'>): Process<AgentProgram> {
  const { dice, layout } = scene;
  const stop = new AbortController();
  const applications = new ClusterStore(site.cluster.of('Application'), dice, stop.signal);
  if (site.mode === 'autonomous') {
    const common = commonOptions(scene, site.name);
    const kinds = [new AutonomousApplications({ applications, namespace: agentNamespace, ...common })];
    const program = new AgentParts({ mode: 'autonomous', kinds, ...common });
    program.start(stop.signal);
    return { program, stores: [applications], stop };
  }
  const policies = { mismatchPolicy: dice.chance(0.5) ? 'recreate' : 'upsert', adoptionPolicy: 'always' } as const;
  const common = commonOptions(scene, site.name);
  const sync = new AgentSync({
    applications,
    namespace: agentNamespace,
    ...(layout.mapping === undefined ? {} : { mapping: layout.mapping, isAllowed: () => true }),
    ...policies,
    onRecreate: 'ignore',
    ...common,
  });
  const program = new AgentParts({ mode: 'managed', kinds: [sync], ...common });
  program.start(stop.signal);
  return { program, stores: [applications], stop };
}

/** Starts the principal. */
export function startPrincipal(scene: Scene): Process<PrincipalProgram> {
  const { dice, layout, hub, sites } = scene;
  const autonomous = sites.filter(({ mode }) => mode === 'autonomous').map(({ name }) => name);
  const stop = new AbortController();
  const applications = new ClusterStore(hub.of('Application'), dice, stop.signal);
  const common = commonOptions(scene, 'principal');
  const sync = new PrincipalSync({
    applications,
    principalUid,
    agentOf: (application) => {
      const agent = layout.agentOf(application);
      return agent !== undefined && autonomous.includes(agent) ? undefined : agent;
    },
    ...(layout.namespaceOf === undefined ? {} : { namespaceOf: layout.namespaceOf }),
    ...common,
  });
  if (autonomous.length === 0) {
    const program = new PrincipalParts({ managed: [sync], ...common });
    program.start(stop.signal);
    return { program, stores: [applications], stop };
  }
  const mirrors = new Mirrors({
    applications,
    principalUid,
    clusterOf,
    ...(scene.makesNamespaces ? { ensureNamespace: async (namespace) => void hub.missing.delete(namespace) } : {}),
    ...common,
  });
  const program = new PrincipalParts({ managed: [sync], autonomous: [mirrors], ...common });
  program.start(stop.signal);
  for (const agent of autonomous) {
    mirrors.part(agent);
  }
  return { program, stores: [applications], stop };
}

const starts = new WeakMap<Scene, number>();

function commonOptions(scene: Scene, who: string) {
  let ids = 0;
  const incarnation = (starts.get(scene) ?? 0) + 1;
  starts.set(scene, incarnation);
  const say = (fields: object, message: string) =>
    scene.say(`${who}: ${message} ${JSON.stringify(fields, (_, v) => (v instanceof Error ? v.message : v))}`);
  const log: SyncLog = { debug: say, info: say, warn: say, error: say };
  return {
    log,
    clock: scene.time,
    random: scene.dice.roll,
    newId: () => `${who}.${incarnation}.${++ids}`,
    today: () => new Date(0),
    maxInFlight: scene.dice.integer(1, 4),
    concurrency: scene.dice.integer(1, 4),
  };
}
