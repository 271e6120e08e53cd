import { type ConfigMap, gpgKeysName, isGpgKeys } from '../gpg-keys.ts';
import type { AgentKind, MirrorPart } from '../peer/kind-sync.ts';
import { isSkipped } from '../routing.ts';
import { type HubPublisherOptions, skipped } from './app-projects.ts';
import { type ClusterReplicaOptions, clusterReplica } from './cluster/cluster-replica.ts';
import { copiedFrom } from './copy.ts';
import { gpgKeysKind } from './kinds.ts';
import { Publisher } from './publisher.ts';
import { Unacceptable } from './replica-rules.ts';

/** The hub's GnuPG keys for all managed agents. Messages about them do not carry the principal's identity. */
export function publishGpgKeys(options: Omit<HubPublisherOptions<ConfigMap>, 'principalUid'>): Publisher<ConfigMap> {
  return new Publisher({
    ...options,
    kind: gpgKeysKind,
    concerns: ({ metadata }) => metadata.name === gpgKeysName,
    forAgent: (configMap) => (isGpgKeys(configMap) ? configMap : undefined),
  });
}

/** The GnuPG keys of a managed cluster. The ConfigMap that every Argo CD has is taken over; no other is touched. */
export function replicateGpgKeys(options: ClusterReplicaOptions<ConfigMap>): AgentKind<MirrorPart> {
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
      dropsFinalizers: false,
    },
    options,
  );
}
