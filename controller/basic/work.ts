import { ownerOptions, annotations as syncAnnotations, withoutOwner } from '../../lib/argocd/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import { isArgoCdFinalizer, pullKeys, pullWorkName } from './names.ts';
import {
  endingStatus,
  type Operation,
  type Payload,
  type PullApplication,
  type PullConfig,
  type PullWork,
} from './resources.ts';
import type { PullTarget } from './target.ts';

/** One-time requests that a copy carries: an operation and a refresh. */
export interface CopyRequests {
  readonly operation?: { readonly id: string; readonly operation: Operation; readonly isEnding?: boolean };
  readonly refresh?: { readonly id: string; readonly how: string };
}

/** JSON paths of the copy's status feedback, by feedback name: argocd-pull-integration's five, then our own. */
export const feedbackPaths = {
  healthStatus: '.status.health.status',
  syncStatus: '.status.sync.status',
  operationStateStartedAt: '.status.operationState.startedAt',
  operationStatePhase: '.status.operationState.phase',
  syncRevision: '.status.sync.revision',
  healthMessage: '.status.health.message',
  healthLastTransitionTime: '.status.health.lastTransitionTime',
  operationStateFinishedAt: '.status.operationState.finishedAt',
  operationStateMessage: '.status.operationState.message',
  operationStateRevision: '.status.operationState.syncResult.revision',
  operationStateUsername: '.status.operationState.operation.initiatedBy.username',
  operationStateAutomated: '.status.operationState.operation.initiatedBy.automated',
  conditionType: '.status.conditions[0].type',
  conditionMessage: '.status.conditions[0].message',
  historyId: '.status.history[-1:].id',
  historyRevision: '.status.history[-1:].revision',
  historyDeployedAt: '.status.history[-1:].deployedAt',
  historyDeployStartedAt: '.status.history[-1:].deployStartedAt',
  // Which requests have arrived, which are still pending, and which operation started last.
  operationArrived: annotationPath(pullKeys.operation),
  operationPending: `.operation.info[?(@.name=="${pullKeys.operation}")].value`,
  operationTaken: `.status.operationState.operation.info[?(@.name=="${pullKeys.operation}")].value`,
  refreshArrived: annotationPath(pullKeys.refreshRequest),
  refreshPending: annotationPath(pullKeys.refresh),
} as const;

/** Name of a feedback value. */
export type FeedbackName = keyof typeof feedbackPaths;

function annotationPath(key: string): string {
  return `.metadata.annotations.${key.replaceAll('.', '\\.')}`;
}

const notCopied = new Set<string>([
  // What kubectl keeps beside the hub's Application, which is not the copy.
  syncAnnotations.lastApplied,
  // An Application's own compare options are for itself.
  ...ownerOptions.filter((key) => key !== 'argocd.argoproj.io/compare-options'),
  pullKeys.cluster,
  pullKeys.appNamespace,
  wellKnown.skipReconcileAnnotation,
  pullKeys.destinationName,
  pullKeys.destinationServer,
  // Requests travel as CopyRequests. As plain annotations they would be repeated with every change of the copy.
  pullKeys.refresh,
  pullKeys.operation,
  pullKeys.refreshRequest,
]);

/**
 * The Application as delivered to its cluster. The hub's Application is not changed. The copy names no Application of the hub as
 * its owner, and has no finalizer of others: nobody on the cluster would take it off.
 */
export function payloadFor(application: PullApplication, target: PullTarget, requests: CopyRequests = {}): Payload {
  const { metadata, spec } = withoutOwner(application, () => false);
  const finalizers = metadata.finalizers?.filter(isArgoCdFinalizer) ?? [];
  const labels = omit(metadata.labels, new Set([pullKeys.pull]));
  const annotations = omit(metadata.annotations, notCopied);
  const set = hostingSetOf(application);
  if (set !== undefined) {
    labels[pullKeys.applicationSet] = 'true';
    annotations[pullKeys.hostingApplicationSet] = set;
  }
  const { operation, refresh } = requests;
  if (operation) {
    annotations[pullKeys.operation] = operation.isEnding ? endingMark(operation.id) : operation.id;
  }
  if (refresh) {
    annotations[pullKeys.refreshRequest] = refresh.id;
    annotations[pullKeys.refresh] = refresh.how;
  }
  return {
    apiVersion: 'argoproj.io/v1alpha1',
    kind: 'Application',
    metadata: {
      name: target.name,
      namespace: target.namespace,
      ...(Object.keys(labels).length > 0 ? { labels } : {}),
      ...(Object.keys(annotations).length > 0 ? { annotations } : {}),
      ...(finalizers.length > 0 ? { finalizers } : {}),
    },
    spec: { ...spec, destination: destinationOf(application) },
    ...(operation ? { operation: named(operation.operation, operation.id) } : {}),
    ...(operation?.isEnding ? { status: endingStatus } : {}),
  };
}

