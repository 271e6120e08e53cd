import {
  AgentSync,
  type Application,
  ApplicationCopies,
  ApplicationMirrors,
  type AppProject,
  annotations,
  ClusterApplications,
  type GpgKeys,
  HubApplications,
  HubSync,
  ProjectMirrors,
  publishAppProjects,
  publishGpgKeys,
  publishOwnAppProjects,
  publishRepositories,
  type RepositorySecret,
  replicateAppProjects,
  replicateGpgKeys,
  replicateRepositories,
  routingUrl,
} from '../lib/argocd/index.ts';
import { FairTurns, type Logger, type TurnLimits } from '../lib/base/index.ts';
import type { Clock, ObjectRef, Runtime, Store, StoredObject } from '../lib/sync/index.ts';
import type { SimulatedCluster } from './cluster.ts';
import { UrlsOfPrincipal } from './cluster-secrets.ts';
import { type Audit, ClusterStore } from './cluster-store.ts';
import { AutonomousGoAgent } from './go-autonomous-agent.ts';
import { ManagedGoAgent } from './go-managed-agent.ts';
import { agentNamespace, clusterOf, principalNamespace } from './layout.ts';
import { Machine } from './machine.ts';
import type { AgentProgram } from './network.ts';
import type { Process, Scene, Site } from './world.ts';

/** Short, so that most histories have an agent that is away for longer. */
const disconnectGraceMs = 2_000;
/** Leases are written faster than objects: so a hand-over may overtake a write. */
const slowMs = 40;

