import {
  type Application,
  type AppProject,
  annotations,
  isUntouchedDefault,
  type Mapping,
  matchesAny,
  ownerOfMirror,
} from '../lib/argocd/index.ts';
import type { AgentMode } from '../lib/auth/index.ts';

/** What {@link noticeOn} needs of the principal. */
export interface NoticeSources {
  readonly mapping: Mapping;
  /** The principal's own namespace. */
  readonly namespace: string;
  /** Whether an agent has a cluster Secret. */
  readonly isMapped: (agent: string) => boolean;
  /** The mode that an agent must have, undefined when it may have any. */
  readonly modeOf: (agent: string) => AgentMode | undefined;
  /** The agent of the hub's cluster with this name or URL; empty when it has none; undefined when there is no such cluster. */
  readonly agentOfCluster: (nameOrUrl: string) => string | undefined;
  /** The hub's AppProject. */
  readonly project: (name: string) => AppProject | undefined;
  /** Whether a managed agent gets an AppProject of the hub. */
  readonly isFor: (project: AppProject, agent: string) => boolean;
}

/**
 * Why the agent that an Application of the hub belongs to does not deploy it, although the hub's Argo CD leaves it to an
 * agent; undefined when the agent does, when the hub's own Argo CD serves the destination, or when the agent itself reports
 * why.
 */
export function noticeOn(application: Application, agent: string, sources: NoticeSources): string | undefined {
  const { mapping, namespace, isMapped, modeOf, agentOfCluster } = sources;
  const { [annotations.lastUpdated]: mirrored } = application.metadata.annotations ?? {};
  if (mirrored !== undefined) {
    return undefined;
  }
  if (!isMapped(agent)) {
    const { name = '', server = '' } = application.spec.destination ?? {};
    const isOfHub =
      name === 'in-cluster' ||
      server === 'https://kubernetes.default.svc' ||
      agentOfCluster(name) === '' ||
      agentOfCluster(server) === '';
    if (isOfHub || (mapping === 'namespace' && application.metadata.namespace === namespace)) {
      return undefined;
    }
    const other = agentOfCluster(name) ?? '';
    return mapping === 'destination' && other !== ''
      ? `there is no agent named ${agent}; the cluster of this name belongs to agent ${other}, which spec.destination.name must name`
      : `there is no agent named ${agent}`;
  }
  if (modeOf(agent) === 'autonomous') {
    return `agent ${agent} is autonomous: it deploys no Applications of the hub`;
  }
  return projectNotice(application, agent, sources);
}

function projectNotice(
  { spec }: Application,
  agent: string,
  { mapping, project: projectOf, isFor }: NoticeSources,
): string | undefined {
  const name = spec.project || 'default';
  const project = projectOf(name);
  if (project === undefined || isUntouchedDefault(project)) {
    return undefined;
  }
  if (ownerOfMirror(project) !== undefined) {
    return `AppProject ${name} is a mirror of agent ${ownerOfMirror(project)}, so ${agent} does not have it`;
  }
  if (isFor(project, agent)) {
    return undefined;
  }
  return mapping === 'namespace' && !matchesAny(project.spec.sourceNamespaces ?? [], agent)
    ? `AppProject ${name} does not admit source namespace ${agent}, so ${agent} does not have it`
    : `AppProject ${name} does not allow destination ${agent}, so ${agent} does not have it`;
}

/** Which agents get which AppProjects. Applications ask for each change of their status. */
export class ProjectDecisions {
  readonly #decide: (project: AppProject, agent: string) => boolean;
  #known = new WeakMap<AppProject, Map<string, boolean>>();

  /** @param decide depends on the project, the agent and its clusters alone */
  constructor(decide: (project: AppProject, agent: string) => boolean) {
    this.#decide = decide;
  }

  of(project: AppProject, agent: string): boolean {
    let agents = this.#known.get(project);
    if (agents === undefined) {
      agents = new Map();
      this.#known.set(project, agents);
    }
    let decision = agents.get(agent);
    if (decision === undefined) {
      decision = this.#decide(project, agent);
      agents.set(agent, decision);
    }
    return decision;
  }

  /** The clusters of an agent have changed. */
  forget(): void {
    this.#known = new WeakMap();
  }
}
