import {
  isProjectForAgent,
  isUntouchedDefault,
  type Mapping,
  type ProjectTarget,
  projectForAgent,
} from '../../app-project-rules.ts';
import type { AppProject } from '../../application.ts';
import type { ArgoCluster } from '../../project-clusters.ts';
import { isSkipped } from '../../routing.ts';
import { appProjectKind } from '../kinds.ts';
import { ownerOfMirror } from '../project-mirror.ts';
import { Publisher, type PublisherOptions } from '../publisher.ts';
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

/**
 * The hub's AppProjects for managed agents. A mirror of an autonomous agent's project is sent to nobody. Argo CD's untouched `default`
 * goes to all with destination-based mapping alone: with the other one it admits no agent's namespace, and on the cluster, where copies
 * stand in Argo CD's own namespace, nothing would ask for that.
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
  return new Publisher({
    ...options,
    kind: appProjectKind,
    concerns: (project) => ownerOfMirror(project) === undefined,
    forAgent: (project, agent) => {
      if (ownerOfMirror(project) !== undefined || isSkipped(project)) {
        return undefined;
      }
      const [virtual, target] = [virtualProjects?.of(project) ?? project, targetOf(agent)];
      return isProjectForAgent(virtual, target, mapping) || (sharesDefault && isUntouchedDefault(project))
        ? projectForAgent(virtual, target, mapping)
        : undefined;
    },
  });
}
