import { type Store, View } from '../../../sync/index.ts';
import type { Mapping } from '../../app-project-rules.ts';
import type { AppProject } from '../../application.ts';
import type { HubKind, SourceSync } from '../../peer/kind-sync.ts';
import { isRepository, isRepositoryForAgent, projectOfRepository, type RepositorySecret } from '../../repository.ts';
import { repositoryKind } from '../kinds.ts';
import { ownerOfMirror } from '../project-mirror.ts';
import { Publisher } from '../publisher.ts';
import type { HubPublisherOptions } from './app-projects.ts';

/**
 * The hub's repository Secrets for managed agents. Who gets one follows from the Secret, from the project that it names and
 * from that AppProject, all as the caches have them: an API server that does not answer takes nothing away.
 */
export function publishRepositories(
  options: HubPublisherOptions<RepositorySecret> & { readonly projects: Store<AppProject>; readonly mapping: Mapping },
): HubKind<SourceSync> {
  const { projects, mapping, namespace, runtime } = options;
  const view = new View<AppProject>({
    clock: runtime.clock,
    changed: ({ name }) =>
      publisher.reconsider((secret) => isRepository(secret) && projectOfRepository(secret) === name),
    // Nothing is created here, so what is known was in the cache.
    doubted: (ref) => runtime.log.debug({ appProject: ref.name }, 'not in the cache'),
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
    syncFor: (agent) => publisher.syncFor(agent),
    forgetAgent: (agent) => publisher.forgetAgent(agent),
  };
}
