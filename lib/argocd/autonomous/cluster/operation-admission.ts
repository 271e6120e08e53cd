import { isEqual, isMap } from '../../../base/index.ts';
import type { Application } from '../../application.ts';

/** Which revisions an operation of the hub may name: those that the cluster knows of the Application, or any. */
export type OperationRevisions = 'known' | 'any';

/** Why an operation of the hub is not for this cluster. */
export interface OperationObjection {
  readonly message: string;
  /** Argo CD may not have seen the revision yet: argocd-server names what the target revision means at that moment. */
  readonly mayBeKnownSoon: boolean;
}

/** The fields of Argo CD's Operation and SyncOperation by which a person says how to sync, and not what. */
const operationFields: ReadonlySet<string> = new Set(['sync', 'retry', 'info', 'initiatedBy']);
const syncFields: ReadonlySet<string> = new Set([
  'revision',
  'revisions',
  'source',
  'sources',
  'prune',
  'dryRun',
  'syncStrategy',
  'syncOptions',
  'resources',
  'autoHealAttemptsCount',
]);

/** The field of a source that Argo CD keeps as it is written, empty parts too. */
const keptAsWritten = 'valuesObject';

/** Characters of an operation as JSON, beside the source that the cluster has itself: it is stored there with the Application. */
const longestOperation = 32 * 1024;

/** Attempts that the hub may ask for. Argo CD's UI proposes 2. */
const mostRetries = 50;

/** A hostile revision may be long. */
const longestShown = 100;

/**
 * Why an operation that was asked for on the hub is not set here; undefined: it may be. The cluster owns its Applications, so the
 * hub chooses among what the cluster has: the sources of the spec and of the history, and their revisions. Argo CD's application
 * controller itself carries out any manifests, source and revision that stand in an operation; argocd-server alone asks for a right.
 * It carries out any number of attempts, too.
 */
export function objectionToOperation(
  operation: NonNullable<Application['operation']>,
  local: Application,
  revisions: OperationRevisions,
): OperationObjection | undefined {
  const sync = operation.sync ?? {};
  if (!isMap(sync)) {
    return never('operation.sync is not an object');
  }
  const field =
    fieldBeyond(operation, operationFields, 'operation.') ?? fieldBeyond(sync, syncFields, 'operation.sync.');
  if (field !== undefined) {
    return never(`this cluster takes no ${field} from the hub: change its Application there`);
  }
  const source = knownSource(sync, local);
  if (source === undefined) {
    return never(
      'this cluster takes no other source from the hub than those of the spec and the history: change its Application there',
    );
  }
  const odd = oddRevision(sync) ?? oddRetry(operation.retry, local);
  if (odd !== undefined) {
    return never(odd);
  }
  const length = JSON.stringify(operation).length - JSON.stringify(source).length;
  if (length > longestOperation) {
    return never(
      `the operation has ${length} characters beside its source, and this cluster takes ${longestOperation} from the hub: name fewer resources, or shorten operation.info`,
    );
  }
  const unknown = revisions === 'any' ? undefined : revisionsOf(sync).find((one) => !revisionsKnown(local).has(one));
  return unknown === undefined
    ? undefined
    : {
        message: `neither the spec nor the history names revision ${JSON.stringify(shortened(unknown))}: sync to a revision that this cluster knows, or start its agent with --operation-revisions=any`,
        mayBeKnownSoon: true,
      };
}

function never(message: string): OperationObjection {
  return { message, mayBeKnownSoon: false };
}

function fieldBeyond(map: Readonly<Record<string, unknown>>, known: ReadonlySet<string>, at: string) {
  const field = Object.keys(map).find((key) => !known.has(key) && essence(map[key]) !== undefined);
  return field === undefined ? undefined : `${at}${shortened(field)}`;
}

