import { isEqual, type MergePatch, mergePatchBetween } from '../../../base/index.ts';
import type { Application } from '../../application.ts';
import { asksForWorkload, deletesWorkload, finalizersOfLeave, isStillThere, planLeave } from '../../leaving.ts';
import { annotations } from '../../names.ts';
import { giveBack, recordOf } from '../../taken-over.ts';
import { triggersOf } from '../../triggers.ts';
import type { Plan, UpdateReason } from '../../writing/plan.ts';
import { copyAnnotations, copyFinalizers, copyMarks, isOfCluster, managedFieldsOf, sourceUidOf } from '../copy.ts';

/** What a hub Application should be on a managed cluster. */
export interface DesiredApplication {
  readonly object: Application;
  /** The principal that sent it; undefined when it did not name itself. */
  readonly principalUid: string | undefined;
}

/** What to do with an existing object of another source UID. */
export type MismatchPolicy = 'recreate' | 'upsert';
/** Whether an existing object without a source UID is taken over. */
export type AdoptionPolicy = 'always' | 'never';

/** The agent's settings for {@link planManagedApplication}. */
export interface PlanOptions {
  /** Namespace of the copy. */
  readonly namespace: string;
  /** That namespace stands for another one on the hub; undefined when that is not known now. */
  readonly remapped?: boolean | undefined;
  readonly mismatchPolicy: MismatchPolicy;
  readonly adoptionPolicy: AdoptionPolicy;
  /** The local object is known to be the copy although somebody removed its source UID. */
  readonly ours?: boolean;
  /** What such an object was before it became the copy, if it was there. */
  readonly record?: string | undefined;
  /** Trigger annotations that the hub's object carries newly and that are to be set on the copy. */
  readonly triggers?: Readonly<Record<string, string>>;
  /** The spec, if it is wrong, was changed here. Argo CD, which may have reported an error for it, is made to refresh. */
  readonly refreshes?: boolean;
}

/**
 * Decides what to do with the object that stands where the copy of a hub Application should. The order of the
 * identity questions is argocd-agent's: another principal, same source, first principal to name itself, not managed at
 * all, another source.
 *
 * Where this differs from argocd-agent: a copy that is being deleted is waited for instead of being declared created;
 * the hub's status is not copied into a new object, because an old `operationState` would keep Argo CD from syncing it.
 */
export function planManagedApplication(
  desired: DesiredApplication,
  local: Application | undefined,
  options: PlanOptions,
): Plan {
  const { object: hub } = desired;
  const leaving = hub.metadata.deletionTimestamp !== undefined;
  const sourceUid = sourceUidOf(hub);
  if (local === undefined) {
    return leaving ? { action: 'gone', sourceUid } : { action: 'create', object: newCopy(desired, options) };
  }
  if (leaving && !isToBeDeleted(hub, local, options)) {
    return { action: 'gone', sourceUid };
  }

  const kinship = options.ours === true ? 'changed' : kinshipOf(desired, local, options);
  if (kinship === 'refuse') {
    const message = `an Application named ${local.metadata.namespace}/${local.metadata.name} exists and may not be adopted`;
    return { action: 'refuse', message };
  }
  if (kinship === 'replace') {
    // Its source has vanished, so it had no finalizer.
    return planLeave(local, { finalizers: finalizersOfLeave(local, [], isOfCluster) });
  }
  if (isDeleting(local) && !leaving) {
    // Somebody deleted it here. It is made anew when Argo CD has finished with this one.
    return inStepWhileLeaving(desired.object, local);
  }
  // A copy whose source UID somebody took away has the principal's all the same.
  const isFound = kinship === 'adopted' && local.metadata.annotations?.[annotations.principalUid] === undefined;
  const known = options.ours === true ? options.record : undefined;
  const patch = patchFor(desired, local, options, isFound ? recordOf(local, contentOf(local)) : known);
  if (patch !== undefined && options.refreshes === true && patch.spec !== undefined && !isDeleting(local)) {
    return { ...refreshing(patch, local), action: 'update', reason: kinship };
  }
  if (patch !== undefined) {
    return { action: 'update', patch, reason: kinship };
  }
  return leaving ? removal(local) : { action: 'none' };
}

