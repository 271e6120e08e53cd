import { copiedFrom } from '../../copied-from.ts';
import type { AgentKind, CopySync } from '../../peer/kind-sync.ts';
import { isRepository, type RepositorySecret } from '../../repository.ts';
import { isSkipped } from '../../routing.ts';
import { repositoryKind } from '../kinds.ts';
import { skipped } from '../replica-rules.ts';
import { clusterReplica, type NeededReplicaOptions } from './cluster-replica.ts';

/** How repository Secrets of a managed cluster are kept. */
export interface RepositoryReplicaOptions extends NeededReplicaOptions<RepositorySecret> {
  /** Whether one that was there before may be taken over. */
  readonly adoptionPolicy: 'always' | 'never';
}

/** Repository Secrets of a managed cluster. A Secret that is there and is for something else is never touched. */
export function replicateRepositories(options: RepositoryReplicaOptions): AgentKind<CopySync> {
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
    {
      kept: options.kept,
      isNeeded: (kept, secret, principalUid) => kept.needRepository(secret, principalUid),
    },
  );
}