/** The source of the spec or the history that an operation names; one that names none has no part of its own. */
function knownSource(sync: Readonly<Record<string, unknown>>, local: Application): Sources | undefined {
  // A rollback to several sources has an empty one beside them.
  const asked = { source: essence(sync.source), sources: essence(sync.sources) };
  if (asked.source === undefined && asked.sources === undefined) {
    return {};
  }
  const known = [sourcesOfSpec(local.spec), ...historyOf(local)].find(
    ({ source, sources }) =>
      (asked.source === undefined || isEqual(asked.source, essence(source))) &&
      (asked.sources === undefined || isEqual(asked.sources, essence(sources))),
  );
  return (
    known && {
      ...(asked.source === undefined ? {} : { source: known.source }),
      ...(asked.sources === undefined ? {} : { sources: known.sources }),
    }
  );
}

/** What is no text is no revision that could be known, and a later version of Argo CD might read it. */
function oddRevision({ revision, revisions }: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof (revision ?? '') !== 'string') {
    return 'operation.sync.revision is not a text';
  }
  const list = revisions ?? [];
  return Array.isArray(list) && list.every((one) => typeof one === 'string')
    ? undefined
    : 'operation.sync.revisions is not a list of texts';
}

/** A retry without end would keep the cluster busy; what the spec says its owner has chosen. */
function oddRetry(retry: unknown, { spec }: Application): string | undefined {
  const { syncPolicy } = spec;
  const limit = isMap(retry) ? (retry.limit ?? 0) : retry === undefined || retry === null ? 0 : undefined;
  const isBounded = Number.isInteger(limit) && Number(limit) >= 0 && Number(limit) <= mostRetries;
  return isBounded || isEqual(essence(retry), essence(isMap(syncPolicy) ? syncPolicy.retry : undefined))
    ? undefined
    : `operation.retry.limit is no number from 0 to ${mostRetries}: ask for fewer attempts, or for those of spec.syncPolicy.retry`;
}

interface Sources {
  readonly source?: unknown;
  readonly sources?: unknown;
}

/** What argocd-server writes into the operation of a plain sync: with a hydrator, the branch that this writes to. */
function sourcesOfSpec({ source, sources, sourceHydrator }: Application['spec']): Sources {
  if (!isMap(sourceHydrator)) {
    return { source, sources };
  }
  const { drySource, syncSource } = sourceHydrator;
  const [dry, written] = [isMap(drySource) ? drySource : {}, isMap(syncSource) ? syncSource : {}];
  const repoURL = written.repoURL || dry.repoURL;
  return { source: { repoURL, path: written.path, targetRevision: written.targetBranch }, sources };
}

function revisionsOf({ revision, revisions }: Readonly<Record<string, unknown>>): string[] {
  const list = Array.isArray(revisions) ? revisions : [];
  // Without one it is that of the source.
  return [revision, ...list].filter((one) => typeof one === 'string').filter((one) => one !== '');
}

/** Revisions that the spec names, that it meant when Argo CD last compared, and that were deployed. */
function revisionsKnown(local: Application): Set<string> {
  const { source, sources } = sourcesOfSpec(local.spec);
  const targets = [source, ...(Array.isArray(sources) ? sources : [])]
    .filter(isMap)
    .map(({ targetRevision }) => targetRevision || 'HEAD');
  const compared = local.status?.sync;
  return new Set([
    ...targets.filter((one) => typeof one === 'string'),
    ...(isMap(compared) ? revisionsOf(compared) : []),
    ...historyOf(local).flatMap(revisionsOf),
  ]);
}

function historyOf({ status }: Application): Readonly<Record<string, unknown>>[] {
  return Array.isArray(status?.history) ? status.history.filter(isMap) : [];
}

/** A value without what Go leaves out: argocd-server writes a source otherwise than a person did. */
function essence(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.length === 0 ? undefined : value.map(essence);
  }
  if (!isMap(value)) {
    return value || undefined;
  }
  const entries = Object.entries(value)
    .map(([key, one]) => [key, key === keptAsWritten ? one : essence(one)] as const)
    .filter(([, one]) => one !== undefined);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function shortened(text: string): string {
  return text.length > longestShown ? `${text.slice(0, longestShown)}…` : text;
}
