import { digestOf, isEqual, type MergePatch, mergePatchBetween } from '../../base/index.ts';
import type { Application, ApplicationStatus } from '../application.ts';
import { isReleased } from '../leaving.ts';
import { agentErrorCondition, annotations, principalConditions } from '../names.ts';
import { isSameOperation, type OperationState } from '../operation-state.ts';
import { triggers, triggersOf } from '../triggers.ts';

/** What is known about the hub's own requests at the moment an agent's report arrived. */
export interface ReportContext {
  /** The agent has everything that the hub object's `operation` asks for, so its absence in the report is an answer. */
  readonly operationDelivered: boolean;
  /** The same for the trigger annotations. */
  readonly triggersDelivered: boolean;
  /** The hub's user terminated the operation and the agent does not know yet. */
  readonly terminating: boolean;
  /** Whether the hub's object has told of an operation that began then, and no later one. Default: that is not known. */
  readonly hasShown?: (startedAt: string) => boolean;
}

/**
 * Equal for two managed Applications with the same report: whose copy it is, status, operation,
 * which triggers are left to do, and whether it is being deleted.
 */
export function reportDigest(local: Application): string {
  const source = local.metadata.annotations?.[annotations.sourceUid];
  const isLeaving = local.metadata.deletionTimestamp !== undefined;
  return digestOf([source, local.status ?? {}, local.operation ?? null, triggersOf(local), isLeaving]);
}

/**
 * The patch that writes an agent's report into the hub's object, or undefined when there is nothing new. Only status,
 * `operation` and trigger annotations are taken from a report. What the hub's user requested and the agent has not
 * received yet is kept; a removal that depends on the hub's object as it is now carries its resource version.
 */
export function planReport(hub: Application, report: Application, context: ReportContext): MergePatch | undefined {
  const status = mergePatchBetween(hub.status, reportedStatus(hub, report.status ?? {}, context));
  const operation = operationPatch(hub, report, context);
  const triggers = triggerPatch(hub, report, context);
  if (status === undefined && operation === undefined && triggers === undefined) {
    return undefined;
  }
  const exact = operation !== undefined || triggers !== undefined;
  return {
    metadata: {
      uid: hub.metadata.uid,
      ...(exact ? { resourceVersion: hub.metadata.resourceVersion } : {}),
      ...(triggers === undefined ? {} : { annotations: triggers }),
    },
    ...(status === undefined ? {} : { status }),
    ...(operation === undefined ? {} : { operation: operation.value }),
  };
}

/**
 * Whether the operation of the hub's object was begun on the copy after what the hub knows of began last: the request
 * was executed, and the hub has no report of it yet.
 *
 * argocd-server removes the state of the operation before when it requests one. So a state that the hub does not show may
 * have been reported, and the same request be a new one: users repeat a sync.
 *
 * @param isReported whether this process knows that the hub has had the report of an operation that began then
 */
export function ranUnreported(
  hub: Application,
  local: Application,
  isReported: (startedAt: string) => boolean,
): boolean {
  const state = local.status?.operationState;
  const reportedAt = lastReported(hub);
  return (
    hub.operation !== undefined &&
    typeof state?.startedAt === 'string' &&
    reportedAt !== undefined &&
    state.startedAt > reportedAt &&
    isSameOperation(state.operation, hub.operation) &&
    !isReported(state.startedAt)
  );
}

/** When the last operation began that the hub's object tells of; when the object was made, if it tells of none. */
function lastReported({ metadata, status }: Application): string | undefined {
  const history: unknown = status?.history;
  const { deployStartedAt } = ((Array.isArray(history) && history.at(-1)) || {}) as { deployStartedAt?: unknown };
  const times = [status?.operationState?.startedAt, deployStartedAt, metadata.creationTimestamp];
  return times
    .filter((time) => typeof time === 'string')
    .sort()
    .at(-1);
}

/** The patch that shows on the hub's object what the agent could not do; the rest of the status stays. */
export function planAgentError(hub: Application, agent: string, message: string, now: Date): MergePatch | undefined {
  const text = `agent ${agent}: ${message}`;
  const status = withAgentError(hub.status ?? {}, text, now);
  const patch = mergePatchBetween(hub.status, status);
  return patch === undefined ? undefined : { metadata: { uid: hub.metadata.uid }, status: patch };
}

/** What the principal's own conditions on a hub's object are to say; undefined: there is to be no such condition. */
export type PrincipalMessages = Readonly<Record<(typeof principalConditions)[number], string | undefined>>;

/**
 * The patch that makes the principal's own conditions on the hub's object say this; the rest of the status stays. It holds
 * for the object as it is: a patch replaces all conditions, and an agent may report others meanwhile.
 */
export function planWarnings(hub: Application, messages: PrincipalMessages, now: Date): MergePatch | undefined {
  const before = hub.status?.conditions ?? [];
  const conditions = principalConditions.reduce<Conditions>(
    (others, type) => withCondition(others, type, messages[type], now),
    before,
  );
  const { uid, resourceVersion } = hub.metadata;
  return isEqual(before, conditions)
    ? undefined
    : { metadata: { uid, resourceVersion }, status: { conditions: conditions.length === 0 ? null : conditions } };
}