/**
 * The ManifestWork that delivers a copy.
 * @param name default: {@link pullWorkName}
 */
export function workFor(application: PullApplication, target: PullTarget, payload: Payload, name?: string): PullWork {
  const { namespace, name: hubName } = application.metadata;
  const set = hostingSetOf(application);
  return {
    metadata: {
      namespace: target.cluster,
      name: name ?? pullWorkName(application.metadata),
      labels: { [pullKeys.pull]: 'true', ...(set === undefined ? {} : { [pullKeys.applicationSet]: 'true' }) },
      annotations: {
        [pullKeys.hubNamespace]: namespace ?? '',
        [pullKeys.hubName]: hubName,
        ...(set === undefined ? {} : { [pullKeys.hostingApplicationSet]: set }),
      },
    },
    spec: { workload: { manifests: [payload] }, manifestConfigs: [configFor(payload)] },
  };
}

function configFor({ metadata: { namespace, name } }: Payload): PullConfig {
  const rule = (entries: [string, string][]) => ({
    type: 'JSONPaths' as const,
    jsonPaths: entries.map(([key, path]) => ({ name: key, path })),
  });
  const paths = Object.entries(feedbackPaths);
  return {
    resourceIdentifier: { group: 'argoproj.io', resource: 'applications', namespace, name },
    feedbackScrapeType: 'Watch',
    feedbackRules: [...paths.slice(0, 5).map((path) => rule([path])), rule(paths.slice(5))],
    updateStrategy: {
      type: 'ServerSideApply',
      serverSideApply: {
        force: true,
        ignoreFields: [{ condition: 'OnSpokeChange', jsonPaths: ['.operation'] }],
      },
    },
  };
}

function destinationOf({ metadata: { annotations = {} }, spec }: PullApplication) {
  const name = annotations[pullKeys.destinationName] ?? '';
  const server = annotations[pullKeys.destinationServer] ?? '';
  const isCustom = name !== '' || server !== '';
  return { ...spec?.destination, name, server: isCustom ? server : 'https://kubernetes.default.svc' };
}

/** The ApplicationSet that owns an Application, as `namespace/name`. */
function hostingSetOf({ metadata }: PullApplication): string | undefined {
  const owner = metadata.ownerReferences?.find(
    ({ apiVersion, kind }) => apiVersion === 'argoproj.io/v1alpha1' && kind.toLowerCase() === 'applicationset',
  );
  return owner && `${metadata.namespace ?? ''}/${owner.name}`;
}

/** The operation annotation of a copy that terminates the operation. It shows when that copy has arrived. */
export const endingMark = (id: string) => `${id}/end`;

/** The operation with an id in its `info`. */
export function named(operation: Operation, id: string): Operation {
  const others = (operation.info ?? []).filter(({ name }) => name !== pullKeys.operation);
  return { ...operation, info: [...others, { name: pullKeys.operation, value: id }] };
}

/** The id of an operation, as {@link named} set it. */
export function operationId(operation: Operation | undefined): string | undefined {
  return operation?.info?.find(({ name }) => name === pullKeys.operation)?.value;
}

/** Key (`namespace/name`) of the Application that a work delivers; undefined when its annotations are missing. */
export function applicationKeyOf({ metadata: { annotations = {} } }: PullWork): string | undefined {
  const [namespace, name] = [annotations[pullKeys.hubNamespace], annotations[pullKeys.hubName]];
  return namespace && name ? `${namespace}/${name}` : undefined;
}

function omit(map: Record<string, string> | undefined, left: ReadonlySet<string>): Record<string, string> {
  return Object.fromEntries(Object.entries(map ?? {}).filter(([key]) => !left.has(key)));
}
