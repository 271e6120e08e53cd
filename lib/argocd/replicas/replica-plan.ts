import { canonicalJson, isEqual, type MergePatch, mergedPatches } from '../../base/index.ts';
import type { ObjectRef } from '../../sync/index.ts';
import { copiedFrom } from '../copied-from.ts';
import { planLeave } from '../leaving.ts';
import { annotations } from '../names.ts';
import { hasForeignAnnotation } from '../owner-marks.ts';
import { isSkipped } from '../routing.ts';
import { giveBack, recordOf } from '../taken-over.ts';
import type { Plan } from '../writing/plan.ts';
import { newCopy, patchForCopy, replicaDigest } from './copy.ts';
import type { ReplicaKind, ReplicaObject } from './kinds.ts';
import { type ReplicaRules, skipped } from './replica-rules.ts';

/** What the source sent last, and what the API server made of it. */
export interface DesiredReplica<T> {
  readonly object: T;
  readonly sourceUid: string;
  /** All annotations that mark the copy. */
  readonly marks: Readonly<Record<string, string>>;
  /** State of the copy when it was last as desired. */
  readonly settled: string | undefined;
  /** UID of the copy, which stays a copy even when somebody removes its marks. */
  readonly copyUid: string | undefined;
  /** What the copy was before it became one; undefined: it was not there. An API server that goes back may have it without its record. */
  readonly record: string | undefined;
}

/** A copy whose mark was removed is reported with this UID, so that its source decides what becomes of it. */
const unknownUid = 'unknown';
const markKeys = [annotations.sourceUid, annotations.mirrorOf, annotations.mirrorChecksums, annotations.mirrorDigests];
/** The annotations that an object has only as a copy. */
const ofCopies: readonly string[] = [...markKeys, annotations.principalUid, annotations.takenOver];

/** Decides about the copies of one kind by its rules. */
export class ReplicaPlanner<T extends ReplicaObject> {
  readonly #kind: ReplicaKind<T>;
  readonly #rules: ReplicaRules<T>;

  constructor(kind: ReplicaKind<T>, rules: ReplicaRules<T>) {
    this.#kind = kind;
    this.#rules = rules;
  }

