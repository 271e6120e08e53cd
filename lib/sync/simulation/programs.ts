import {
  AgentSync,
  ApplicationCopies,
  ApplicationMirrors,
  annotations,
  ClusterApplications,
  HubApplications,
  HubSync,
  ProjectMirrors,
  publishAppProjects,
  publishGpgKeys,
  publishOwnAppProjects,
  publishRepositories,
  replicateAppProjects,
  replicateGpgKeys,
  replicateRepositories,
} from '../../argocd/index.ts';
import type { Logger } from '../../base/index.ts';
import type { Runtime } from '../index.ts';
import type { SimulatedCluster } from './cluster.ts';
import { ClusterStore } from './cluster-store.ts';
import { SimulatedGoAgent } from './go-agent.ts';
import { agentNamespace, clusterOf, principalNamespace, principalUid } from './layout.ts';
import type { AgentProgram, PrincipalProgram } from './network.ts';
import type { Process, Scene, Site } from './world.ts';

/** Short, so that most histories have an agent that is away for longer. */
const disconnectGraceMs = 2_000;

/** Starts the agent of a site. */
export function startAgentProgram(
  scene: Scene,
  site: Pick<Site, 'name' | 'mode' | 'isGo' | 'cluster'>,
): Process<AgentProgram> {
  const { dice, layout } = scene;
  const stop = new AbortController();
  const applications = new ClusterStore(site.cluster.of('Application'), dice, stop.signal);
  if (site.isGo) {
    const { newId } = commonOptions(scene, site.name).runtime;
    const program = new SimulatedGoAgent({ store: applications, time: scene.time, dice, newId });
    program.start(stop.signal);
    return { program, stores: [applications], stop };
  }
  if (site.mode === 'autonomous') {
    const common = commonOptions(scene, site.name);
    const { projects, stores } = storesOf(scene, site.cluster, stop.signal);
    const kinds = [
      ...(projects === undefined
        ? []
        : [publishOwnAppProjects({ store: projects, namespace: agentNamespace, ...common })]),
      new ClusterApplications({ applications, namespace: agentNamespace, ...common }),
    ];
    const program = new AgentSync({ mode: 'autonomous', kinds, ...common });
    program.start(stop.signal);
    return { program, stores: [applications, ...stores.slice(0, 1)], stop };
  }
  const policies = { mismatchPolicy: dice.chance(0.5) ? 'recreate' : 'upsert', adoptionPolicy: 'always' } as const;
  const common = commonOptions(scene, site.name);
  const sync = new ApplicationCopies({
    applications,
    namespace: agentNamespace,
    ...(layout.mapping === undefined ? {} : { mapping: layout.mapping, isAllowed: () => true }),
    ...policies,
    onRecreate: 'ignore',
    ...common,
  });
  const { projects, secrets, configMaps, stores } = storesOf(scene, site.cluster, stop.signal);
  const here = { namespace: agentNamespace, ...common };
  const replicas =
    projects === undefined
      ? []
      : [
          replicateAppProjects({ store: projects, ...here }),
          replicateRepositories({ store: secrets, adoptionPolicy: 'always', ...here }),
          replicateGpgKeys({ store: configMaps, ...here }),
        ];
  const program = new AgentSync({ mode: 'managed', kinds: [...replicas, sync], ...common });
  program.start(stop.signal);
  return { program, stores: [applications, ...stores], stop };
}

/** Starts the principal. */
export function startPrincipalProgram(scene: Scene): Process<PrincipalProgram> {
  const { dice, layout, hub, sites } = scene;
  const autonomous = sites.filter(({ mode }) => mode === 'autonomous').map(({ name }) => name);
  const stop = new AbortController();
  const applications = new ClusterStore(hub.of('Application'), dice, stop.signal);
  const common = commonOptions(scene, 'principal');
  let mirrors: ApplicationMirrors | undefined;
  const sync = new HubApplications({
    applications,
    principalUid,
    agentOf: layout.agentOf,
    ...(layout.namespaceOf === undefined ? {} : { namespaceOf: layout.namespaceOf }),
    disconnection: {
      graceMs: disconnectGraceMs,
      members: () => sites.map(({ name }) => name),
      lastSeen: () => undefined,
      agentOfMirror: ({ metadata }) =>
        autonomous.find((name) => name === metadata.namespace && metadata.annotations?.[annotations.sourceUid]),
      namesIn: (agent) => mirrors?.namesIn(agent) ?? new Set(),
    },
    ...common,
  });
  const { projects, secrets, configMaps, stores } = storesOf(scene, hub, stop.signal);
  const here = { namespace: principalNamespace, ...common };
  const publishers =
    projects === undefined
      ? []
      : [
          publishAppProjects({ store: projects, principalUid, mapping: layout.projectMapping, ...here }),
          publishRepositories({ store: secrets, projects, principalUid, mapping: layout.projectMapping, ...here }),
          publishGpgKeys({ store: configMaps, ...here }),
        ];
  const managed = [...publishers, sync];
  if (autonomous.length === 0) {
    const program = new HubSync({ managed, ...common });
    program.start(stop.signal);
    return { program, stores: [applications, ...stores], stop };
  }
  mirrors = new ApplicationMirrors({
    applications,
    principalUid,
    clusterOf,
    presenceChanged: (agent, isThere) => sync.presenceChanged(agent, isThere),
    ...(scene.makesNamespaces ? { ensureNamespace: async (namespace) => void hub.missing.delete(namespace) } : {}),
    ...common,
  });
  const projectMirrors = projects === undefined ? [] : [new ProjectMirrors({ store: projects, ...here })];
  const program = new HubSync({ managed, autonomous: [...projectMirrors, mirrors], ...common });
  program.start(stop.signal);
  for (const agent of autonomous) {
    program.expect(agent, 'autonomous');
  }
  return { program, stores: [applications, ...stores], stop };
}

/** What a program sees of a cluster besides Applications, when there is anything. */
function storesOf({ everyKind, dice }: Scene, cluster: SimulatedCluster, signal: AbortSignal) {
  if (!everyKind) {
    return { projects: undefined, stores: [] } as const;
  }
  const projects = new ClusterStore(cluster.of('AppProject'), dice, signal);
  const secrets = new ClusterStore(cluster.of('Secret'), dice, signal);
  const configMaps = new ClusterStore(cluster.of('ConfigMap'), dice, signal);
  return { projects, secrets, configMaps, stores: [projects, secrets, configMaps] };
}

const starts = new WeakMap<Scene, number>();

function commonOptions(scene: Scene, who: string) {
  let ids = 0;
  const incarnation = (starts.get(scene) ?? 0) + 1;
  starts.set(scene, incarnation);
  const say = (fields: object, message: string) =>
    scene.trace(`${who}: ${message} ${JSON.stringify(fields, (_, v) => (v instanceof Error ? v.message : v))}`);
  const log: Logger = { debug: say, info: say, warn: say, error: say };
  const runtime: Runtime = {
    log,
    clock: scene.time,
    random: scene.dice.roll,
    newId: () => `${who}.${incarnation}.${++ids}`,
    today: () => new Date(scene.time.now()),
  };
  return { runtime, tuning: { maxInFlight: scene.dice.integer(1, 4), concurrency: scene.dice.integer(1, 4) } };
}
