import { rfc3339 } from '../../lib/kube/index.ts';
import type { Feedback } from './feedback.ts';
import { problemCondition } from './names.ts';
import {
  type ApplicationCondition,
  type HistoryEntry,
  type PullApplication,
  type PullStatus,
  terminating,
} from './resources.ts';
import { operationId } from './work.ts';

/** Argo CD's default `revisionHistoryLimit`. */
const historyLimit = 10;

/** What {@link statusFor} computes a status from. */
export interface PullReport {
  readonly feedback: Feedback;
  /** The managed cluster that `feedback` comes from. */
  readonly cluster?: string | undefined;
  /** Why the Application cannot be delivered. */
  readonly problem?: string | undefined;
}

/** The new status of the hub's Application. Only fields that the feedback contains are replaced. */
export function statusFor(application: PullApplication, report: PullReport, now: Date): PullStatus {
  const { feedback } = report;
  const status: PullStatus = { ...application.status };
  if (feedback.healthStatus !== undefined) {
    status.health = defined({
      status: feedback.healthStatus,
      message: feedback.healthMessage,
      lastTransitionTime: feedback.healthLastTransitionTime,
    });
  }
  if (feedback.syncStatus !== undefined) {
    const { revision: _, ...rest } = status.sync ?? {};
    status.sync = defined({ ...rest, status: feedback.syncStatus, revision: feedback.syncRevision });
  }
  const operationState = operationStateFor(application, feedback);
  if (operationState) {
    status.operationState = operationState;
  }
  const history = historyFor(application, feedback);
  if (history) {
    status.history = history;
  }
  const conditions = conditionsFor(status.conditions ?? [], report, now);
  if (conditions.length > 0 || status.conditions) {
    status.conditions = conditions;
  }
  return status;
}

/** Undefined: keep the current state. A state needs at least a phase and a start time. */
function operationStateFor({ operation, status }: PullApplication, feedback: Feedback): PullStatus['operationState'] {
  const { operationStatePhase: phase, operationStateStartedAt: startedAt, operationTaken: taken } = feedback;
  if (phase === undefined || startedAt === undefined) {
    return undefined;
  }
  const requestedId = operationId(operation);
  // The feedback is about an earlier operation.
  if (requestedId !== undefined && requestedId !== taken) {
    return undefined;
  }
  // A termination on the hub shows until the cluster has carried it out.
  const isEnding = requestedId !== undefined && phase === 'Running' && status?.operationState?.phase === terminating;
  const known = [operation, status?.operationState?.operation].find(
    (one) => taken !== undefined && operationId(one) === taken,
  );
  const initiatedBy = defined({
    username: feedback.operationStateUsername,
    automated: feedback.operationStateAutomated === 'true' ? true : undefined,
  });
  const revision = feedback.operationStateRevision;
  return defined({
    phase: isEnding ? terminating : phase,
    startedAt,
    operation: known ?? (Object.keys(initiatedBy).length > 0 ? { initiatedBy } : {}),
    message: feedback.operationStateMessage,
    finishedAt: feedback.operationStateFinishedAt,
    syncResult: revision === undefined ? undefined : { revision },
  });
}

/** Adds the last deployment from the feedback to the history. Undefined when it is already there. */
function historyFor({ spec, status }: PullApplication, feedback: Feedback): HistoryEntry[] | undefined {
  const { historyNumber: id, historyDeployedAt: deployedAt } = feedback;
  if (id === undefined || deployedAt === undefined) {
    return undefined;
  }
  const before = status?.history ?? [];
  if (before.some((entry) => entry.id === id && entry.deployedAt === deployedAt)) {
    return undefined;
  }
  const entry: HistoryEntry = defined({
    id,
    deployedAt,
    revision: feedback.historyRevision,
    deployStartedAt: feedback.historyDeployStartedAt,
    source: spec?.source,
    sources: spec?.sources,
  });
  // A copy that was created again counts its deployments from the start.
  return [...before.filter((one) => one.id < id), entry].slice(-historyLimit);
}

function conditionsFor(before: ApplicationCondition[], { feedback, cluster, problem }: PullReport, now: Date) {
  const prefix = (name: string) => `managed cluster ${name}: `;
  const isOwn = ({ type, message }: ApplicationCondition) =>
    type === problemCondition || /^managed cluster [a-z0-9-]+: /.test(message);
  const desired: ApplicationCondition[] = [];
  if (problem !== undefined) {
    desired.push({ type: problemCondition, message: problem });
  }
  if (cluster !== undefined && feedback.conditionType && feedback.conditionMessage !== undefined) {
    desired.push({ type: feedback.conditionType, message: prefix(cluster) + feedback.conditionMessage });
  }
  const timed = desired.map((one) => {
    const old = before.find(({ type, message }) => type === one.type && message === one.message);
    return old ?? { ...one, lastTransitionTime: rfc3339(now) };
  });
  return [...before.filter((one) => !isOwn(one)), ...timed];
}

/** An object without the fields that are undefined. */
function defined<T extends object>(object: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as never;
}
