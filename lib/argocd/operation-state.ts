import { isEqual, isMap, type MergePatch, mergePatchBetween } from '../base/index.ts';
import type { Application } from './application.ts';

/** What Argo CD says of the operation that it carries out, or carried out last. */
export type OperationState = NonNullable<NonNullable<Application['status']>['operationState']>;

/** Whether Argo CD takes an operation for one that is carried out, or tried again, as it does by the phase alone. */
export function isInProgress(state: OperationState | undefined): boolean {
  return state?.phase === 'Running' || state?.phase === 'Terminating';
}

/** Whether an operation runs. A Go agent also has one that is over called terminating, which it then is for good. */
export function isRunning(application: Application): boolean {
  const state = application.status?.operationState;
  return isInProgress(state) && state?.finishedAt === undefined;
}

/**
 * Whether what Argo CD says to have started is the operation that was asked for. Argo CD writes what it has read: two parts are there
 * even when they are empty, other empty fields are left out, and a retry with a refresh has lost its revision.
 */
export function isSameOperation(started: unknown, asked: Operation | undefined): boolean {
  if (!isMap(started) || asked === undefined) {
    return false;
  }
  const noted = { initiatedBy: {}, retry: {}, ...asked };
  const isRefreshed = isMap(asked.retry) && asked.retry.refresh === true && isMap(asked.sync);
  return isAsNoted(noted, started) || (isRefreshed && isAsNoted({ ...noted, sync: unpinned(asked.sync) }, started));
}

/** The patch that asks for an operation where none is. */
export function askingFor(operation: Operation): MergePatch {
  return mergePatchBetween({}, { operation }) ?? {};
}

type Operation = NonNullable<Application['operation']>;

/** The one field of an operation that Argo CD keeps as it is written, empty parts and nulls too: the user's Helm values. */
const keptAsWritten = 'valuesObject';

function isAsNoted(asked: unknown, noted: unknown): boolean {
  if (Array.isArray(asked) && Array.isArray(noted)) {
    return asked.length === noted.length && asked.every((item, index) => isAsNoted(item, noted[index]));
  }
  if (!isMap(asked) || !isMap(noted)) {
    return isEqual(asked, noted);
  }
  const known = new Map(Object.entries(noted));
  const isNoted = Object.entries(asked).every(([key, value]) => {
    const found = known.get(key);
    known.delete(key);
    const isLeftOut = found === undefined && key !== keptAsWritten && isEmpty(value);
    return isLeftOut || (key === keptAsWritten ? isEqual(value, found) : isAsNoted(value, found));
  });
  return isNoted && [...known.values()].every((value) => value === undefined || value === '');
}

/** Whether Go leaves a value out. */
function isEmpty(value: unknown): boolean {
  return !value || (typeof value === 'object' && Object.keys(value).length === 0);
}

function unpinned(sync: unknown): unknown {
  const { revision: _, revisions: __, ...rest } = sync as Readonly<Record<string, unknown>>;
  return rest;
}

/**
 * The patch that goes with a new operation, as argocd-server makes it: the state of the one before is taken away. Argo CD's
 * application controller merges the new state into an old one, so an operation that waits (for a sync window) would later
 * resume with the former results, and end without applying anything; one that seems to run would be resumed at once.
 */
export function withoutFormerState({ status }: Application): MergePatch {
  return status?.operationState === undefined ? {} : { status: { operationState: null } };
}
