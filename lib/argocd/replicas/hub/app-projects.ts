import { isProjectForAgent, isUntouchedDefault, type Mapping, projectForAgent } from '../../app-project-rules.ts';
import type { AppProject } from '../../application.ts';
import { isSkipped } from '../../routing.ts';
import { appProjectKind } from '../kinds.ts';
import { ownerOfMirror } from '../project-mirror.ts';
import { Publisher, type PublisherOptions } from '../publisher.ts';

/** What the publishers of a principal have in common. */
export type HubPublisherOptions<T extends { readonly metadata: AppProject['metadata'] }> = Omit<
  PublisherOptions<T>,
  'kind' | 'forAgent' | 'concerns' | 'asHeld' | 'ownName'
> & { readonly principalUid: string };

/** The hub's AppProjects for managed agents. A mirror belongs to its autonomous agent and goes to nobody. */
export function publishAppProjects(
  options: HubPublisherOptions<AppProject> & { readonly mapping: Mapping },
): Publisher<AppProject> {
  const { mapping } = options;
  return new Publisher({
    ...options,
    kind: appProjectKind,
    concerns: (project) => ownerOfMirror(project) === undefined,
    forAgent: (project, agent) =>
      ownerOfMirror(project) === undefined &&
      !isSkipped(project) &&
      (isProjectForAgent(project, agent, mapping) || isUntouchedDefault(project))
        ? projectForAgent(project, agent, mapping)
        : undefined,
  });
}
