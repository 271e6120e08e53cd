import { isEqual } from '../../lib/base/index.ts';
import { rfc3339 } from '../../lib/kube/index.ts';
import type { Feedback } from './feedback.ts';
import { pullKeys } from './names.ts';
import { endingStatus, type Payload, type PullApplication, terminating } from './resources.ts';
import { type CopyRequests, endingMark, named, operationId } from './work.ts';

/** What is to be done about an operation and a refresh that someone asked for on the hub. */
export interface PullRequestPlan {
  /** The Application as it has to be written before its work: a request gets its name, or has been carried out. */
  readonly application?: PullApplication;
  /** An operation gets its name by that: nothing is sent before. */
  readonly isBeginning: boolean;
  /** What the copy brings. */
  readonly requests: CopyRequests;
  /**
   * The copy brings an operation that may be running: another version of the copy could start it again, or, without it,
   * break it off.
   */
  readonly isBusy: boolean;
}

/** What is known of the copy on the cluster. */
export interface Carrier {
  readonly payload: Payload | undefined;
  readonly feedback: Feedback;
}

/**
 * Carries an operation to the cluster exactly once, and a refresh at least once.
 *
 * The work agent applies a copy when the copy changes, with whatever operation is in it; Argo CD takes the operation off
 * when it is over. So an operation gets a name on the hub before anything else, stays there and in the copy while it is
 * under way (as it would on an Application that Argo CD works on itself), and ends in this order: on the cluster, on the
 * hub, in the copy. By its name and what the cluster tells, each step is recognised as done or not, also by a controller
 * that was started in between.
 *
 * Someone who terminates it on the hub (phase Terminating, as Argo CD's API server writes it) ends it on the cluster: the
 * copy brings that phase as soon as the cluster tells that the operation runs. Only then: Argo CD would take the phase on
 * an operation that is over for one that is to be ended again. What was not sent yet is withdrawn.
 */
export function planRequests(
  application: PullApplication,
  { payload, feedback }: Carrier,
  newId: string,
  now: Date,
): PullRequestPlan {
  const asked = application.operation;
  const askedId = operationId(asked);
  const mark = payload?.metadata.annotations?.[pullKeys.operation];
  const carriedId = operationId(payload?.operation) ?? mark;
  const { operationArrived: arrived } = feedback;
  const hasArrived = carriedId !== undefined && (arrived === mark || arrived === carriedId);
  // Of a copy that ends it, the end of the operation counts when that copy is there: the end would come again otherwise.
  const isOver = hasArrived && arrived === mark && feedback.operationPending !== carriedId;

  const isTerminated = isTerminatedOnHub(application);
  const endsAlready = payload?.status !== undefined;
  const runs = feedback.operationTaken === carriedId && feedback.operationStatePhase === 'Running';
  const isEnding = endsAlready || (isTerminated && askedId === carriedId && runs);
  const carried = (id: string) => ({ id, operation: payload?.operation ?? {}, ...(isEnding ? { isEnding } : {}) });

  let next: PullApplication | undefined;
  const requests: { -readonly [K in keyof CopyRequests]: CopyRequests[K] } = {};
  let isBusy = false;
  if (carriedId !== undefined && payload?.operation && !isOver && (askedId === carriedId || hasArrived)) {
    requests.operation = carried(carriedId);
    isBusy = true;
  } else if (carriedId !== undefined && payload?.operation && askedId === carriedId) {
    // Over: it goes from the hub first. Without it there, a restart would take what is there for a new one.
    next = { ...application };
    delete next.operation;
    requests.operation = carried(carriedId);
    isBusy = true;
  } else if (asked && askedId !== undefined && !isTerminated) {
    requests.operation = { id: askedId, operation: asked };
  }
  if (isTerminated && askedId !== carriedId) {
    next = withdrawn(application, now);
  }
  const isBeginning = asked !== undefined && askedId === undefined;
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
 * What the work brings next; undefined when it must stay as it is while an operation is under way. The end of that operation
 * does not wait for it, and brings nothing else.
 */
export function nextPayload(
  { requests, isBusy }: Pick<PullRequestPlan, 'requests' | 'isBusy'>,
  current: Payload | undefined,
  wanted: Payload,
): Payload | undefined {
  if (current === undefined) {
    return wanted;
  }
  if (requests.operation?.isEnding && current.status === undefined) {
    const annotations = { ...current.metadata.annotations, [pullKeys.operation]: endingMark(requests.operation.id) };
    return { ...current, metadata: { ...current.metadata, annotations }, status: endingStatus };
  }
  return isBusy && !isEqual(current, wanted) ? undefined : wanted;
}

/** An operation that nobody has looked at yet gets its name, and shows as running, as Argo CD itself would show it. */
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

/** Whether someone on the hub wants the operation that is there to end; the state may still be of an earlier one. */
function isTerminatedOnHub({ operation, status }: PullApplication): boolean {
  const state = status?.operationState;
  const id = operationId(operation);
  return id !== undefined && state?.phase === terminating && operationId(state.operation) === id;
}

/** An operation that was terminated before its cluster could hear of it. */
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
