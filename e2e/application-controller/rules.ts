import { type Application, annotations } from '../../lib/argocd/index.ts';
import { isEqual, type MergePatch, mergePatchBetween } from '../../lib/base/index.ts';

// What Argo CD's application controller writes for a state of an Application (3.2: controller/appcontroller.go, sync.go and
// state.go). Times are RFC 3339.

/** The finalizer with which Argo CD removes what an Application deployed before the object may go. */
export const resourcesFinalizer = 'resources-finalizer.argocd.argoproj.io';

/** Argo CD's own finalizers, in the order in which it takes them away; each takes one write. */
const finalizerOrder = [
  ['pre-delete-finalizer.argocd.argoproj.io'],
  ['pre-delete-finalizer.argocd.argoproj.io/cleanup'],
  [resourcesFinalizer, `${resourcesFinalizer}/foreground`, `${resourcesFinalizer}/background`],
  ['post-delete-finalizer.argocd.argoproj.io'],
  ['post-delete-finalizer.argocd.argoproj.io/cleanup'],
];

/** What a status answers. */
const requests: readonly string[] = [
  annotations.refresh,
  annotations.refreshTimestamp,
  annotations.hydrate,
  annotations.hydrateTimestamp,
];

/** `spec.revisionHistoryLimit` unless it is set. */
const defaultHistoryLimit = 10;

interface Operation {
  readonly initiatedBy?: object;
  readonly sync?: { readonly dryRun?: boolean; readonly resources?: readonly object[] };
}

interface Deployed {
  readonly id: number;
  readonly revision: string;
}

/** Whether Argo CD takes an operation for one that it has begun. It goes by the phase alone. */
export function isOperating({ status }: Application): boolean {
  const { phase } = status?.operationState ?? {};
  return phase !== undefined && !['Succeeded', 'Failed', 'Error'].includes(phase);
}

/**
 * The begin of the operation that is asked for. It is merged into the state of the one before, so that the message and the
 * result of that one stay until the end.
 */
export function beginOperation({ operation, status }: Application, at: string): MergePatch {
  const hasFormerEnd = status?.operationState?.finishedAt !== undefined;
  const begun = { phase: 'Running', operation, startedAt: at, ...(hasFormerEnd && { finishedAt: null }) };
  return { status: { operationState: begun } };
}

/**
 * The end of the operation that was begun: it has succeeded, or has failed if somebody terminated it. A full sync is written
 * into the history, here with the same write; Argo CD uses one for each.
 * @param revision the commit that was deployed
 */
export function endOperation({ spec, status = {} }: Application, at: string, revision: string): MergePatch {
  const { operationState = {} } = status;
  const { source } = spec;
  const isTerminated = operationState.phase === 'Terminating';
  const { sync, initiatedBy = {} } = (operationState.operation ?? {}) as Operation;
  const isFull = sync?.dryRun !== true && (sync?.resources ?? []).length === 0;
  const history = historyOf(status);
  const limit = (spec.revisionHistoryLimit as number | undefined) ?? defaultHistoryLimit;
  const deployed = {
    id: (history.at(-1)?.id ?? -1) + 1,
    revision,
    deployStartedAt: operationState.startedAt,
    deployedAt: at,
    initiatedBy,
    ...(source !== undefined && { source }),
  };
  return {
    operation: null,
    status: {
      operationState: {
        phase: isTerminated ? 'Failed' : 'Succeeded',
        message: isTerminated ? 'Operation terminated' : 'successfully synced (all tasks run)',
        finishedAt: at,
        syncResult: { revision, ...(source !== undefined && { source }) },
      },
      ...(!isTerminated && isFull && { history: limit > 0 ? [...history, deployed].slice(-limit) : [] }),
    },
  };
}

/**
 * What a comparison of Git and cluster changes; undefined when none is due. One is due when it is asked for by annotation, when
 * there was none, when an operation has ended since, and when it would find something else than the last one.
 * @param revision the commit that the spec means. What was deployed last is on the cluster
 */
export function compare(application: Application, at: string, revision: string): MergePatch | undefined {
  const { metadata, spec, status = {} } = application;
  const { source, destination } = spec;
  const isDeployed = historyOf(status).at(-1)?.revision === revision;
  const sync = { status: isDeployed ? 'Synced' : 'OutOfSync', revision, comparedTo: { source, destination } };
  const { reconciledAt } = status as { reconciledAt?: string };
  const finishedAt = status.operationState?.finishedAt as string | undefined;
  const isOlder = reconciledAt === undefined || (finishedAt !== undefined && reconciledAt < finishedAt);
  if (isEqual(status.sync, sync) && !isOlder && metadata.annotations?.[annotations.refresh] === undefined) {
    return undefined;
  }
  return report(application, { sync, health: status.health?.status ?? 'Healthy' }, at);
}

/** A new status. It answers a refresh, and dates a change of health. */
export function report(
  { metadata, status = {} }: Application,
  found: { readonly sync?: object; readonly health: string },
  at: string,
): MergePatch {
  const { sync = status.sync, health } = found;
  const lastTransitionTime = health === status.health?.status ? status.health.lastTransitionTime : at;
  const next = {
    ...status,
    ...(sync !== undefined && { sync }),
    health: { status: health, ...(lastTransitionTime !== undefined && { lastTransitionTime }) },
    reconciledAt: at,
  };
  const asked = Object.keys(metadata.annotations ?? {}).filter((key) => requests.includes(key));
  const answered = Object.fromEntries(asked.map((key) => [key, null]));
  return {
    ...(asked.length > 0 && { metadata: { annotations: answered } }),
    ...mergePatchBetween({ status }, { status: next }),
  };
}

/** The next of Argo CD's own finalizers is taken away; undefined when none is left. Those of others stay. */
export function takeFinalizer({ metadata }: Application): MergePatch | undefined {
  const { finalizers = [] } = metadata;
  const taken = finalizerOrder.find((one) => finalizers.some((each) => one.includes(each)));
  return taken && { metadata: { finalizers: finalizers.filter((each) => !taken.includes(each)) } };
}

/** Whether Argo CD has to remove what the Application deployed before the object may go. */
export function hasResourcesFinalizer({
  metadata,
}: {
  readonly metadata: { readonly finalizers?: readonly string[] | undefined };
}): boolean {
  return (metadata.finalizers ?? []).some(
    (one) => one === resourcesFinalizer || one.startsWith(`${resourcesFinalizer}/`),
  );
}

/** Whether the next write of {@link takeFinalizer} comes after Argo CD has removed what the Application deployed. */
export function removesWorkload(application: Application): boolean {
  const left = takeFinalizer(application)?.metadata as Application['metadata'] | undefined;
  return left !== undefined && hasResourcesFinalizer(application) && !hasResourcesFinalizer({ metadata: left });
}

const historyOf = (status: object) => ((status as { history?: Deployed[] }).history ?? []) as readonly Deployed[];
