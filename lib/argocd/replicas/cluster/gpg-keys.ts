import { copiedFrom } from '../../copied-from.ts';
import { type GpgKeys, gpgKeysName, isGpgKeys } from '../../gpg-keys.ts';
import { isStillThere } from '../../leaving.ts';
import type { AgentKind, CopySync } from '../../peer/kind-sync.ts';
import { isSkipped } from '../../routing.ts';
import { gpgKeysKind } from '../kinds.ts';
import { skipped, Unacceptable } from '../replica-rules.ts';
import { type ClusterReplicaOptions, clusterReplica } from './cluster-replica.ts';

/** How {@link replicateGpgKeys} works. */
export interface GpgKeysOptions extends ClusterReplicaOptions<GpgKeys> {
  /** The ConfigMap goes when the hub's is deleted, as with argocd-agent. Default: it stays, without keys. */
  readonly deletes?: boolean;
}

/** The GnuPG keys of a managed cluster. The ConfigMap that every Argo CD has is taken over; no other is touched. */
export function replicateGpgKeys(options: GpgKeysOptions): AgentKind<CopySync> {
  return clusterReplica(
    gpgKeysKind,
    {
      localName: (name) => name,
      sourceName: (name) => name,
      toLocal: (configMap) => {
        if (configMap.metadata.name !== gpgKeysName) {
          throw new Unacceptable(`GnuPG keys are in ${gpgKeysName} and nowhere else`);
        }
        return configMap;
      },
      isCopy: (local) => copiedFrom(local) !== '' && isGpgKeys(local),
      objection: (local) => (isSkipped(local) ? skipped : undefined),
      // The pods of Argo CD's repo server do not start without it. Keys that the hub has withdrawn are not trusted any more.
      needed: (local) => ({ ...local, data: {} }),
      goesWith: (source) => options.deletes === true && !isStillThere(source),
      dropsFinalizers: false,
    },
    options,
  );
}
