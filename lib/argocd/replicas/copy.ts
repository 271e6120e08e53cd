import { digestOf, type MergePatch, mergePatchBetween } from '../../base/index.ts';
import type { ObjectRef } from '../../sync/index.ts';
import { annotations } from '../names.ts';
import type { Metadata } from '../object.ts';
import { ownerAnnotations, ownerOptions } from '../owner-marks.ts';
import type { ReplicaKind, ReplicaObject } from './kinds.ts';

/** Annotations that mean something only where they are, or are this side's own. */
const own: ReadonlySet<string> = new Set([
  annotations.sourceUid,
  annotations.principalUid,
  annotations.lastApplied,
  annotations.lastUpdated,
  annotations.mirrorOf,
  annotations.mirrorChecksums,
  annotations.mirrorDigests,
  annotations.takenOver,
  ...ownerAnnotations,
  ...ownerOptions,
]);

/** Those of them that stay on a copy. */
const locals: ReadonlySet<string> = new Set([annotations.lastApplied, annotations.lastUpdated, annotations.takenOver]);

/** Finalizers by which an API server carries out a deletion. */
const ofCluster: ReadonlySet<string> = new Set(['foregroundDeletion', 'orphan']);

/**
 * An object as it is sent: without what means nothing elsewhere. Owners do not exist on another cluster, whose garbage
 * collector would therefore remove the copy; kubectl's annotation would describe another state.
 */
export function forTransfer<T extends ReplicaObject>(object: T): T {
  const {
    ownerReferences: _owners,
    managedFields: _fields,
    deletionTimestamp: _at,
    deletionGracePeriodSeconds: _grace,
    annotations: all,
    ...metadata
  } = object.metadata;
  const { status: _status, ...rest } = object as T & { status?: unknown };
  const shared = Object.entries(all ?? {}).filter(([key]) => !own.has(key));
  return {
    ...rest,
    metadata: { ...metadata, ...(shared.length === 0 ? {} : { annotations: Object.fromEntries(shared) }) },
  } as T;
}

/** Equal for two objects of which the same copy would be made; on the copy as well. */
export function replicaDigest<T extends ReplicaObject>(kind: ReplicaKind<T>, object: T): string {
  const { labels, annotations: shared, finalizers } = copiedMetadata(kind, object.metadata);
  return digestOf([labels, shared, [...finalizers].sort(), kind.content(object)]);
}

/** The copy to create. `marks`: annotations that mark what it is a copy of. */
export function newCopy<T extends ReplicaObject>(
  kind: ReplicaKind<T>,
  desired: T,
  ref: ObjectRef,
  marks: Readonly<Record<string, string>>,
): T {
  const { labels, annotations: shared, finalizers } = copiedMetadata(kind, desired.metadata);
  return {
    ...kind.type,
    metadata: {
      ...ref,
      labels,
      annotations: { ...shared, ...marks },
      ...(finalizers.length === 0 ? {} : { finalizers }),
    },
    ...kind.initial(desired),
    ...kind.content(desired),
  } as unknown as T;
}

/**
 * What makes a copy what is desired, undefined when it is: labels, annotations and content exactly, finalizers only added,
 * so that Argo CD's own and the API server's stay. Applies only to this object, by its UID.
 */
export function patchForCopy<T extends ReplicaObject>(
  kind: ReplicaKind<T>,
  desired: T,
  local: T,
  marks: Readonly<Record<string, string>>,
): MergePatch | undefined {
  const { labels, annotations: shared, finalizers } = copiedMetadata(kind, desired.metadata);
  const present = local.metadata.annotations ?? {};
  const kept = Object.entries(present).filter(([key]) => locals.has(key));
  const before = {
    labels: local.metadata.labels ?? {},
    annotations: present,
    finalizers: local.metadata.finalizers ?? [],
  };
  const metadata = mergePatchBetween(before, {
    labels,
    annotations: {
      ...shared,
      ...Object.fromEntries(kept),
      ...marks,
    },
    finalizers: [...new Set([...before.finalizers, ...finalizers])],
  });
  const content = mergePatchBetween(kind.content(local), kind.content(desired));
  if (metadata === undefined && content === undefined) {
    return undefined;
  }
  return { ...content, metadata: { ...metadata, uid: local.metadata.uid } };
}

function copiedMetadata<T extends ReplicaObject>(kind: ReplicaKind<T>, metadata: Metadata) {
  const { labels = {}, annotations: all = {}, finalizers = [] } = metadata;
  return {
    labels,
    annotations: Object.fromEntries(Object.entries(all).filter(([key]) => !own.has(key))),
    finalizers: kind.finalizers ? finalizers.filter((one) => !ofCluster.has(one)) : [],
  };
}
