import { type Store, View } from '../../../sync/index.ts';
import { isUntouchedDefault } from '../../app-project-rules.ts';
import type { AppProject } from '../../application.ts';
import type { HubKind, SourceSync } from '../../peer/kind-sync.ts';
import { admitsNamespace, permitsSource } from '../../project-permissions.ts';
import { excessOf } from '../../project-size.ts';
import { isRepository, isRepositoryForAgent, projectOfRepository, type RepositorySecret } from '../../repository.ts';
import { isForRepository } from '../../repository-use.ts';
import { isSkipped } from '../../routing.ts';
import { repositoryKind } from '../kinds.ts';
import { ownerOfMirror } from '../project-mirror.ts';
import { Publisher } from '../publisher.ts';
import { type HubPublisherOptions, type ProjectPublisherOptions, projectDecision } from './app-projects.ts';
import { type SourceUse, SourceUses, type SourceUsesOptions } from './source-uses.ts';

/** Whether a managed agent gets a Secret of the hub. */
type RepositoryDecision = (secret: RepositorySecret, agent: string) => boolean;

/** Who gets the hub's repository Secrets. */
export interface RepositoryPublisherOptions {
  readonly projects: Store<AppProject>;
  /**
   * The Applications that decide which agents get Secrets without a project: those that use the repository. Default: such
   * Secrets stay on the hub.
   */
  readonly sharing?: SourceUsesOptions | undefined;
}

/**
 * The hub's repository Secrets for managed agents. The Secret, the project that it names and that AppProject decide who gets
 * it; of a Secret without a project, the Applications and their AppProjects. All of them are read from caches, so an API server
 * that does not answer withdraws nothing.
 */
export function publishRepositories(
  options: HubPublisherOptions<RepositorySecret> & ProjectPublisherOptions & RepositoryPublisherOptions,
): HubKind<SourceSync> &
  Pick<Publisher<RepositorySecret>, 'reconsider'> &
  Pick<SourceUses, 'reroute'> & { isFor: RepositoryDecision } {
  const { projects, namespace, runtime, sharing, virtualProjects, selects = () => true } = options;
  const isProjectFor = projectDecision(options);
  const isShared = (secret: RepositorySecret) =>
    sharing !== undefined && isRepository(secret) && projectOfRepository(secret) === undefined && !isSkipped(secret);
  const view = new View<AppProject>({
    clock: runtime.clock,
    changed: ({ name }) =>
      publisher.reconsider(
        (secret) => (isRepository(secret) && projectOfRepository(secret) === name) || isShared(secret),
      ),
    // This side creates none of them, so every known object has been in the cache.
    doubted: (ref) => runtime.log.debug({ appProject: ref.name }, 'not in the cache'),
  });
  const uses =
    sharing &&
    new SourceUses(sharing, (agent, url) =>
      publisher.reconsider((secret) => isShared(secret) && isForRepository(secret, url), agent),
    );
  const hubProject = (name: string) => {
    const project = view.get({ namespace, name });
    return project !== undefined && ownerOfMirror(project) === undefined ? project : undefined;
  };
  /** Whether Argo CD carries out such Applications: what it refuses gets no credentials. */
  const isCarriedOut = (use: SourceUse, agent: string) => {
    const project = hubProject(use.project);
    if (project === undefined) {
      return false;
    }
    const virtual = virtualProjects?.withRepositories(project) ?? project;
    return (
      excessOf(virtual) === undefined &&
      (isProjectFor(project, agent) || isUntouchedDefault(project)) &&
      (use.namespace === namespace || admitsNamespace(project, use.namespace)) &&
      permitsSource(virtual, use.url)
    );
  };
  const isFor: RepositoryDecision = (secret, agent) => {
    const name = projectOfRepository(secret);
    if (name === undefined) {
      return (
        isShared(secret) &&
        [...(uses?.of(agent) ?? [])].some((use) => isForRepository(secret, use.url) && isCarriedOut(use, agent))
      );
    }
    return isRepositoryForAgent(secret, hubProject(name), (project) => isProjectFor(project, agent));
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
      const unfollowUses = uses?.follow();
      signal.addEventListener('abort', () => {
        unfollow();
        unfollowUses?.();
      });
      publisher.start(signal);
    },
    syncFor: (agent) => publisher.syncFor(agent),
    forgetAgent: (agent) => publisher.forgetAgent(agent),
    reconsider: (concerns, agent) => publisher.reconsider(concerns, agent),
    reroute: (url) => uses?.reroute(url) ?? (() => undefined),
  };
}