/** Whether an object here goes because the hub's is being deleted: what is no copy, whatever its name, does not. */
function isToBeDeleted(hub: Application, local: Application, { ours }: PlanOptions): boolean {
  const { [annotations.sourceUid]: source = '' } = local.metadata.annotations ?? {};
  return source !== '' || (ours === true && asksForWorkload(hub));
}

/**
 * Decides what a `delete` for a source UID means for the local object: an object of another source is not touched.
 * @param left the last state of the source, as far as it is known: its finalizers decide about the workload. A copy that was here
 *   before is given back if its source is still there; who deletes the source means the copy
 * @param last what the copy was to be; Argo CD removes what the copy's spec names, so that is corrected first
 */
export function planDeletion(
  sourceUid: string,
  local: Application | undefined,
  left: Pick<Application, 'metadata'>,
  last?: Application,
): Plan {
  const own = local?.metadata.annotations?.[annotations.sourceUid];
  if (local === undefined || own === undefined || own === '' || own !== sourceUid) {
    return { action: 'none' };
  }
  const record = isStillThere(left) ? local.metadata.annotations?.[annotations.takenOver] : undefined;
  const spec = last === undefined ? undefined : mergePatchBetween(local.spec, managedFieldsOf(last).spec);
  return planLeave(local, {
    finalizers: finalizersOfLeave(local, left.metadata.finalizers ?? [], isOfCluster),
    correction: spec && { spec },
    givenBack: record === undefined ? undefined : giveBack(local, contentOf(local), record, copyMarks),
  });
}

function contentOf({ spec }: Application): { readonly spec: Application['spec'] } {
  return { spec };
}

/**
 * Decides what to do with a copy whose deletion is under way and takes long: Argo CD, when an API server did not answer
 * it, continues only at its next periodic comparison, or when the object changes.
 */
export function planStuckDeletion(local: Application | undefined, now: Date): Plan {
  if (local === undefined || !isDeleting(local) || !(local.metadata.finalizers ?? []).some(isArgoCDs)) {
    return { action: 'none' };
  }
  return update(local, { metadata: { annotations: { [annotations.nudgedAt]: now.toISOString() } } });
}

type Kinship = UpdateReason | 'refuse' | 'replace';

function kinshipOf(desired: DesiredApplication, local: Application, options: PlanOptions): Kinship {
  const own = local.metadata.annotations?.[annotations.sourceUid];
  const ownPrincipal = local.metadata.annotations?.[annotations.principalUid];
  const sourceUid = sourceUidOf(desired.object);
  if (own === undefined || own === '') {
    return adoptionPolicyFor(local, options.adoptionPolicy) === 'always' ? 'adopted' : 'refuse';
  }
  if (desired.principalUid !== undefined && ownPrincipal !== undefined && ownPrincipal !== desired.principalUid) {
    return 'principal-changed';
  }
  if (sourceUid === '' || own === sourceUid) {
    return 'changed';
  }
  if (desired.principalUid !== undefined && ownPrincipal === undefined) {
    return 'principal-changed';
  }
  // What was there before it became a copy is not ours to delete.
  const isTakenOver = local.metadata.annotations?.[annotations.takenOver] !== undefined;
  return isTakenOver || mismatchPolicyFor(desired.object, options.mismatchPolicy) === 'upsert'
    ? 'source-replaced'
    : 'replace';
}

function mismatchPolicyFor(hub: Application, policy: MismatchPolicy): MismatchPolicy {
  const own = hub.metadata.annotations?.[annotations.mismatchPolicy];
  return own === 'recreate' || own === 'upsert' ? own : policy;
}

function adoptionPolicyFor(local: Application, policy: AdoptionPolicy): AdoptionPolicy {
  const own = local.metadata.annotations?.[annotations.adoptionPolicy];
  return own === 'always' || own === 'never' ? own : policy;
}

