import { digestOf, isEqual, type MergePatch, mergePatchBetween } from '../../base/index.ts';
import type { Application, ApplicationStatus } from '../application.ts';
import { agentErrorCondition, agentWarningCondition, annotations } from '../names.ts';
import { triggers, triggersOf } from '../triggers.ts';

/** What is known about the hub's own requests at the moment an agent's report arrived. */
export interface ReportContext {
  /** The agent has everything that the hub object's `operation` asks for, so its absence in the report is an answer. */
  readonly operationDelivered: boolean;
  /** The same for the trigger annotations. */
  readonly triggersDelivered: boolean;
  /** The hub's user terminated the operation and the agent does not know yet. */
  readonly terminating: boolean;
}

/**
 * Equal for two managed Applications that an agent would report in the same words: whose copy it is, status, operation,
 * which triggers are left to do, and whether it is being deleted.
 */
export function reportDigest(local: Application): string {
  const source = local.metadata.annotations?.[annotations.sourceUid];
  const isLeaving = local.metadata.deletionTimestamp !== undefined;
  return digestOf([source, local.status ?? {}, local.operation ?? null, triggersOf(local), isLeaving]);
}

/**
 * The patch that writes an agent's report into the hub's object, or undefined when it says nothing new. Only status,
 * `operation` and trigger annotations are taken from a report. What the hub's user asked for and the agent has not got
 * yet is kept; a removal that depends on what the hub's object says now carries its resource version.
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
 * Whether the operation of the hub's object was begun on the copy after what the hub knows of began last: what is asked for
 * was done, and the hub has not heard.
 */
export function ranUnreported(hub: Application, local: Application): boolean {
  const state = local.status?.operationState;
  const reportedAt = hub.status?.operationState?.startedAt ?? hub.metadata.creationTimestamp;
  return (
    hub.operation !== undefined &&
    typeof state?.startedAt === 'string' &&
    typeof reportedAt === 'string' &&
    state.startedAt > reportedAt &&
    isEqual(state.operation, hub.operation)
  );
}

/** The patch that shows on the hub's object what the agent could not do; the rest of the status stays. */
export function planAgentError(hub: Application, agent: string, message: string, now: Date): MergePatch | undefined {
  const text = `agent ${agent}: ${message}`;
  const status = withAgentError(hub.status ?? {}, text, now);
  const patch = mergePatchBetween(hub.status, status);
  return patch === undefined ? undefined : { metadata: { uid: hub.metadata.uid }, status: patch };
}

/**
 * The patch that shows on the hub's object what the principal has to say, or that it has nothing to say any more; the rest
 * of the status stays.
 */
export function planWarning(hub: Application, message: string | undefined, now: Date): MergePatch | undefined {
  const before = hub.status?.conditions;
  const conditions = withCondition(before, agentWarningCondition, message, now);
  return isEqual(before ?? [], conditions)
    ? undefined
    : { metadata: { uid: hub.metadata.uid }, status: { conditions: conditions.length === 0 ? null : conditions } };
}

/** The patch that lets go a hub object that is being deleted, if a user asks for that. */
export function planUserRelease(hub: Application): MergePatch | undefined {
  const { uid, deletionTimestamp, finalizers = [], annotations: marks } = hub.metadata;
  return deletionTimestamp !== undefined && finalizers.length > 0 && marks?.[annotations.release] === 'true'
    ? { metadata: { uid, finalizers: null } }
    : undefined;
}

/** A status that says what the agent could not do: health Degraded and a condition; an equal one keeps its time. */
export function withAgentError(status: ApplicationStatus, message: string, now: Date): ApplicationStatus {
  const conditions = withCondition(status.conditions, agentErrorCondition, message, now);
  return { ...status, health: { ...status.health, status: 'Degraded' }, conditions };
}

/** A status with one more condition of the agent; its health is as it was. */
export function withAgentWarning(status: ApplicationStatus, message: string, now: Date): ApplicationStatus {
  return { ...status, conditions: withCondition(status.conditions, agentErrorCondition, message, now) };
}

type Conditions = NonNullable<ApplicationStatus['conditions']>;

function withCondition(
  conditions: Conditions | undefined,
  type: string,
  message: string | undefined,
  now: Date,
): Conditions {
  const others = (conditions ?? []).filter((one) => one.type !== type);
  if (message === undefined) {
    return others;
  }
  const same = conditions?.find((one) => one.type === type && one.message === message);
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
  return status;
}

/**
 * What the principal has to say on the hub's object is not the agent's to say, and what the agent says again is as old as
 * when it said it first.
 */
function withWarnings(status: ApplicationStatus, hub: Application): ApplicationStatus {
  const before = hub.status?.conditions ?? [];
  const notices = before.filter(({ type }) => type === agentWarningCondition);
  const reported = (status.conditions ?? []).filter(({ type }) => type !== agentWarningCondition);
  const conditions = reported.map((one) =>
    one.type === agentErrorCondition
      ? (before.find(({ type, message }) => type === one.type && message === one.message) ?? one)
      : one,
  );
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