/** What a condition of this type says on an Application; undefined when there is none. */
export function conditionMessage({ status }: Application, type: string): string | undefined {
  return status?.conditions?.find((one) => one.type === type)?.message;
}

/** A status without the conditions that only the principal writes: what its agent knows of it. */
export function withoutPrincipalConditions(status: ApplicationStatus): ApplicationStatus {
  if (status.conditions?.some(isOfPrincipal) !== true) {
    return status;
  }
  const { conditions: all, ...others } = status;
  const conditions = all.filter((one) => !isOfPrincipal(one));
  return conditions.length === 0 ? others : { ...others, conditions };
}

/** The patch that releases a hub object that is being deleted, if a user requests that. */
export function planUserRelease(hub: Application): MergePatch | undefined {
  const { uid, deletionTimestamp, finalizers = [] } = hub.metadata;
  return deletionTimestamp !== undefined && finalizers.length > 0 && isReleased(hub)
    ? { metadata: { uid, finalizers: null } }
    : undefined;
}

/** A status that shows what the agent could not do: health Degraded and a condition; an equal one keeps its time. */
export function withAgentError(status: ApplicationStatus, message: string, now: Date): ApplicationStatus {
  const conditions = withCondition(status.conditions, agentErrorCondition, message, now);
  return { ...status, health: { ...status.health, status: 'Degraded' }, conditions };
}

/** A status with one more condition of the agent; its health is as it was. */
export function withAgentWarning(status: ApplicationStatus, message: string, now: Date): ApplicationStatus {
  return { ...status, conditions: withCondition(status.conditions, agentErrorCondition, message, now) };
}

type Conditions = NonNullable<ApplicationStatus['conditions']>;

function isOfPrincipal({ type }: { readonly type: string }): boolean {
  return principalConditions.some((one) => one === type);
}

function withCondition(
  conditions: Conditions | undefined,
  type: string,
  message: string | undefined,
  now: Date,
): Conditions {
  const present = (conditions ?? []).filter((one) => one.type === type);
  if (present.length <= 1 && present[0]?.message === message) {
    return conditions ?? [];
  }
  const others = (conditions ?? []).filter((one) => one.type !== type);
  if (message === undefined) {
    return others;
  }
  const same = present.find((one) => one.message === message);
  return [...others, same ?? { type, message, lastTransitionTime: now.toISOString().replace(/\.\d+Z$/, 'Z') }];
}

function reportedStatus(hub: Application, reported: ApplicationStatus, context: ReportContext): ApplicationStatus {
  const status = withWarnings(reported, hub);
  const operationState = status.operationState;
  if (
    context.terminating &&
    operationState?.phase === 'Running' &&
    hub.status?.operationState?.phase === 'Terminating'
  ) {
    return { ...status, operationState: { ...operationState, phase: 'Terminating' } };
  }
  if (isOfFormerOperation(hub, operationState, context)) {
    const { operationState: _, ...others } = status;
    return others;
  }
  return status;
}

/**
 * Whether a state is of the operation before the one that the hub's user has asked for, which the agent has not received.
 * argocd-server takes the state away when it asks: whoever waits for the end of the new one must not see that of the former.
 */
function isOfFormerOperation(hub: Application, state: OperationState | undefined, context: ReportContext): boolean {
  return (
    hub.operation !== undefined &&
    !context.operationDelivered &&
    hub.status?.operationState === undefined &&
    typeof state?.startedAt === 'string' &&
    context.hasShown?.(state.startedAt) === true
  );
}

/**
 * The principal's own conditions are not in a report, so they stay. A condition that the agent reports again keeps the time
 * of its first report.
 */
function withWarnings(status: ApplicationStatus, hub: Application): ApplicationStatus {
  const before = hub.status?.conditions ?? [];
  const notices = before.filter(isOfPrincipal);
  const reported = (status.conditions ?? []).filter((one) => !isOfPrincipal(one));
  const known = new Map(before.flatMap((one) => (one.type === agentErrorCondition ? [[one.message, one]] : [])));
  const conditions = reported.map((one) => (one.type === agentErrorCondition ? (known.get(one.message) ?? one) : one));
  return status.conditions === undefined && notices.length === 0
    ? status
    : { ...status, conditions: [...conditions, ...notices] };
}

function operationPatch(hub: Application, report: Application, context: ReportContext): { value: unknown } | undefined {
  if (!context.operationDelivered || isEqual(hub.operation, report.operation)) {
    return undefined;
  }
  return { value: report.operation === undefined ? null : mergePatchBetween(hub.operation, report.operation) };
}

function triggerPatch(
  hub: Application,
  report: Application,
  context: ReportContext,
): Readonly<Record<string, null>> | undefined {
  const wanted = triggersOf(hub);
  const left = triggersOf(report);
  const patch: Record<string, null> = {};
  for (const [request, which] of context.triggersDelivered ? triggers : []) {
    for (const key of left[request] === undefined ? [request, which] : []) {
      if (wanted[key] !== undefined) {
        patch[key] = null;
      }
    }
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}
