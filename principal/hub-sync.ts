import {
  type Application,
  ApplicationMirrors,
  type AppProject,
  type ArgoCluster,
  annotations,
  applicationAdmission,
  applicationRouter,
  type DisconnectedAgent,
  excessOf,
  type GpgKeys,
  HubApplications,
  HubSync,
  isProjectForAgent,
  isSkipped,
  type Mapping,
  type MirrorChange,
  type MirrorFailure,
  ProjectDecisions,
  ProjectMirrors,
  projectOfRepository,
  projectTargets,
  publishAppProjects,
  publishGpgKeys,
  publishRepositories,
  type RepositorySecret,
  routingUrl,
  sameNamespaces,
  undecidedApplications,
  VirtualProjects,
  warnOfUnreadableEntries,
  withoutMirrors,
} from '../lib/argocd/index.ts';
import { FairTurns, type Logger, labelCompletion, labelSelector, type TurnLimits } from '../lib/base/index.ts';
import { argoApplications, argoAppProjects, detailedStores, syncSelector } from '../lib/bridge/index.ts';
import { configMaps, type KubeClient, secrets } from '../lib/kube/index.ts';
import type { Detail } from '../lib/ops/index.ts';
import { type Delivered, type ObjectRef, processRuntime, type Store, type StoredObject } from '../lib/sync/index.ts';
import type { Tracer } from '../lib/tracing/index.ts';
import { type NoticeSources, noticeOn, projectRefusal } from './application-notices.ts';
import { type PrincipalCaches, repositorySecrets } from './caches.ts';
import type { PrincipalFlags } from './flags.ts';
import { hubNamespaceCreator, type NamespaceCreation, principalFieldManager } from './namespaces.ts';
import type { AgentQuotas } from './quotas/agent-quotas.ts';
import type { FencedKind, Replicas } from './replicas/index.ts';

/** The synchronisation, and what others need of its parts. */
export interface HubSynchronisation {
  readonly sync: HubSync;
  /** Call it when the hub's cluster with this name or URL came, went or changed. */
  hubClusterChanged(nameOrUrl: string): void;
  /** Call it when the name or URL of an agent's cluster in the hub's Argo CD may have changed. */
  clusterChanged(agent: string): void;
  /** The agent that deploys a hub Application, as its own or as one that the hub mirrors; undefined when none does. */
  ownerOf(application: Application): string | undefined;
  /** The managed agent that has a hub Application; undefined when none has it. */
  agentOf(application: Application): string | undefined;
  /** Why an agent gets nothing of an Application: there is none, or the hub's AppProject keeps it from it; undefined when it does. */
  refusalOf(application: Application, agent: string): string | undefined;
  /** Call it when an agent has got its first cluster Secret. */
  mapped(agent: string): void;
  /** Another principal has a connection of an agent, or has it no longer. */
  servedElsewhere(agent: string, isServed: boolean, isManaged: boolean): void;
  /** This principal is responsible from now on for an agent; undefined: for all agents and Applications that nobody else has. */
  responsibleFor(agent: string | undefined): void;
  /** The agents that have been without a connection for longer than `--agent-disconnect-grace-period`. */
  disconnectedAgents(): DisconnectedAgent[];
}

/**
 * How long one turn of the event loop looks at what one change concerns: an AppProject may have to be matched for every agent, and each
 * of its Applications may need a notice.
 */
const lookLimits: TurnLimits = {
  messages: Number.POSITIVE_INFINITY,
  bytes: Number.POSITIVE_INFINITY,
  milliseconds: 5,
  messagesPerPeer: Number.POSITIVE_INFINITY,
  millisecondsPerPeer: Number.POSITIVE_INFINITY,
  restFactor: 0,
};

