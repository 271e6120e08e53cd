import { isEqual, type MergePatch } from '../../../base/index.ts';
import type { Application } from '../../application.ts';
import { annotations } from '../../names.ts';
import { askingFor, isRunning, isSameOperation, withoutFormerState } from '../../operation-state.ts';
import type { ApplicationMessage } from '../../peer/messages.ts';
import { triggersOf } from '../../triggers.ts';
import type { Plan } from '../../writing/plan.ts';
import { mirroredUid } from '../mirror.ts';
import { type OperationObjection, type OperationRevisions, objectionToOperation } from './operation-admission.ts';

/** What a request of the hub leads to: a plan, that another operation has to end first, or that the cluster takes no such one. */
export type MirrorRequestPlan =
  | Plan
  | { readonly action: 'later' }
  | { readonly action: 'deny'; readonly objection: OperationObjection };

/**
 * Decides what a refresh (or hydrate) that a user asked for on the mirror does here. Nothing else of a `spec-update` is
 * taken: the cluster owns the rest.
 */
export function planOwnTriggers(mirror: Application, local: Application | undefined): Plan {
  const objection = objectionTo(mirror, local);
  if (objection !== undefined || local === undefined) {
    return { action: 'refuse', message: `not refreshed: ${objection}` };
  }
  // Also one that is there already: what is known of the object may be old, and Argo CD may have answered that one.
  const wanted = triggersOf(mirror);
  return Object.keys(wanted).length === 0 ? { action: 'none' } : update(local, { metadata: { annotations: wanted } });
}

/**
 * Decides what an operation that a user asked for on the mirror does here. Argo CD forgets one that is set while another
 * is there, so it waits for the end of that. One that has run already is not set again because the report of it is lost.
 * @param before when the operation before this one had started, as far as was known when this one was first tried: the
 * answer to setting it may have been lost or late, and then it shows by having started
 * @param revisions which revisions it may name
 */
export function planOwnOperation(
  mirror: Application,
  local: Application | undefined,
  before: { readonly startedAt: unknown },
  revisions: OperationRevisions,
): MirrorRequestPlan {
  const objection = objectionTo(mirror, local);
  if (objection !== undefined || local === undefined) {
    return { action: 'refuse', message: `operation not started: ${objection}` };
  }
  const { operation } = mirror;
  const state = local.status?.operationState;
  if (operation === undefined || isEqual(local.operation, operation)) {
    return { action: 'none' };
  }
  if (isRunning(mirror) && isEqual(mirror.status?.operationState?.operation, operation)) {
    // A Go principal may send back what was reported to it. Argo CD takes no request for an operation that runs already.
    return { action: 'none' };
  }
  const hasStarted = state?.startedAt !== before.startedAt || isUnreported(mirror, state?.startedAt);
  if (hasStarted && isSameOperation(state?.operation, operation)) {
    return { action: 'none' };
  }
  const denied = objectionToOperation(operation, local, revisions);
  if (denied !== undefined) {
    return { action: 'deny', objection: denied };
  }
  if (local.operation !== undefined) {
    return { action: 'later' };
  }
  // Exact: if somebody sets another meanwhile, this one has to wait.
  return update(local, {
    metadata: { resourceVersion: local.metadata.resourceVersion },
    ...askingFor(operation),
    ...withoutFormerState(local),
  });
}

/** Has Argo CD look what the target revision means now, unless it is to refresh anyway. */
export function planComparison(local: Application | undefined): Plan {
  return local === undefined || local.metadata.annotations?.[annotations.refresh] !== undefined
    ? { action: 'none' }
    : update(local, { metadata: { annotations: { [annotations.refresh]: 'normal' } } });
}

/**
 * Decides what a request to terminate the running operation does here: it is about the one that the mirror shows. The resource
 * version makes sure that it did not end meanwhile, or another begin.
 */
export function planOwnTermination(mirror: Application, local: Application | undefined): Plan {
  const objection = objectionTo(mirror, local);
  if (objection !== undefined || local === undefined) {
    return { action: 'refuse', message: `operation not terminated: ${objection}` };
  }
  const { phase, startedAt } = local.status?.operationState ?? {};
  const seen = mirror.status?.operationState?.startedAt;
  if (local.operation === undefined || phase !== 'Running' || (seen !== undefined && seen !== startedAt)) {
    return { action: 'none' };
  }
  return update(local, {
    metadata: { resourceVersion: local.metadata.resourceVersion },
    status: { operationState: { phase: 'Terminating' } },
  });
}

/**
 * Whether an Application shows a request as made, and Argo CD has not answered it yet. An update that requests nothing is
 * under way in every state.
 */
export function isUnderWay({ type, object }: ApplicationMessage, local: Application): boolean {
  switch (type) {
    case 'set-operation':
      return isEqual(local.operation, object.operation);
    case 'terminate-operation':
      return local.status?.operationState?.phase === 'Terminating';
    default:
      return isEqual({ ...triggersOf(local), ...triggersOf(object) }, triggersOf(local));
  }
}

/** Whether the mirror's principal has had no report of the operation that began then. Other principals do not say that. */
function isUnreported({ metadata }: Application, startedAt: unknown): boolean {
  const reported = metadata.annotations?.[annotations.reportedOperation];
  return reported !== undefined && startedAt !== undefined && startedAt !== reported;
}

/** Why a request that was made on a mirror is not for this Application. */
function objectionTo(mirror: Application, local: Application | undefined): string | undefined {
  if (local === undefined) {
    return 'there is no such Application';
  }
  const uid = mirroredUid(mirror);
  return uid === local.metadata.uid ? undefined : `it was asked of another Application of this name (UID ${uid})`;
}

function update(local: Application, patch: MergePatch): Plan {
  const metadata = { ...(patch.metadata as object | undefined), uid: local.metadata.uid };
  return { action: 'update', reason: 'changed', patch: { ...patch, metadata } };
}