/** Starts the agent of a site. */
export function startAgentProgram(
  scene: Scene,
  site: Pick<Site, 'name' | 'mode' | 'isGo' | 'cluster'>,
): Process<AgentProgram> {
  const { dice, layout } = scene;
  const stop = new AbortController();
  const machine = new Machine(scene.time);
  const applications = new ClusterStore(site.cluster.of('Application'), dice, machine);
  if (site.isGo) {
    const { newId } = commonOptions(scene, site.name).runtime;
    const GoAgent = site.mode === 'managed' ? ManagedGoAgent : AutonomousGoAgent;
    const program = new GoAgent({ store: applications, time: scene.time, dice, newId });
    program.start(stop.signal);
    return { program, machine, stores: [applications], stop };
  }
  const started = (program: AgentSync, stores: readonly Pick<ClusterStore<never>, 'breakWatch' | 'restored'>[]) => {
    program.start(stop.signal);
    for (const store of stores) {
      store.restored = () => program.restored();
    }
    return { program, machine, stores, stop };
  };
  if (site.mode === 'autonomous') {
    const common = commonOptions(scene, site.name);
    const { projects, stores } = storesOf(scene, site.cluster, machine);
    const kinds = [
      ...(projects === undefined
        ? []
        : [publishOwnAppProjects({ store: projects, namespace: agentNamespace, ...common })]),
      // Operations are told apart by their revisions.
      new ClusterApplications({ applications, namespace: agentNamespace, revisions: 'any', ...common }),
    ];
    const program = new AgentSync({ mode: 'autonomous', kinds, ...common });
    return started(program, [applications, ...stores.slice(0, 1)]);
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
  const { projects, secrets, configMaps, stores } = storesOf(scene, site.cluster, machine);
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
  return started(program, [applications, ...stores]);
}

/** Whose an object of the hub is, and how it was seen last. */
export interface OwnedKind<T> {
  readonly ownerOf: (object: T) => string | undefined;
  readonly get: (ref: ObjectRef) => T | undefined;
}

/** How a principal is started that is one of several. */
export interface SharedHub {
  readonly machine: Machine;
  /**
   * Called for each write for an agent; undefined: for what is no agent's.
   * @param seenOwnerOf whose the object is for principals that do not serve its agent. Default: its owner's
   */
  readonly audit: <T>(ownerOf: OwnedKind<T>['ownerOf'], seenOwnerOf?: OwnedKind<T>['ownerOf']) => Audit<T>;
  /** Lets writes pass that this principal is responsible for. */
  readonly guard: <T extends StoredObject>(store: Store<T>, kind: OwnedKind<T>) => Store<T>;
  readonly isResponsible: (agent: string | undefined) => boolean;
  readonly lastSeen: (agent: string) => Date | undefined;
  readonly managedLastSeen: (agent: string) => Date | undefined;
}

/** The principal's engine. */
export interface SimulatedEngine extends Process<HubSync> {
  readonly applications: HubApplications;
  /** What it knows of the hub; in a world that has Applications only, nothing else. */
  readonly caches: {
    readonly Applications: ClusterStore<Application>;
    readonly AppProjects: ClusterStore<AppProject> | undefined;
    readonly Secrets: ClusterStore<RepositorySecret> | undefined;
    readonly 'GPG keys': ClusterStore<GpgKeys> | undefined;
  };
}

/** Starts the principal, as `principal/hub-sync.ts` does it. */
export function startPrincipalProgram(scene: Scene, shared?: SharedHub): SimulatedEngine {
  const { dice, layout, hub, sites, principalUid } = scene;
  const autonomous = sites.filter(({ mode }) => mode === 'autonomous').map(({ name }) => name);
  const stop = new AbortController();
  const machine = shared?.machine ?? new Machine(scene.time);
  const isMirrorMarked = ({ metadata }: Application) => (metadata.annotations?.[annotations.sourceUid] ?? '') !== '';
  const ownerOf = (application: Application) =>
    isMirrorMarked(application) ? application.metadata.namespace : layout.agentOf(application);
  const isOfMirrors = ({ metadata }: Application) => autonomous.includes(metadata.namespace ?? '');
  const writtenFor = (application: Application) =>
    isOfMirrors(application) ? application.metadata.namespace : ownerOf(application);
  const cache = new ClusterStore(
    hub.of('Application'),
    dice,
    machine,
    shared?.audit(writtenFor, ownerOf),
    shared && slowMs,
  );
  const guarded = (owner: typeof ownerOf) =>
    shared?.guard(cache, { ownerOf: owner, get: (ref) => cache.get(ref) }) ?? cache;
  const applications = guarded(ownerOf);
  const common = commonOptions(scene, 'principal', shared?.machine);
  let mirrors: ApplicationMirrors | undefined;
  const urls = new UrlsOfPrincipal(layout.agentOf);
  const sync = new HubApplications({
    applications,
    principalUid,
    agentOf: (application) => urls.agentOf(application),
    byUrl: { urlOf: routingUrl, isUndecided: (application) => urls.isUndecided(application) },
    permits: (application) => scene.permissions.permits(application),
    ...(layout.namespaceOf === undefined ? {} : { namespaceOf: layout.namespaceOf }),
    ...(shared && {
      lastSeen: shared.managedLastSeen,
      isResponsible: (application) => shared.isResponsible(ownerOf(application)),
    }),
    disconnection: {
      graceMs: disconnectGraceMs,
      members: () => sites.map(({ name }) => name),
      lastSeen: shared?.lastSeen ?? (() => undefined),
      agentOfMirror: ({ metadata }) =>
        autonomous.find((name) => name === metadata.namespace && metadata.annotations?.[annotations.sourceUid]),
      namesIn: (agent) => mirrors?.namesIn(agent) ?? new Set(),
    },
    ...common,
  });
  scene.permissions.follow(() => sync.permissionsChanged({ projects: () => true }), stop.signal);
  const rerouted = (url: string, isAway: boolean) => {
    const settle = sync.reroute(url);
    urls.set(url, isAway);
    settle();
  };
  scene.clusterSecrets.follow(rerouted, stop.signal);
  const others = storesOf(scene, hub, machine, shared && { audit: shared.audit(ownerOfProject), latencyMs: slowMs });
  const { secrets, configMaps, stores } = others;
  const plain = others.projects;
  const projects = plain && (shared?.guard(plain, { ownerOf: ownerOfProject, get: (ref) => plain.get(ref) }) ?? plain);
  const here = { namespace: principalNamespace, ...common };
  const publishers =
    projects === undefined || secrets === undefined
      ? []
      : [
          publishAppProjects({ store: projects, principalUid, mapping: layout.projectMapping, ...here }),
          publishRepositories({ store: secrets, projects, principalUid, mapping: layout.projectMapping, ...here }),
          publishGpgKeys({ store: configMaps, ...here }),
        ];
  const managed = [...publishers, sync];
  const started = (program: HubSync) => {
    program.start(stop.signal);
    const caches = { Applications: cache, AppProjects: plain, Secrets: secrets, 'GPG keys': configMaps };
    return { program, applications: sync, caches, machine, stores: [cache, ...stores], stop };
  };
  if (autonomous.length === 0) {
    return started(new HubSync({ managed, ...common }));
  }
  mirrors = new ApplicationMirrors({
    applications: guarded(({ metadata }) => metadata.namespace),
    principalUid,
    clusterOf,
    presenceChanged: (agent, isThere) => sync.presenceChanged(agent, isThere),
    ...(scene.makesNamespaces ? { ensureNamespace: async (namespace) => void hub.missing.delete(namespace) } : {}),
    ...common,
  });
  const projectMirrors = projects === undefined ? [] : [new ProjectMirrors({ store: projects, ...here })];
  const engine = started(new HubSync({ managed, autonomous: [...projectMirrors, mirrors], ...common }));
  if (shared === undefined) {
    for (const agent of autonomous) {
      engine.program.expect(agent, 'autonomous');
    }
  }
  return engine;
}

function ownerOfProject({ metadata }: AppProject): string | undefined {
  return metadata.annotations?.[annotations.mirrorOf];
}

/** What a program sees of a cluster besides Applications, when there is anything. */
function storesOf(
  { everyKind, dice }: Scene,
  cluster: SimulatedCluster,
  machine: Machine,
  seen?: { readonly audit: Audit<AppProject>; readonly latencyMs: number },
) {
  if (!everyKind) {
    return { projects: undefined, stores: [] } as const;
  }
  const projects = new ClusterStore(cluster.of('AppProject'), dice, machine, seen?.audit, seen?.latencyMs);
  const secrets = new ClusterStore(cluster.of('Secret'), dice, machine);
  const configMaps = new ClusterStore(cluster.of('ConfigMap'), dice, machine);
  return { projects, secrets, configMaps, stores: [projects, secrets, configMaps] };
}

const starts = new WeakMap<Scene, number>();

/** By number alone, so that a history is the same each time. */
const lookLimits: TurnLimits = {
  messages: 2,
  bytes: Number.POSITIVE_INFINITY,
  milliseconds: Number.POSITIVE_INFINITY,
  messagesPerPeer: 2,
  millisecondsPerPeer: Number.POSITIVE_INFINITY,
  restFactor: 0,
};

function commonOptions(scene: Scene, who: string, clock: Clock = scene.time) {
  let ids = 0;
  const incarnation = (starts.get(scene) ?? 0) + 1;
  starts.set(scene, incarnation);
  const say = (fields: object, message: string) =>
    scene.trace(`${who}: ${message} ${JSON.stringify(fields, (_, v) => (v instanceof Error ? v.message : v))}`);
  const log: Logger = { debug: say, info: say, warn: say, error: say };
  const runtime: Runtime = {
    log,
    clock,
    random: scene.dice.roll,
    newId: () => `${who}.${incarnation}.${++ids}`,
    today: () => new Date(scene.time.now()),
    turns: new FairTurns(lookLimits, (run) => void clock.after(0, run)),
  };
  return { runtime, tuning: { maxInFlight: scene.dice.integer(1, 4), concurrency: scene.dice.integer(1, 4) } };
}