/** Everything that this principal synchronises, according to its flags. */
export function hubSync(options: {
  flags: PrincipalFlags;
  client: KubeClient;
  caches: PrincipalCaches;
  principalUid: string;
  /** The agents with a cluster Secret. */
  agents: () => readonly string[];
  /** When an agent that is not connected was last connected, if that is known. */
  lastSeen: (agent: string) => Date | undefined;
  /** The same of managed agents; undefined for any other. */
  managedLastSeen: (agent: string) => Date | undefined;
  /** Namespace of Argo CD on an agent's cluster, as the agent reported it. */
  agentNamespace: (agent: string) => string | undefined;
  /** The agent's clusters in the hub's Argo CD, mostly one. */
  clustersOf: (agent: string) => readonly ArgoCluster[];
  /** What the principal knows about agents and the hub's clusters, for notices on Applications that no agent deploys. */
  fleet: Pick<NoticeSources, 'isMapped' | 'modeOf' | 'agentOfCluster' | 'secretsWithUrl'> & {
    /** The agent of the hub's only cluster with this URL; empty when it has none; undefined when there is no such cluster, or several. */
    readonly agentOfUrl: (url: string) => string | undefined;
  };
  namespaceCreation: NamespaceCreation | undefined;
  /** Called when an agent sent a forbidden event. */
  refused: (agent: string, resourceType: string) => void;
  /** Called when an object of an autonomous agent cannot be mirrored. */
  onFailure: (trouble: MirrorFailure) => void;
  /** Called when somebody of the hub has changed or deleted a mirror, and it is as before again. */
  onPutBack: (mirror: Application, was: MirrorChange) => void;
  /** Called when a managed agent has an Application that the hub does not have and that was made for another principal. */
  onForeign: (agent: string, application: ObjectRef) => void;
  /** Called when the API server has refused for a while what a managed agent reports about an Application. */
  onRefused: (agent: string, application: ObjectRef, reason: string) => void;
  quotas: AgentQuotas;
  /** This process as one of several principals; undefined: it is the only one. */
  replicas: Pick<Replicas, 'fence' | 'isResponsible' | 'directory'> | undefined;
  /** Called when an agent has acknowledged a state. */
  delivered: (delivery: Delivered) => void;
  /** What is done about a message is part of its trace. Undefined: nothing is traced. */
  tracer: Tracer | undefined;
  detail: Detail;
  logger: Logger;
}): HubSynchronisation {
  const { flags, client, caches, principalUid, namespaceCreation, quotas, replicas, detail, logger } = options;
  const { namespace } = flags;
  const mapping: Mapping = flags['destination-based-mapping'] ? 'destination' : 'namespace';
  const { tracer, delivered } = options;
  const turns = new FairTurns<object>(lookLimits);
  const runtime = { ...processRuntime(logger), delivered, context: tracer && (() => tracer.keep()), turns };
  const store = detailedStores({ client, fieldManager: principalFieldManager, detail, logger });
  warnOfUnreadableEntries('allowed-namespaces', flags['allowed-namespaces'], logger);
  const selects = labelSelector(flags['label-selector']);
  // The cache of Applications is restricted by the same selector; what has left it is read. Mirrors are always selected.
  // What URLs mean for those who hold Applications by them: it changes in `hubClusterChanged` alone.
  const agentsByUrl = new Map<string, string>();
  const agentOfUrl = (url: string) => agentsByUrl.get(url);
  const routing = { namespace, allowedNamespaces: flags['allowed-namespaces'], mapping, selects, agentOfUrl };
  const router = applicationRouter(routing);
  const isAdmitted = applicationAdmission(routing);
  const isUndecided = undecidedApplications(routing);
  const urlOf = mapping === 'destination' ? routingUrl : undefined;
  const fenced = <T extends StoredObject>(unguarded: Store<T>, kind: FencedKind<T>) =>
    replicas === undefined ? unguarded : replicas.fence.guard(unguarded, kind);
  const projects = store<AppProject>(argoAppProjects, caches.AppProjects);
  // Mirrors of projects have no labels, so that no selector finds them.
  const allProjects = store<AppProject>(argoAppProjects, caches['all AppProjects']);
  const mirrorOwner = ({ metadata }: AppProject) => metadata.annotations?.[annotations.mirrorOf];
  const mirrorProjects = quotas.follow(allProjects, { kind: 'AppProject', ownerOf: mirrorOwner, isMirror: () => true })(
    fenced(allProjects, {
      ownerOf: mirrorOwner,
      get: (ref) => caches['all AppProjects'].get(ref) as AppProject | undefined,
    }),
  );
  // Mirrors are in the namespace named after their agent.
  const ownerOf = (application: Application) =>
    isMirrorMarked(application) ? application.metadata.namespace : router(application);
  const plainApplications = store<Application>(argoApplications, caches.Applications);
  const guard = quotas.follow(plainApplications, { kind: 'Application', ownerOf, isMirror: isMirrorMarked });
  const get = (ref: ObjectRef) => caches.Applications.get(ref) as unknown as Application | undefined;
  const hubApplications = guard(fenced(plainApplications, { ownerOf, get }));
  // A mirror whose mark a user took away is its agent's all the same.
  const mirrorApplications = guard(fenced(plainApplications, { ownerOf: ({ metadata }) => metadata.namespace, get }));
  // The mirrors of an agent that another replica serves are known by their marks alone.
  const isOthersMirror = (application: Application) =>
    isMirrorMarked(application) &&
    typeof replicas?.directory.holderOf(application.metadata.namespace ?? '') === 'object';
  const pace = (agent: string, signal: AbortSignal) => quotas.pace(agent, signal);
  const { clustersOf } = options;
  const clusterOf = (agent: string) => clustersOf(agent)[0];
  const isInstance = (instance: string) => managed.isInstance(instance);
  const virtualProjects = new VirtualProjects({
    projects: allProjects,
    secrets: store<RepositorySecret>(secrets, caches.Secrets),
    settings: store<GpgKeys>(configMaps, caches['Argo CD settings']),
    runtime,
  });
  const targetOf = projectTargets({ clustersOf, virtualProjects });
  const departures = {
    hasLeft: (agent: string) => !options.fleet.isMapped(agent),
    isResponsible: replicas && ((agent: string) => replicas.isResponsible(agent)),
  };
  const decisions = new ProjectDecisions((project, agent) =>
    isProjectForAgent(virtualProjects.of(project), targetOf(agent), mapping),
  );
  const common = { namespace, principalUid, mapping, clustersOf, virtualProjects, decisions, isInstance, runtime };
  const tuning = { concurrency: flags['event-processors'] };
  const mirrors = new ApplicationMirrors({
    applications: mirrorApplications,
    labelsOf: labelCompletion(syncSelector(flags['label-selector'])),
    principalUid,
    clusterOf: (agent) => clusterOf(agent)?.name,
    ensureNamespace: namespaceCreation && hubNamespaceCreator(client, namespaceCreation, logger),
    ...departures,
    onFailure: options.onFailure,
    onPutBack: options.onPutBack,
    presenceChanged: (agent, isThere) => managed.presenceChanged(agent, isThere),
    pace,
    tuning,
    runtime,
  });
  const projectMirrors = new ProjectMirrors({
    store: mirrorProjects,
    namespace,
    ...departures,
    clusterOf,
    keepsGroups: flags['autonomous-project-groups'],
    onFailure: options.onFailure,
    pace,
    tuning,
    runtime,
  });
  const sharesDefault = mapping === 'destination' || flags['share-default-project'];
  const publishedProjects = publishAppProjects({ store: projects, sharesDefault, ...common });
  const agentOf =
    mapping === 'destination' ? withoutMirrors(router, (one) => mirrors.isMirror(one) || isOthersMirror(one)) : router;
  const shares = flags['share-repositories'];
  const publishedRepositories = publishRepositories({
    store: store<RepositorySecret>(secrets, caches.Secrets),
    projects,
    sharing: shares ? { applications: hubApplications, agentOf, urlOf } : undefined,
    // This cache serves other purposes too, and is therefore not restricted; so is that of the keys.
    selects,
    ...common,
  });
  const noticeSources: NoticeSources = {
    ...options.fleet,
    mapping,
    namespace,
    isAdmitted: (one) => isAdmitted(one) && !isMirrorMarked(one),
    project: (name) => caches.AppProjects.get({ namespace, name }) as AppProject | undefined,
    excess: (project) => excessOf(virtualProjects.of(project)),
    virtual: (project) => virtualProjects.withRepositories(project),
    isFor: (project, name) => decisions.of(project, name),
    secrets: () => caches.Secrets.byIndex(repositorySecrets, '') as RepositorySecret[],
    hasSecret: publishedRepositories.isFor,
    shares,
    sharesDefault,
  };
  const managed: HubApplications = new HubApplications({
    applications: hubApplications,
    principalUid,
    agentOf,
    byUrl: urlOf && { urlOf, isUndecided },
    ...(mapping === 'destination'
      ? {
          namespaceOf: (agent, local) => sameNamespaces(namespace, options.agentNamespace(agent) ?? '').toHub(local),
        }
      : {}),
    lastSeen: options.managedLastSeen,
    isResponsible: replicas && ((application) => replicas.isResponsible(ownerOf(application))),
    disconnection: {
      graceMs: flags['agent-disconnect-grace-period'],
      members: options.agents,
      lastSeen: options.lastSeen,
      agentOfMirror: (application) =>
        isMirrorMarked(application) && !isSkipped(application) ? application.metadata.namespace : undefined,
      // With the other mapping, they belong to the agent like all that is in its namespace.
      ...(mapping === 'destination' ? { namesIn: (agent) => mirrors.namesIn(agent) } : {}),
    },
    pace,
    onForeign: options.onForeign,
    onRefused: options.onRefused,
    notice: (application, agent) => noticeOn(application, agent, noticeSources),
    permits: (application, agent) => projectRefusal(application, agent, noticeSources) === undefined,
    tuning,
    runtime,
  });
  projects.subscribe(({ old, now }) => {
    const { name = '' } = (now ?? old)?.metadata ?? {};
    managed.permissionsChanged({ projects: (one) => one === name });
  });
  virtualProjects.follow((isConcerned) => {
    decisions.forget();
    publishedProjects.reconsider(({ metadata }) => isConcerned(metadata.name));
    publishedRepositories.reconsider((secret) => isConcerned(projectOfRepository(secret) ?? ''));
    managed.permissionsChanged({ projects: isConcerned });
  });
  const sync = new HubSync({
    managed: [
      // In this order: Argo CD refuses an Application whose project it does not know yet.
      publishedProjects,
      publishedRepositories,
      publishGpgKeys({
        store: store<GpgKeys>(configMaps, caches['GPG keys']),
        selects,
        namespace,
        isInstance,
        runtime,
      }),
      managed,
    ],
    refused: (agent, { target }) => options.refused(agent, target),
    autonomous: [projectMirrors, mirrors],
    runtime,
  });
  const clusterChanged = (agent: string) => {
    decisions.forget(agent);
    publishedProjects.reconsider(() => true, agent);
    publishedRepositories.reconsider(() => true, agent);
    projectMirrors.clusterChanged(agent);
    mirrors.clusterChanged(agent);
    managed.permissionsChanged({ agent });
  };
  // What an autonomous agent's namespace has are its mirrors, which its own projects have admitted.
  const refusalOf = (application: Application, agent: string) => {
    if (!options.fleet.isMapped(agent)) {
      return `there is no agent named ${agent}`;
    }
    return application.metadata.namespace === agent && options.fleet.modeOf(agent) === 'autonomous'
      ? undefined
      : projectRefusal(application, agent, noticeSources);
  };
  const hubClusterChanged = (nameOrUrl: string) => {
    managed.permissionsChanged({ agent: nameOrUrl });
    const settle = [publishedRepositories.reroute(nameOrUrl), managed.reroute(nameOrUrl)];
    const agent = options.fleet.agentOfUrl(nameOrUrl);
    if (agent === undefined) {
      agentsByUrl.delete(nameOrUrl);
    } else {
      agentsByUrl.set(nameOrUrl, agent);
    }
    for (const each of settle) {
      each();
    }
  };
  return {
    sync,
    ownerOf,
    agentOf,
    refusalOf,
    clusterChanged,
    hubClusterChanged,
    mapped: (agent) => managed.expect(agent),
    servedElsewhere: (agent, isServed, isManaged) => managed.servedElsewhere(agent, isServed, isManaged),
    responsibleFor: (agent) => managed.responsibleFor(agent),
    disconnectedAgents: () => managed.disconnectedAgents(),
  };
}

/** Whether an Application bears the mark of a mirror. */
function isMirrorMarked({ metadata }: Application): boolean {
  return (metadata.annotations?.[annotations.sourceUid] ?? '') !== '';
}
