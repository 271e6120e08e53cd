import {
  isProjectForAgent,
  isUntouchedDefault,
  type Mapping,
  type ProjectTarget,
  projectForAgent,
} from '../../app-project-rules.ts';
import type { AppProject } from '../../application.ts';
import type { ArgoCluster } from '../../project-clusters.ts';
import { excessOf } from '../../project-size.ts';
import { isSkipped } from '../../routing.ts';
import { appProjectKind } from '../kinds.ts';
import { ownerOfMirror } from '../project-mirror.ts';
import { Publisher, type PublisherOptions } from '../publisher.ts';
import type { ProjectDecisions } from './project-decisions.ts';
import type { VirtualProjects } from './virtual-projects.ts';

/** Options that all publishers of a principal share. */
export type HubPublisherOptions<T extends { readonly metadata: AppProject['metadata'] }> = Omit<
  PublisherOptions<T>,
  'kind' | 'forAgent' | 'concerns' | 'asHeld' | 'ownName'
> & { readonly principalUid: string };

/** What the rules of the hub's AppProjects need to know about agents. */
export interface ProjectPublisherOptions {
  readonly mapping: Mapping;
  /** An agent's clusters in the hub's Argo CD. Default: none. */
  readonly clustersOf?: (agent: string) => readonly ArgoCluster[];
  /** What Argo CD makes of the projects. Default: they are what they say. */
  readonly virtualProjects?: Pick<VirtualProjects, 'of' | 'withRepositories' | 'ownersOf'>;
  /** What was decided about the hub's projects. Default: each is decided anew. */
  readonly decisions?: Pick<ProjectDecisions, 'of'>;
}

/** Describes an agent as AppProjects mean it. */
export function projectTargets({
  clustersOf = () => [],
  virtualProjects,
}: Omit<ProjectPublisherOptions, 'mapping'>): (agent: string) => ProjectTarget {
  return (agent) => {
    const clusters = clustersOf(agent);
    return { agent, clusters, projects: virtualProjects?.ownersOf(clusters) ?? [] };
  };
}

/** Whether a managed agent gets a project of the hub ({@link isProjectForAgent}). */
export function projectDecision(options: ProjectPublisherOptions): (project: AppProject, agent: string) => boolean {
  const { mapping, virtualProjects, decisions } = options;
  const targetOf = projectTargets(options);
  return (project, agent) =>
    decisions?.of(project, agent) ??
    isProjectForAgent(virtualProjects?.of(project) ?? project, targetOf(agent), mapping);
}

/**
 * The hub's AppProjects for managed agents. One that is too large goes to nobody, and the log says so; nor does a mirror of an
 * autonomous agent's project. Argo CD's untouched `default` goes to all with destination-based mapping alone: with the other one it
 * admits no agent's namespace, and on the cluster, where copies stand in Argo CD's own namespace, nothing would ask for that.
 */
export function publishAppProjects(
  options: HubPublisherOptions<AppProject> &
    ProjectPublisherOptions & {
      /** Whether the untouched `default` goes to all agents. Default: with destination-based mapping. */
      readonly sharesDefault?: boolean;
    },
): Publisher<AppProject> {
  const { mapping, virtualProjects, sharesDefault = mapping === 'destination' } = options;
  const targetOf = projectTargets(options);
  const isFor = projectDecision(options);
  const warned = new WeakSet<AppProject>();
  const isTooLarge = (project: AppProject, virtual: AppProject) => {
    const excess = excessOf(virtual);
    if (excess !== undefined && !warned.has(project)) {
      warned.add(project);
      options.runtime.log.warn({ appProject: project.metadata.name }, `AppProject goes to no agent: ${excess}`);
    }
    return excess !== undefined;
  };
  return new Publisher({
    ...options,
    kind: appProjectKind,
    concerns: (project) => ownerOfMirror(project) === undefined,
    forAgent: (project, agent) => {
      if (ownerOfMirror(project) !== undefined || isSkipped(project)) {
        return undefined;
      }
      const virtual = virtualProjects?.of(project) ?? project;
      return !isTooLarge(project, virtual) && (isFor(project, agent) || (sharesDefault && isUntouchedDefault(project)))
        ? projectForAgent(virtual, targetOf(agent), mapping)
        : undefined;
    },
  });
}
