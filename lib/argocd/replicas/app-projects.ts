import { isProjectForAgent, isUntouchedDefault, type Mapping, projectForAgent } from '../app-project-rules.ts';
import type { AppProject } from '../application.ts';
import type { AgentKind, MirrorPart } from '../peer/kind-sync.ts';
import { isSkipped } from '../routing.ts';
import { type ClusterReplicaOptions, clusterReplica } from './cluster/cluster-replica.ts';
import { copiedFrom } from './copy.ts';
import { appProjectKind } from './kinds.ts';
import { ownerOfMirror } from './project-mirror.ts';
import { Publisher, type PublisherOptions } from './publisher.ts';

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

/**
 * AppProjects of a managed cluster. One that was there before is taken over whatever the adoption policy says, as
 * argocd-agent does: every Argo CD has a `default` project.
 */
export function replicateAppProjects(options: ClusterReplicaOptions<AppProject>): AgentKind<MirrorPart> {
  return clusterReplica(
    appProjectKind,
    {
      localName: (name) => name,
      sourceName: (name) => name,
      toLocal: (project) => project,
      isCopy: (local) => copiedFrom(local) !== '' && !isSkipped(local),
      objection: (local) => (isSkipped(local) ? skipped : undefined),
      dropsFinalizers: false,
    },
    options,
  );
}

/** Why an object is left alone that its label keeps out. */
export const skipped = 'what is here is kept out of synchronisation by its label';
