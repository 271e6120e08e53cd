import { hash } from 'node:crypto';
import { canonicalJson, wellKnown } from '../../base/index.ts';
import type { Application, ApplicationSpec } from '../application.ts';
import { asAsking } from '../leaving.ts';
import { annotations } from '../names.ts';
import { ownerAnnotations, withoutOwner } from '../owner-marks.ts';
import { triggerAnnotations, triggersOf } from '../triggers.ts';
import { withoutPrincipalConditions } from './status.ts';

/** The part of a managed cluster's Application that the hub decides. */
export interface ManagedFields {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly finalizers: readonly string[];
  readonly spec: ApplicationSpec;
}

/** Annotations that mean something only where they are. */
const hubOnly: ReadonlySet<string> = new Set([
  annotations.lastApplied,
  annotations.lastUpdated,
  annotations.notified,
  annotations.sourceUid,
  annotations.principalUid,
  annotations.namespaceRemapped,
  annotations.nudgedAt,
  annotations.waitingOperation,
  annotations.release,
  annotations.onBothHubs,
  annotations.takenOver,
  ...ownerAnnotations,
  // It keeps the hub's application controller away. The cluster's own must not obey it.
  wellKnown.skipReconcileAnnotation,
  ...triggerAnnotations,
]);

/**
 * Annotations that programs and users of the managed cluster put on its copy. argocd-agent's agent drops all but the
 * refresh annotation with every update. Any other annotation is as on the hub.
 */
const agentOwned = [
  annotations.notified,
  annotations.adoptionPolicy,
  annotations.lastApplied,
  annotations.deletionApproved,
  annotations.nudgedAt,
  annotations.waitingOperation,
  annotations.takenOver,
];

/** The annotations that make an Application a copy, or that stand only on copies. */
export const copyMarks = [
  annotations.sourceUid,
  annotations.principalUid,
  annotations.namespaceRemapped,
  annotations.nudgedAt,
  annotations.waitingOperation,
  annotations.takenOver,
] as const;

/**
 * Finalizers that mean something only where they are: by two of them an API server carries out a deletion, and Argo CD
 * adds its own where it finds delete hooks. Elsewhere they would block a deletion; without them the hooks would not run.
 */
export function isOfCluster(finalizer: string): boolean {
  return /^(foregroundDeletion|orphan|(pre|post)-delete-finalizer\.argocd\.argoproj\.io(\/.*)?)$/.test(finalizer);
}

/**
 * The UID by which the hub's Application is known on managed clusters: its source-uid annotation (it is itself a
 * replica), else its own UID.
 */
export function sourceUidOf(hub: Application): string {
  return hub.metadata.annotations?.[annotations.sourceUid] || (hub.metadata.uid ?? '');
}

/**
 * A hub Application as it is sent. It has no `argocd.argoproj.io/skip-reconcile`: argocd-agent's agents copy all
 * annotations, and the cluster's application controller would skip the copy. Nor has it the principal's own conditions: an
 * agent that makes a copy with the status would keep them for ever. Nor does it name an owner ({@link withoutOwner}). One that
 * is released does not ask for its workload ({@link asAsking}).
 */
export function sentApplication(source: Application, isApplication: (instance: string) => boolean): Application {
  const hub = asAsking(withoutOwner(source, isApplication));
  const { [wellKnown.skipReconcileAnnotation]: skips, ...others } = hub.metadata.annotations ?? {};
  const status = hub.status && withoutPrincipalConditions(hub.status);
  if (skips === undefined && status === hub.status) {
    return hub;
  }
  return {
    ...hub,
    ...(skips === undefined ? {} : { metadata: { ...hub.metadata, annotations: others } }),
    ...(status === undefined ? {} : { status }),
  };
}

/**
 * What a managed cluster's copy of a hub Application looks like: labels and finalizers as on the hub, annotations
 * without those that belong to one cluster, spec with the destination turned to the cluster itself. Argo CD on the
 * managed cluster deploys to where it runs, so server and name of the hub's destination have no meaning there.
 */
export function managedFieldsOf(hub: Application): ManagedFields {
  return {
    labels: hub.metadata.labels ?? {},
    annotations: without(hub.metadata.annotations, hubOnly),
    finalizers: (hub.metadata.finalizers ?? []).filter((one) => !isOfCluster(one)),
    spec: { ...hub.spec, destination: localDestination(hub.spec) },
  };
}

/** What marks a copy. */
export interface CopyIdentity {
  readonly sourceUid: string;
  readonly principalUid: string | undefined;
  /** The copy's namespace stands for another one on the hub; undefined when that is not known now. */
  readonly remapped?: boolean | undefined;
}

/** The annotations of a managed copy: the hub's, the identity, and what the managed cluster itself put there. */
export function copyAnnotations(
  fields: ManagedFields,
  identity: CopyIdentity,
  local: Application | undefined,
): Record<string, string> {
  const result: Record<string, string> = { ...fields.annotations, [annotations.sourceUid]: identity.sourceUid };
  const principalUid = identity.principalUid ?? local?.metadata.annotations?.[annotations.principalUid];
  if (principalUid !== undefined) {
    result[annotations.principalUid] = principalUid;
  }
  const mark = identity.remapped === undefined ? local?.metadata.annotations?.[annotations.namespaceRemapped] : 'true';
  if (mark !== undefined && identity.remapped !== false) {
    result[annotations.namespaceRemapped] = mark;
  }
  for (const key of agentOwned) {
    const value = local?.metadata.annotations?.[key];
    if (value !== undefined && !(key in result)) {
      result[key] = value;
    }
  }
  return local === undefined ? result : { ...result, ...triggersOf(local) };
}

/**
 * The finalizers of a managed copy: the hub's, and those of its own cluster. Nobody can add one to an object that is
 * being deleted.
 */
export function copyFinalizers(fields: ManagedFields, local: Application): string[] {
  const present = local.metadata.finalizers ?? [];
  const own = present.filter(isOfCluster);
  const leaving = local.metadata.deletionTimestamp !== undefined;
  return [...fields.finalizers.filter((one) => !leaving || present.includes(one)), ...own];
}

/**
 * Equal for two objects of which a managed cluster would make the same copy. Works on the hub's object and on the copy
 * itself, so that an agent reports what it has without sending it. Triggers are not part of it.
 */
export function managedCopyDigest(object: Application): string {
  const { labels, annotations: shared, finalizers, spec } = managedFieldsOf(object);
  const { [annotations.adoptionPolicy]: _, ...rest } = shared;
  return hash(
    'sha256',
    canonicalJson([labels, rest, finalizers, spec, object.metadata.deletionTimestamp !== undefined]),
    'base64',
  );
}

function localDestination(spec: ApplicationSpec): { name: string; namespace?: string } {
  const namespace = spec.destination?.namespace;
  return namespace === undefined || namespace === '' ? { name: 'in-cluster' } : { name: 'in-cluster', namespace };
}

function without(map: Readonly<Record<string, string>> | undefined, keys: ReadonlySet<string>): Record<string, string> {
  return Object.fromEntries(Object.entries(map ?? {}).filter(([key]) => !keys.has(key)));
}