function newCopy(desired: DesiredApplication, options: PlanOptions): Application {
  const fields = managedFieldsOf(desired.object);
  const { principalUid } = desired;
  const identity = { sourceUid: sourceUidOf(desired.object), principalUid, remapped: options.remapped };
  return {
    apiVersion: 'argoproj.io/v1alpha1',
    kind: 'Application',
    metadata: {
      name: desired.object.metadata.name,
      namespace: options.namespace,
      ...(Object.keys(fields.labels).length > 0 ? { labels: { ...fields.labels } } : {}),
      annotations: { ...copyAnnotations(fields, identity, undefined), ...options.triggers },
      ...(fields.finalizers.length > 0 ? { finalizers: [...fields.finalizers] } : {}),
    },
    spec: fields.spec,
  };
}

/** @param record what the local object is, if it becomes a copy by this */
function patchFor(
  desired: DesiredApplication,
  local: Application,
  options: PlanOptions,
  record?: string,
): MergePatch | undefined {
  const fields = managedFieldsOf(desired.object);
  const identity = {
    sourceUid: sourceUidOf(desired.object) || (local.metadata.annotations?.[annotations.sourceUid] ?? ''),
    principalUid: desired.principalUid,
    remapped: options.remapped,
  };
  const metadata: Record<string, unknown> = {
    ...mergePatchBetween(
      { labels: local.metadata.labels ?? {}, annotations: local.metadata.annotations ?? {} },
      {
        labels: fields.labels,
        annotations: {
          ...copyAnnotations(fields, identity, local),
          ...(record === undefined ? {} : { [annotations.takenOver]: record }),
          ...options.triggers,
        },
      },
    ),
  };
  const finalizers = copyFinalizers(fields, local);
  if (!isEqual(local.metadata.finalizers ?? [], finalizers)) {
    metadata.finalizers = finalizers;
  }
  const spec = mergePatchBetween(local.spec, fields.spec);
  if (Object.keys(metadata).length === 0 && spec === undefined) {
    return undefined;
  }
  return {
    metadata: { ...metadata, uid: local.metadata.uid },
    ...(spec === undefined ? {} : { spec }),
  };
}

/** A copy that is being deleted only gets what the deletion depends on: the spec names what goes, a finalizer whether it goes. */
function inStepWhileLeaving(hub: Application, local: Application): Plan {
  const spec = mergePatchBetween(local.spec, managedFieldsOf(hub).spec);
  const present = local.metadata.finalizers ?? [];
  const finalizers = asksForWorkload(hub) ? present : present.filter((one) => !deletesWorkload(one));
  if (spec === undefined && finalizers.length === present.length) {
    return { action: 'wait' };
  }
  return update(local, {
    ...(spec && { spec }),
    ...(finalizers.length < present.length && { metadata: { finalizers } }),
  });
}

function refreshing(patch: MergePatch, local: Application): { patch: MergePatch; refreshes: boolean } {
  const metadata = patch.metadata as { readonly annotations?: Readonly<Record<string, string>> };
  if (
    triggersOf(local)[annotations.refresh] !== undefined ||
    metadata.annotations?.[annotations.refresh] !== undefined
  ) {
    return { patch, refreshes: false };
  }
  const asked = { ...metadata.annotations, [annotations.refresh]: 'normal' };
  return { patch: { ...patch, metadata: { ...metadata, annotations: asked } }, refreshes: true };
}

/** Whether the copy is being deleted. */
export function isDeleting(local: Application): boolean {
  return local.metadata.deletionTimestamp !== undefined;
}

/** Argo CD's finalizers: of the resources, and of hooks. */
function isArgoCDs(finalizer: string): boolean {
  return /^[a-z-]+\.argocd\.argoproj\.io(\/|$)/.test(finalizer);
}

function removal(local: Application): Plan {
  return isDeleting(local)
    ? { action: 'wait' }
    : { action: 'delete', uid: local.metadata.uid ?? '', propagation: 'Foreground' };
}

/** The plan to patch this very object; exact: only if nobody changed it meanwhile. */
export function update(local: Application, patch: MergePatch, exact = false): Plan {
  const { uid, resourceVersion } = local.metadata;
  return {
    action: 'update',
    reason: 'changed',
    patch: { ...patch, metadata: { ...(patch.metadata ?? {}), ...(exact ? { uid, resourceVersion } : { uid }) } },
  };
}
