import { digestOf, isEqual } from '../../../base/index.ts';
import type { Application } from '../../application.ts';
import { annotations } from '../../names.ts';
import type { ApplicationMessage } from '../../peer/messages.ts';
import { newTriggers, triggersOf } from '../../triggers.ts';
import { managedFieldsOf, sourceUidOf } from '../copy.ts';
import type { DesiredApplication } from './copy-plan.ts';

/** What the principal sent last about one Application, and how far it is reached. */
export interface DesiredCopy extends DesiredApplication {
  /** Trigger annotations that came with the hub's object and are not set here yet. */
  readonly triggers: Readonly<Record<string, string>>;
  /**
   * Uid of the copy; empty when there is none yet, so that every change may make one possible; undefined while it is not
   * known.
   */
  readonly copyUid: string | undefined;
  /** What the copy was before it became one; undefined: it was not there. An API server that goes back may have it without its record. */
  readonly record: string | undefined;
  /** Digest of the spec that the API server made of ours; it may drop or default fields of another Argo CD version. */
  readonly settledSpec: string | undefined;
  /** This agent requested a refresh that no user of the hub requested, and Argo CD has not done it yet. */
  readonly ownRefresh?: boolean;
}

/** What is desired after a message, given what was desired before it. */
export function desiredCopyAfter(message: ApplicationMessage, earlier: DesiredCopy | undefined): DesiredCopy {
  const { object, principalUid } = message;
  const before = earlier !== undefined && sourceUidOf(earlier.object) === sourceUidOf(object) ? earlier : undefined;
  return {
    object,
    principalUid,
    triggers: { ...before?.triggers, ...newTriggers(object, before?.object) },
    copyUid: before?.copyUid,
    record: before?.record,
    ownRefresh: before?.ownRefresh === true && triggersOf(object)[annotations.refresh] === undefined,
    settledSpec: before !== undefined && isEqual(before.object.spec, object.spec) ? before.settledSpec : undefined,
  };
}

/** After a start, a copy is as desired until the principal sends something. */
export function desiredCopyAsFound(copy: Application): DesiredCopy {
  return {
    object: copy,
    principalUid: copy.metadata.annotations?.[annotations.principalUid],
    triggers: {},
    copyUid: copy.metadata.uid,
    record: recordOn(copy),
    settledSpec: undefined,
  };
}

/** The copy is as desired: records what it looks like, to detect changes. Without copy: one is waited for. */
export function settledCopy(desired: DesiredCopy, copy: Application | undefined): DesiredCopy {
  return copy === undefined
    ? { ...desired, copyUid: '' }
    : {
        ...desired,
        triggers: {},
        copyUid: copy.metadata.uid,
        record: recordOn(copy),
        settledSpec: digestOf(copy.spec),
      };
}

function recordOn({ metadata }: Application): string | undefined {
  return metadata.annotations?.[annotations.takenOver];
}

/** Whether the local object has no source UID: it is nobody's copy, or somebody removed the mark. */
export function isUnmarked(local: Application): boolean {
  return (local.metadata.annotations?.[annotations.sourceUid] ?? '') === '';
}

/** Whether the local object is marked as a copy of something on the hub. */
export function isManaged(local: Application | undefined): boolean {
  return local !== undefined && !isUnmarked(local);
}

/**
 * Whether somebody else changed what the principal decides. As with argocd-agent only spec and identity count; labels and
 * annotations are put right with the next message.
 */
export function hasCopyDrifted(local: Application, desired: DesiredCopy): boolean {
  if (local.metadata.uid !== desired.copyUid) {
    return desired.copyUid !== undefined;
  }
  const { spec } = managedFieldsOf(desired.object);
  return isUnmarked(local) || (!isEqual(local.spec, spec) && digestOf(local.spec) !== desired.settledSpec);
}
