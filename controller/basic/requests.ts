import { rfc3339 } from '../../lib/kube/index.ts';
import type { Feedback } from './feedback.ts';
import { keys } from './names.ts';
import type { Application, Payload } from './resources.ts';
import { idOf, named, type Requests } from './work.ts';

/** What is to be done about an operation and a refresh that someone asked for on the hub. */
export interface RequestPlan {
  /** The Application as it has to be written before its work: a request gets its name, or has been carried out. */
  readonly application?: Application;
  /** An operation gets its name by that: nothing is sent before. */
  readonly isBeginning: boolean;
  /** What the copy brings. */
  readonly requests: Requests;
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
 */
export function planRequests(
  application: Application,
  { payload, feedback }: Carrier,
  newId: string,
  now: Date,
): RequestPlan {
  const asked = application.operation;
  const askedId = idOf(asked);
  const carriedId = payload?.metadata.annotations?.[keys.operation];
  const hasArrived = carriedId !== undefined && feedback.operationArrived === carriedId;
  const isOver = hasArrived && feedback.operationPending !== carriedId;

  let next: Application | undefined;
  const requests: { -readonly [K in keyof Requests]: Requests[K] } = {};
  let isBusy = false;
  if (carriedId !== undefined && payload?.operation && !isOver && (askedId === carriedId || hasArrived)) {
    requests.operation = { id: carriedId, operation: payload.operation };
    isBusy = true;
  } else if (carriedId !== undefined && payload?.operation && askedId === carriedId) {
    // Over: it goes from the hub first. Without it there, a restart would take what is there for a new one.
    next = { ...application };
    delete next.operation;
    requests.operation = { id: carriedId, operation: payload.operation };
    isBusy = true;
  } else if (asked && askedId !== undefined) {
    requests.operation = { id: askedId, operation: asked };
  }
  const isBeginning = asked !== undefined && askedId === undefined;
  if (isBeginning) next = begun(application, newId, now);

  const how = application.metadata.annotations?.[keys.refresh];
  if (how !== undefined) {
    const carried = payload?.metadata.annotations ?? {};
    const id = carried[keys.refreshRequest];
    const isSame = id !== undefined && carried[keys.refresh] === how;
    requests.refresh = { id: isSame ? id : (application.metadata.resourceVersion ?? newId), how };
    if (isSame && feedback.refreshArrived === id && feedback.refreshPending === undefined) {
      next = withoutRefresh(next ?? application);
    }
  }
  return { requests, isBusy, isBeginning, ...(next ? { application: next } : {}) };
}

/** An operation that nobody has looked at yet gets its name, and shows as running, as Argo CD itself would show it. */
function begun(application: Application, id: string, now: Date): Application {
  const operation = named(application.operation ?? {}, id);
  const cluster = application.metadata.annotations?.[keys.cluster];
  const operationState = {
    phase: 'Running',
    message: `waiting for managed cluster ${cluster} to begin`,
    operation,
    startedAt: rfc3339(now),
  };
  return { ...application, operation, status: { ...application.status, operationState } };
}

function withoutRefresh(application: Application): Application {
  const { [keys.refresh]: _, ...annotations } = application.metadata.annotations ?? {};
  return { ...application, metadata: { ...application.metadata, annotations } };
}
