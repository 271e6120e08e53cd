import type { Runtime, Store, Tuning } from '../../../sync/index.ts';
import type { AppProject } from '../../application.ts';
import type { AgentKind, SourceSync } from '../../peer/kind-sync.ts';
import { isSkipped } from '../../routing.ts';
import { appProjectKind } from '../kinds.ts';
import { mirroredProjectName, projectForHub } from '../project-mirror.ts';
import { Publisher } from '../publisher.ts';

/** How {@link publishOwnAppProjects} works. */
export interface AutonomousProjectsOptions {
  readonly store: Store<AppProject>;
  /** The agent's namespace, the only one that counts. */
  readonly namespace: string;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

/**
 * The AppProjects of an autonomous agent's cluster for the hub. They are sent as they are; to compare checksums it has to know
 * what the principal calls this agent.
 */
export function publishOwnAppProjects(options: AutonomousProjectsOptions): AgentKind<SourceSync> {
  const publisher = new Publisher<AppProject>({
    ...options,
    kind: appProjectKind,
    forAgent: (project) => (isSkipped(project) ? undefined : project),
    asHeld: projectForHub,
    ownName: (name, agent) => mirroredProjectName(agent, name),
  });
  return { ...publisher.syncFor(''), start: (signal) => publisher.start(signal) };
}
