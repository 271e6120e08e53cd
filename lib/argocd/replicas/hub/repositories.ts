import { type Store, View } from '../../../sync/index.ts';
import type { AppProject } from '../../application.ts';
import type { HubKind, SourceSync } from '../../peer/kind-sync.ts';
import { isRepository, isRepositoryForAgent, projectOfRepository, type RepositorySecret } from '../../repository.ts';
import { repositoryKind } from '../kinds.ts';
import { ownerOfMirror } from '../project-mirror.ts';
import { Publisher } from '../publisher.ts';
import { type HubPublisherOptions, type ProjectPublisherOptions, projectTargets } from './app-projects.ts';

/** Whether a managed agent gets a Secret of the hub. */
type RepositoryDecision = (secret: RepositorySecret, agent: string) => boolean;

/**
 * The hub's repository Secrets for managed agents. The Secret, the project that it names and that AppProject decide who gets
 * it. All three are read from caches, so an API server that does not answer withdraws nothing.
 */
export function publishRepositories(
  options: HubPublisherOptions<RepositorySecret> & ProjectPublisherOptions & { readonly projects: Store<AppProject> },
): HubKind<SourceSync> & Pick<Publisher<RepositorySecret>, 'reconsider'> & { isFor: RepositoryDecision } {
  const { projects, mapping, namespace, runtime, selects = () => true } = options;
  const target = projectTargets(options);
  const view = new View<AppProject>({
    clock: runtime.clock,
    changed: ({ name }) =>
      publisher.reconsider((secret) => isRepository(secret) && projectOfRepository(secret) === name),
    // This side creates none of them, so every known object has been in the cache.
    doubted: (ref) => runtime.log.debug({ appProject: ref.name }, 'not in the cache'),
  });
  const isFor: RepositoryDecision = (secret, agent) => {
    const name = projectOfRepository(secret);
    const project = name === undefined ? undefined : view.get({ namespace, name });
    return (
      project !== undefined &&
      ownerOfMirror(project) === undefined &&
      isRepositoryForAgent(secret, project, target(agent), mapping)
    );
  };
  const publisher = new Publisher({
    ...options,
    kind: repositoryKind,
    concerns: isRepository,
    forAgent: (secret, agent) => (isFor(secret, agent) ? secret : undefined),
  });
  return {
    isFor: (secret, agent) => selects(secret.metadata.labels ?? {}) && isFor(secret, agent),
    start: (signal) => {
      const unfollow = view.follow(projects);
      signal.addEventListener('abort', unfollow);
      publisher.start(signal);
    },
    syncFor: (agent) => publisher.syncFor(agent),
    forgetAgent: (agent) => publisher.forgetAgent(agent),
    reconsider: (concerns, agent) => publisher.reconsider(concerns, agent),
  };
}