  /** What is desired after the source sent an object. Throws `Unacceptable`. */
  desiredAfter(source: T, earlier: DesiredReplica<T> | undefined): DesiredReplica<T> {
    const { uid: sourceUid = '' } = source.metadata;
    const object = this.#rules.toLocal(source);
    const marks = { ...this.#rules.marks?.(source, object), [annotations.sourceUid]: sourceUid };
    const { copyUid, record } = earlier ?? {};
    return { object, sourceUid, marks, settled: undefined, copyUid, record };
  }

  /** A copy that an earlier process made is as desired until the source sends something. */
  desiredAsFound(local: T): DesiredReplica<T> | undefined {
    return this.#rules.isCopy(local) && local.metadata.deletionTimestamp === undefined
      ? {
          object: local,
          sourceUid: uidOf(local),
          marks: marksOn(local),
          settled: this.#state(local),
          copyUid: local.metadata.uid,
          record: this.#kind.record(local),
        }
      : undefined;
  }

  /** What is desired when something else than the source has changed; undefined when it is the same. Throws `Unacceptable`. */
  renewed(name: string, desired: DesiredReplica<T>): DesiredReplica<T> | undefined {
    const renewed = this.#rules.renew?.(name, desired.object, desired.marks);
    const isSame =
      renewed === undefined ||
      (replicaDigest(this.#kind, renewed.object) === replicaDigest(this.#kind, desired.object) &&
        isEqual(renewed.marks, desired.marks));
    return isSame ? undefined : { ...desired, ...renewed, settled: undefined };
  }

  settled(desired: DesiredReplica<T>, copy: T | undefined): DesiredReplica<T> {
    return copy === undefined || copy.metadata.deletionTimestamp !== undefined
      ? desired
      : {
          ...desired,
          settled: this.#state(copy),
          copyUid: copy.metadata.uid,
          record: this.#kind.record(copy),
        };
  }

  /** Whether a copy is not what it was when it was last as desired. */
  hasDrifted(copy: T, { settled }: DesiredReplica<T>): boolean {
    return this.#state(copy) !== settled;
  }

  /** Decides what makes a copy what is desired. */
  plan(ref: ObjectRef, desired: DesiredReplica<T> | undefined, local: T | undefined, stamp?: Marks): Plan<T> {
    if (desired === undefined) {
      return { action: 'none' };
    }
    const { object, marks, copyUid, record } = desired;
    const refusal = this.#rules.refusal?.(ref.name);
    if (refusal !== undefined) {
      return { action: 'refuse', message: refusal };
    }
    if (local === undefined) {
      const copy = newCopy(this.#kind, object, ref, { ...marks, ...stamp });
      return { action: 'create', object: copy, verifies: true };
    }
    if (isSkipped(local)) {
      return { action: 'refuse', message: skipped };
    }
    const isMarked = this.#rules.isCopy(local);
    const isCopy = isMarked || local.metadata.uid === copyUid;
    const objection = isCopy ? undefined : this.#rules.objection(local);
    if (objection !== undefined) {
      return { action: 'refuse', message: objection };
    }
    if (local.metadata.deletionTimestamp !== undefined) {
      // When it is gone, it is created again.
      return this.#release(local) ?? { action: 'wait' };
    }
    const isWrong = this.hasDrifted(local, desired) || hasForeignAnnotation(local);
    const patch = isWrong ? patchForCopy(this.#kind, object, local, marks) : undefined;
    if (patch === undefined) {
      return { action: 'none' };
    }
    const stamped = withAnnotations(patch, stamp);
    if (!isCopy) {
      return { action: 'update', reason: 'adopted', patch: this.#withRecord(stamped, local) };
    }
    const recorded = isMarked || record === undefined ? {} : this.#kind.recorded(record);
    return { action: 'update', reason: 'changed', patch: mergedPatches(stamped, recorded) };
  }

  /**
   * Decides what to do with an object whose source is gone.
   * @param source what the deletion says of the source
   * @param desired what is desired here, if it is the source that is gone: then also what has not become its copy yet goes
   */
  planDeletion(source: ReplicaObject, local: T | undefined, desired: DesiredReplica<T> | undefined): Plan<T> {
    const { uid: sourceUid = '' } = source.metadata;
    const isMeant =
      local !== undefined &&
      !isSkipped(local) &&
      this.#rules.refusal?.(local.metadata.name) === undefined &&
      ((this.#rules.isCopy(local) && (desired !== undefined || isCopyOf(local, sourceUid))) ||
        // One that was taken over has no marks any more when it was given back.
        (desired !== undefined && desired.record === undefined && local.metadata.uid === desired.copyUid));
    return isMeant
      ? planLeave(local, {
          finalizers: this.#rules.dropsFinalizers ? [] : (local.metadata.finalizers ?? []),
          givenBack: this.#rules.goesWith?.(source) ? undefined : this.#givenBack(local),
        })
      : { action: 'none' };
  }

  /** UID of the source's object that this object is a copy of; undefined when it is none. */
  copiedUid(local: T): string | undefined {
    return this.#rules.isCopy(local) ? uidOf(local) : undefined;
  }

  /** What makes an object that stays one of this side alone; undefined: it does not stay. */
  #givenBack(local: T): MergePatch | undefined {
    const content = this.#kind.content(local);
    const record = this.#kind.record(local);
    if (record !== undefined) {
      return mergedPatches(giveBack(local, content, record, ofCopies), this.#kind.recorded(undefined));
    }
    const stays = this.#rules.needed?.(local);
    return stays && giveBack(local, content, recordOf(withoutMarks(stays), this.#kind.content(stays)), ofCopies);
  }

  #withRecord(patch: MergePatch, local: T): MergePatch {
    return mergedPatches(patch, this.#kind.recorded(recordOf(local, this.#kind.content(local))));
  }

  /** Removes finalizers where nobody answers them. */
  #release({ metadata }: T): Plan<T> | undefined {
    return this.#rules.dropsFinalizers && (metadata.finalizers ?? []).length > 0
      ? { action: 'update', reason: 'changed', patch: { metadata: { uid: metadata.uid, finalizers: null } } }
      : undefined;
  }

  /** Equal for two states of a copy without a difference that matters to this replica. */
  #state(local: T): string {
    const isDeleting = local.metadata.deletionTimestamp !== undefined;
    return `${isDeleting} ${replicaDigest(this.#kind, local)} ${canonicalJson(marksOn(local))}`;
  }
}

type Marks = Readonly<Record<string, string>>;

function uidOf(local: ReplicaObject): string {
  return copiedFrom(local) || unknownUid;
}

/** A copy without source UID may be one of any object. */
function isCopyOf(local: ReplicaObject, sourceUid: string): boolean {
  return copiedFrom(local) === '' || copiedFrom(local) === sourceUid;
}

function withAnnotations(patch: MergePatch, annotations: Marks = {}): MergePatch {
  const metadata = patch.metadata as { readonly annotations?: object } | undefined;
  return { ...patch, metadata: { ...metadata, annotations: { ...metadata?.annotations, ...annotations } } };
}

function withoutMarks({ metadata }: ReplicaObject): ReplicaObject {
  const shared = Object.entries(metadata.annotations ?? {}).filter(([key]) => !ofCopies.includes(key));
  return { metadata: { ...metadata, annotations: Object.fromEntries(shared) } };
}

function marksOn({ metadata }: ReplicaObject): Marks {
  const marks: Record<string, string> = {};
  for (const key of markKeys) {
    const value = metadata.annotations?.[key];
    if (value !== undefined) {
      marks[key] = value;
    }
  }
  return marks;
}
