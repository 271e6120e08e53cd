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
}

/** Describes an agent as the destinations of AppProjects name it. */
export function projectTargets({ clustersOf = () => [] }: ProjectPublisherOptions): (agent: string) => ProjectTarget {
  return (agent) => ({ agent, clusters: clustersOf(agent) });
}

/** The hub's AppProjects for managed agents. A mirror of an autonomous agent's project is sent to nobody. */
export function publishAppProjects(
  options: HubPublisherOptions<AppProject> & ProjectPublisherOptions,
): Publisher<AppProject> {
  const { mapping } = options;
  const target = projectTargets(options);
  return new Publisher({
    ...options,
    kind: appProjectKind,
    concerns: (project) => ownerOfMirror(project) === undefined,
    forAgent: (project, agent) =>
      ownerOfMirror(project) === undefined &&
      !isSkipped(project) &&
      (isProjectForAgent(project, target(agent), mapping) || isUntouchedDefault(project))
        ? projectForAgent(project, target(agent), mapping)
        : undefined,
  });
}
