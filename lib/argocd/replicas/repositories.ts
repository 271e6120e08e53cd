import { type Store, systemClock, View } from '../../sync/index.ts';
import type { Mapping } from '../app-project-rules.ts';
import type { AppProject } from '../application.ts';
import type { AgentKind, MirrorPart, PrincipalKind, SourcePart } from '../peer/kind-sync.ts';
import { isRepository, isRepositoryForAgent, projectOfRepository, type Secret } from '../repository.ts';
import { isSkipped } from '../routing.ts';
import { type HubPublisherOptions, skipped } from './app-projects.ts';
import { type ClusterReplicaOptions, clusterReplica } from './cluster/cluster-replica.ts';
import { copiedFrom } from './copy.ts';
import { repositoryKind } from './kinds.ts';
import { ownerOfMirror } from './project-mirror.ts';
import { Publisher } from './publisher.ts';

/**
 * The hub's repository Secrets for managed agents. Who gets one follows from the Secret, from the project that it names and
 * from that AppProject, all as the caches have them: an API server that does not answer takes nothing away.
 */
export function publishRepositories(
  options: HubPublisherOptions<Secret> & { readonly projects: Store<AppProject>; readonly mapping: Mapping },
): PrincipalKind<SourcePart> {
  const { projects, mapping, namespace, clock = systemClock } = options;
  const view = new View<AppProject>({
    clock,
    changed: ({ name }) =>
      publisher.reconsider((secret) => isRepository(secret) && projectOfRepository(secret) === name),
    // Nothing is created here, so what is known was in the cache.
    doubted: (ref) => options.log.debug({ appProject: ref.name }, 'not in the cache'),
  });
  const publisher = new Publisher({
    ...options,
    kind: repositoryKind,
    concerns: isRepository,
    forAgent: (secret, agent) => {
      const name = projectOfRepository(secret);
      const project = name === undefined ? undefined : view.get({ namespace, name });
      return project !== undefined &&
        ownerOfMirror(project) === undefined &&
        isRepositoryForAgent(secret, project, agent, mapping)
        ? secret
        : undefined;
    },
  });
  return {
    start: (signal) => {
      const unfollow = view.follow(projects);
      signal.addEventListener('abort', unfollow);
      publisher.start(signal);
    },
    part: (agent) => publisher.part(agent),
    forgetAgent: (agent) => publisher.forgetAgent(agent),
  };
}

/** How repository Secrets of a managed cluster are kept. */
export interface RepositoryReplicaOptions extends ClusterReplicaOptions<Secret> {
  /** Whether one that was there before may be taken over. */
  readonly adoptionPolicy: 'always' | 'never';
}

/** Repository Secrets of a managed cluster. A Secret that is there and is for something else is never touched. */
export function replicateRepositories(options: RepositoryReplicaOptions): AgentKind<MirrorPart> {
  return clusterReplica(
    repositoryKind,
    {
      localName: (name) => name,
      sourceName: (name) => name,
      toLocal: (secret) => secret,
      isCopy: (local) => copiedFrom(local) !== '' && isRepository(local) && !isSkipped(local),
      objection: (local) => {
        if (isSkipped(local)) {
          return skipped;
        }
        if (!isRepository(local)) {
          return 'there is a Secret of that name that is for something else';
        }
        return options.adoptionPolicy === 'never' ? 'there is one already, and it may not be taken over' : undefined;
      },
      dropsFinalizers: false,
    },
    options,
  );
}
