import type { AppProject } from '../../application.ts';
import { copiedFrom } from '../../copied-from.ts';
import type { AgentKind, CopySync } from '../../peer/kind-sync.ts';
import { isSkipped } from '../../routing.ts';
import { appProjectKind } from '../kinds.ts';
import { skipped } from '../replica-rules.ts';
import { clusterReplica, type NeededReplicaOptions } from './cluster-replica.ts';

/**
 * AppProjects of a managed cluster. An existing one is adopted whatever the adoption policy is, as
 * argocd-agent does: every Argo CD has a `default` project.
 */
export function replicateAppProjects(options: NeededReplicaOptions<AppProject>): AgentKind<CopySync> {
  return clusterReplica(
    appProjectKind,
    {
      localName: (name) => name,
      sourceName: (name) => name,
      toLocal: (project) => project,
      isCopy: (local) => copiedFrom(local) !== '' && !isSkipped(local),
      objection: (local) => (isSkipped(local) ? skipped : undefined),
      // Every Argo CD has it, and nothing on a managed cluster would make it again.
      needed: (local) => (local.metadata.name === 'default' ? local : undefined),
      dropsFinalizers: false,
    },
    options,
    {
      kept: options.kept,
      isNeeded: (kept, { metadata }, principalUid) => kept.needProject(metadata.name, principalUid),
    },
  );
}
