import type { Runtime, Store, Tuning } from '../../../sync/index.ts';
import type { AppProject } from '../../application.ts';
import { annotations } from '../../names.ts';
import type { AgentKind, SourceSync } from '../../peer/kind-sync.ts';
import { isSkipped } from '../../routing.ts';
import { forTransfer } from '../copy.ts';
import { appProjectKind } from '../kinds.ts';
import { mirroredProjectName } from '../project-mirror.ts';
import { Publisher } from '../publisher.ts';
import { referenceMirror } from '../reference-mirror.ts';

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
    asSent: withIdentity,
    asHeld: referenceMirror,
    // A Go principal refuses to create what it has, and asks for what it has as if it had none.
    onlyUpdates: true,
    ownName: (name, agent) => mirroredProjectName(agent, name),
  });
  return Object.assign(publisher.syncFor(''), { start: (signal: AbortSignal) => publisher.start(signal) });
}

/** The project as it is sent. A Go principal keeps the identity of the project before it under this name unless it is told. */
function withIdentity(project: AppProject): AppProject {
  const { metadata, ...rest } = forTransfer(project);
  const marks = { ...metadata.annotations, [annotations.sourceUid]: metadata.uid ?? '' };
  return { ...rest, metadata: { ...metadata, annotations: marks } };
}
