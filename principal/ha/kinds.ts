import { annotations, isRepository, type RepositorySecret } from '../../lib/argocd/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import { argoApplications, argoAppProjects } from '../../lib/bridge/index.ts';
import {
  configMaps,
  type Informer,
  type KubeObject,
  type OwnerReference,
  type ResourceType,
  resourceType,
  secrets,
} from '../../lib/kube/index.ts';
import { targets } from '../../lib/wire/index.ts';
import type { PrincipalCaches } from '../caches.ts';

/** argoproj.io/v1alpha1 ApplicationSet. */
export const hubApplicationSets: ResourceType = resourceType<KubeObject>({
  group: 'argoproj.io',
  version: 'v1alpha1',
  kind: 'ApplicationSet',
  plural: 'applicationsets',
  namespaced: true,
});

/** A kind of object that a standby gets. */
export interface ReplicatedKind {
  /** Its name in snapshots: argocd-agent's, and `GPGKey` with data, which is ours. */
  readonly name: 'ClusterSecret' | 'GPGKey' | 'AppProject' | 'Repository' | 'ApplicationSet' | 'Application';
  /** The `dataschema` of its events. argocd-agent's standbys ignore those of cluster Secrets and keys. */
  readonly target: string;
  readonly type: ResourceType;
  readonly informer: Informer<KubeObject>;
  /** Has those that are kept out by their label, and maybe others, when `informer` leaves them out. */
  readonly keptOut?: Informer<KubeObject> | undefined;
  /** What users select both by, beside that label. */
  readonly labelSelector?: string | undefined;
  /** Whether an object of the informer is of this kind and takes part. */
  includes(object: KubeObject): boolean;
  /** A standby's own object of that name stays: it may have been made for that hub. */
  readonly yields: boolean;
}

/** `dataschema` of events about cluster Secrets, which argocd-agent does not have: there they travel in snapshots alone. */
const clusterSecretTarget = 'clustersecret';

/**
 * The kinds of the hub that a standby gets, in the order in which it needs them. Objects with the label
 * `argocd-agent.argoproj-labs.io/ignore-sync: "true"` are of one hub alone.
 * @param keptOutApplications Applications that have it; for the active hub
 * @param labelSelector the user's, of Applications and AppProjects
 */
export function replicatedKinds(
  caches: PrincipalCaches,
  applicationSets: Informer<KubeObject>,
  keptOutApplications?: Informer<KubeObject>,
  labelSelector = '',
): ReplicatedKind[] {
  const ofSecrets = caches.Secrets as unknown as Informer<KubeObject>;
  const keys = caches['GPG keys'] as unknown as Informer<KubeObject>;
  return [
    kind('ClusterSecret', clusterSecretTarget, secrets, ofSecrets, isAgentsCluster),
    kind('GPGKey', targets.gpgKey, configMaps, keys, ({ metadata }) => metadata.name === wellKnown.gpgKeysConfigMap),
    {
      ...kind('AppProject', targets.appProject, argoAppProjects, caches.AppProjects),
      keptOut: caches['all AppProjects'],
      labelSelector,
    },
    kind('Repository', targets.repository, secrets, ofSecrets, (secret) => isRepository(secret as RepositorySecret)),
    kind('ApplicationSet', targets.applicationSet, hubApplicationSets, applicationSets),
    {
      ...kind('Application', targets.application, argoApplications, caches.Applications),
      keptOut: keptOutApplications,
      labelSelector,
    },
  ];
}

function kind(
  name: ReplicatedKind['name'],
  target: string,
  type: ResourceType,
  informer: Informer<KubeObject>,
  includes: (object: KubeObject) => boolean = () => true,
): ReplicatedKind {
  return {
    name,
    target,
    type,
    informer,
    includes: (object) => !isKeptOut(object) && includes(object),
    yields: name === 'ClusterSecret',
  };
}

function isAgentsCluster({ metadata: { labels } }: KubeObject): boolean {
  return labels?.[wellKnown.secretTypeLabel] === 'cluster' && (labels[wellKnown.agentNameLabel] ?? '') !== '';
}

/** Whether an object is the hub's mirror of an autonomous agent's. */
export function isMirror({ metadata }: KubeObject): boolean {
  return (metadata.annotations?.[annotations.sourceUid] ?? '') !== '';
}

/**
 * Whether both hubs have had the object. One that is missing on the active hub was then deleted there. What an ApplicationSet makes
 * goes by that: Argo CD's controller takes annotations away that are not in the template, and would have made it on the active hub.
 */
export function wasOnBothHubs(object: KubeObject, kinds: readonly ReplicatedKind[]): boolean {
  const set = applicationSetOf(object, kinds);
  return saysOnBothHubs(object) || (set !== undefined && saysOnBothHubs(set));
}

/** Whether the object itself says that both hubs have had it. */
export function saysOnBothHubs(object: KubeObject): boolean {
  return object.metadata.annotations?.[annotations.onBothHubs] === 'true' || isMirror(object);
}

/**
 * Why an object that a standby asks about is not there: the active hub has had it from the other one, and it was deleted since. A
 * standby deletes it then, although nobody may have told it before that both hubs have it.
 */
export const deletedHereReason = 'it was deleted after both hubs had it';

/** Why nothing is told of an object that a standby asks about: it is there, and of one hub alone. */
export const keptOutReason = 'it exists and is kept out of replication';

/** Why nothing is told yet of an object that a standby asks about: the API server of the active hub does not answer. */
export const unreadableReason = 'it cannot be read now';

/** What argocd-agent's principal says of a cluster Secret that it has not made itself: it is not asked again. */
export const notTellingReason = 'resource could not be serialized';

/** Why nothing is told of an object whose kind the active hub cannot list. Once it can, it ends the stream, and all is compared. */
export const notListedReason = 'objects of this kind cannot be listed';

/** The ApplicationSet that makes an Application, if it is replicated, too. */
export function applicationSetOf({ metadata }: KubeObject, kinds: readonly ReplicatedKind[]): KubeObject | undefined {
  const owner = metadata.ownerReferences?.find(isApplicationSet);
  const { namespace = '' } = metadata;
  return owner && kinds.find(({ name }) => name === 'ApplicationSet')?.informer.get({ namespace, name: owner.name });
}

/** Whether an owner is an ApplicationSet. */
export function isApplicationSet({ kind, apiVersion }: OwnerReference): boolean {
  return kind === 'ApplicationSet' && apiVersion.startsWith('argoproj.io/');
}

/** Whether the label that keeps an object out of all synchronisation is set. */
export function isKeptOut({ metadata }: KubeObject): boolean {
  return metadata.labels?.[wellKnown.ignoreSyncLabel] === 'true';
}

/** Whether its deletion has begun, and something holds it. */
export function isGoing({ metadata }: KubeObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/** Whether its deletion has begun under that label: nobody but a user lets it go then, and for the other hub it is deleted. */
export function isLeavingKeptOut(object: KubeObject): boolean {
  return isKeptOut(object) && isGoing(object);
}

/** Whether an object would take part without that label. */
export function isOnlyKeptOut(kind: ReplicatedKind, object: KubeObject): boolean {
  const { [wellKnown.ignoreSyncLabel]: _, ...labels } = object.metadata.labels ?? {};
  return isKeptOut(object) && kind.includes({ ...object, metadata: { ...object.metadata, labels } });
}
