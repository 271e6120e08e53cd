import { isEqual } from '../../lib/base/index.ts';
import { rfc3339 } from '../../lib/kube/index.ts';
import type { Feedback } from './feedback.ts';
import { pullKeys } from './names.ts';
import { endingStatus, type Payload, type PullApplication, terminating } from './resources.ts';
import { type CopyRequests, endingMark, named, operationId } from './work.ts';

/** What a reconcile does about an operation and a refresh that were requested on the hub. */
export interface PullRequestPlan {
  /** The Application to write before its work: a request gets an id, or a completed request is removed. */
  readonly application?: PullApplication;
  /** The write of `application` gives an operation its id. Nothing is delivered in this reconcile. */
  readonly isBeginning: boolean;
  /** The requests that the copy carries. */
  readonly requests: CopyRequests;
  /**
   * The copy carries an operation that may be running. Another version of the copy could start the operation again, or
   * abort it.
   */
  readonly isBusy: boolean;
}

/** The copy in the ManifestWork, and its status feedback. */
export interface Carrier {
  readonly payload: Payload | undefined;
  readonly feedback: Feedback;
}

/**
 * Plans the delivery of an operation, exactly once, and of a refresh, at least once.
 *
 * The work agent applies the copy whenever the copy changes, with the operation in it. Argo CD removes the operation when
 * it ends. So each operation gets an id on the hub first. It stays on the hub and in the copy while it runs, as on an
 * Application that Argo CD handles itself. It ends on the cluster first, then on the hub, then in the copy. The id and the
 * feedback show which steps are done, also to a controller that has just started.
 *
 * A user terminates an operation on the hub by phase Terminating, as Argo CD's API server writes it. The copy carries that
 * phase only once the feedback shows that the operation runs: on an operation that has ended, Argo CD would take the phase
 * for a new termination. An operation that was not sent yet is withdrawn.
 */
export function planRequests(
  application: PullApplication,
  { payload, feedback }: Carrier,
  newId: string,
  now: Date,
): PullRequestPlan {
  const { operation } = application;
  const requestedId = operationId(operation);
  const mark = payload?.metadata.annotations?.[pullKeys.operation];
  const carriedId = operationId(payload?.operation) ?? mark;
  const { operationArrived: arrived } = feedback;
  const hasArrived = carriedId !== undefined && (arrived === mark || arrived === carriedId);
  // A copy that terminates the operation must have arrived before the end counts. Otherwise the termination repeats.
  const isOver = hasArrived && arrived === mark && feedback.operationPending !== carriedId;

  const isTerminated = isTerminatedOnHub(application);
  const endsAlready = payload?.status !== undefined;
  const runs = feedback.operationTaken === carriedId && feedback.operationStatePhase === 'Running';
  const isEnding = endsAlready || (isTerminated && requestedId === carriedId && runs);
  const carried = (id: string) => ({ id, operation: payload?.operation ?? {}, ...(isEnding ? { isEnding } : {}) });

  let next: PullApplication | undefined;
  const requests: { -readonly [K in keyof CopyRequests]: CopyRequests[K] } = {};
  let isBusy = false;
  if (carriedId !== undefined && payload?.operation && !isOver && (requestedId === carriedId || hasArrived)) {
    requests.operation = carried(carriedId);
    isBusy = true;
  } else if (carriedId !== undefined && payload?.operation && requestedId === carriedId) {
    // It has ended. It is removed from the hub first: otherwise a restarted controller would take it for a new one.
    next = { ...application };
    delete next.operation;
    requests.operation = carried(carriedId);
    isBusy = true;
  } else if (operation && requestedId !== undefined && !isTerminated) {
    requests.operation = { id: requestedId, operation };
  }
  if (isTerminated && requestedId !== carriedId) {
    next = withdrawn(application, now);
  }
  const isBeginning = operation !== undefined && requestedId === undefined;
  if (isBeginning) {
    next = begun(application, newId, now);
  }

  const how = application.metadata.annotations?.[pullKeys.refresh];
  if (how !== undefined) {
    const brought = payload?.metadata.annotations ?? {};
    const id = brought[pullKeys.refreshRequest];
    const isSame = id !== undefined && brought[pullKeys.refresh] === how;
    requests.refresh = { id: isSame ? id : (application.metadata.resourceVersion ?? newId), how };
    if (isSame && feedback.refreshArrived === id && feedback.refreshPending === undefined) {
      next = withoutRefresh(next ?? application);
    }
  }
  return { requests, isBusy, isBeginning, ...(next ? { application: next } : {}) };
}

/**
 * The next copy to put into the work. Undefined when the current one must stay because an operation is running. A
 * termination is not held back; it changes nothing else in the copy.
 */
export function nextPayload(
  { requests, isBusy }: Pick<PullRequestPlan, 'requests' | 'isBusy'>,
  current: Payload | undefined,
  desired: Payload,
): Payload | undefined {
  if (current === undefined) {
    return desired;
  }
  if (requests.operation?.isEnding && current.status === undefined) {
    const annotations = { ...current.metadata.annotations, [pullKeys.operation]: endingMark(requests.operation.id) };
    return { ...current, metadata: { ...current.metadata, annotations }, status: endingStatus };
  }
  return isBusy && !isEqual(current, desired) ? undefined : desired;
}

/** Gives a new operation its id and shows it as Running, as Argo CD would. */
function begun(application: PullApplication, id: string, now: Date): PullApplication {
  const operation = named(application.operation ?? {}, id);
  const cluster = application.metadata.annotations?.[pullKeys.cluster];
  const operationState = {
    phase: 'Running',
    message: `waiting for managed cluster ${cluster} to begin`,
    operation,
    startedAt: rfc3339(now),
  };
  return { ...application, operation, status: { ...application.status, operationState } };
}

/** Whether the current operation is terminated on the hub. A state of an earlier operation does not count. */
function isTerminatedOnHub({ operation, status }: PullApplication): boolean {
  const state = status?.operationState;
  const id = operationId(operation);
  return id !== undefined && state?.phase === terminating && operationId(state.operation) === id;
}

/** Removes an operation that was terminated before it was sent to the cluster. */
function withdrawn({ operation: _, ...application }: PullApplication, now: Date): PullApplication {
  const { operationState } = application.status ?? {};
  if (operationState === undefined) {
    return application;
  }
  const cluster = application.metadata.annotations?.[pullKeys.cluster];
  const message = `terminated before it was sent to managed cluster ${cluster}`;
  const ended = { ...operationState, phase: 'Failed', message, finishedAt: rfc3339(now) };
  return { ...application, status: { ...application.status, operationState: ended } };
}

function withoutRefresh(application: PullApplication): PullApplication {
  const { [pullKeys.refresh]: _, ...annotations } = application.metadata.annotations ?? {};
  return { ...application, metadata: { ...application.metadata, annotations } };
}
