import {
  digestOf,
  isEqual,
  type LabelCompletion,
  type MergePatch,
  mergedPatches,
  mergePatchBetween,
} from '../../../base/index.ts';
import type { Application } from '../../application.ts';
import { planLeave } from '../../leaving.ts';
import { planReport, type ReportContext } from '../../managed/status.ts';
import { annotations } from '../../names.ts';
import { isSameOperation } from '../../operation-state.ts';
import { giveBack, recordOf } from '../../taken-over.ts';
import type { Plan } from '../../writing/plan.ts';
import {
  fieldsOfMirror,
  fieldsOfSource,
  type MirrorFields,
  type MirrorPlace,
  mirrorAnnotations,
  mirroredUid,
  mirrorMarks,
  mirrorSpec,
  mirrorStatus,
  projectObjection,
} from '../mirror.ts';

/** An autonomous agent's last report of one of its Applications, and how far its mirror is. */
export interface DesiredMirror {
  /** UID of the agent's object. */
  readonly sourceUid: string;
  readonly fields: MirrorFields;
  /** Uid of the mirror; empty when there is none yet; undefined while it is not known. */
  readonly mirrorUid: string | undefined;
  /** Digest of the spec, but for the cluster's name, that the hub's API server made of ours: {@link digestOfSpec}. */
  readonly settledSpec: string | undefined;
  /** The Application of the hub that the mirror was before; undefined: none. An API server that goes back may have it without its record. */
  readonly record: string | undefined;
}

/** What is desired after a report of the agent. */
export function desiredMirrorAfter(source: Application, earlier: DesiredMirror | undefined): DesiredMirror {
  const sourceUid = source.metadata.uid ?? '';
  const fields = fieldsOfSource(source);
  const before = earlier?.sourceUid === sourceUid ? earlier : undefined;
  const isSettled = before !== undefined && isEqual(before.fields.spec, fields.spec);
  return {
    sourceUid,
    fields,
    mirrorUid: before?.mirrorUid,
    settledSpec: isSettled ? before.settledSpec : undefined,
    record: before?.record,
  };
}

/** After a start, a mirror is as desired until its agent reports something. */
export function desiredMirrorAsFound(mirror: Application, agent: string): DesiredMirror {
  return {
    sourceUid: mirroredUid(mirror),
    fields: fieldsOfMirror(mirror, agent),
    mirrorUid: mirror.metadata.uid,
    settledSpec: undefined,
    record: recordOn(mirror),
  };
}

/** The mirror is as desired: records what it looks like, to detect changes. Without one: it is waited for. */
export function settled(desired: DesiredMirror, mirror: Application | undefined): DesiredMirror {
  return mirror === undefined
    ? { ...desired, mirrorUid: '' }
    : {
        ...desired,
        mirrorUid: mirror.metadata.uid,
        settledSpec: digestOfSpec(mirror),
        record: recordOn(mirror),
      };
}

/**
 * Whether somebody else changed what the agent decides: spec, existence, or its marks. Labels and annotations are corrected
 * with the agent's next report, as by argocd-agent's principal.
 */
export function hasMirrorDrifted(mirror: Application, desired: DesiredMirror, place: MirrorPlace): boolean {
  if (mirror.metadata.uid !== desired.mirrorUid) {
    return desired.mirrorUid !== undefined;
  }
  return (
    mirror.metadata.deletionTimestamp !== undefined ||
    isUnstamped(mirror) ||
    mirroredUid(mirror) !== desired.sourceUid ||
    mirror.spec.destination?.name !== place.cluster ||
    !isSpecOf(mirror, desired, place)
  );
}

/** Whether a mirror has the spec that is desired, in a cluster of whatever name. An API server may drop or default fields of it. */
function isSpecOf(mirror: Application, desired: DesiredMirror, place: MirrorPlace): boolean {
  const { destination } = mirror.spec;
  return (
    digestOfSpec(mirror) === desired.settledSpec ||
    isEqual({ ...mirror.spec, destination: { ...destination, name: place.cluster } }, mirrorSpec(desired.fields, place))
  );
}

function digestOfSpec({ spec }: Application): string {
  return digestOf({ ...spec, destination: { ...spec.destination, name: '' } });
}

/** What somebody of the hub did to a mirror. */
export type MirrorChange = 'changed' | 'deleted';

/**
 * What others than the principal did to a mirror that is not as desired; undefined for a mirror that only is not there yet, or whose
 * cluster has another name now.
 */
export function foreignChange(
  mirror: Application | undefined,
  desired: DesiredMirror,
  place: MirrorPlace,
): MirrorChange | undefined {
  const { mirrorUid = '' } = desired;
  if (mirror === undefined || mirror.metadata.uid !== mirrorUid) {
    return mirrorUid === '' ? undefined : 'deleted';
  }
  if (mirror.metadata.deletionTimestamp !== undefined) {
    return 'deleted';
  }
  return isSpecOf(mirror, desired, place) ? undefined : 'changed';
}

/** What to make of an object in an agent's namespace that is nobody's mirror. */
export type MirrorAdoptionPolicy = 'always' | 'never';

/** The principal's settings for {@link planMirror}. */
export interface MirrorPlanOptions {
  readonly name: string;
  readonly place: MirrorPlace;
  readonly adoptionPolicy: MirrorAdoptionPolicy;
  /** The labels of a mirror, made of those that its agent's Application has. */
  readonly labelsOf: LabelCompletion;
  /** The time of this write, for its annotation. */
  readonly now: Date;
  /** The agent's report, if one is being processed: status, operation and answered triggers are taken from there. */
  readonly report?: { readonly source: Application; readonly context: ReportContext } | undefined;
}

/** Decides what to do with what stands where an agent's Application should be mirrored. */
export function planMirror(reported: DesiredMirror, mirror: Application | undefined, options: MirrorPlanOptions): Plan {
  const spec = mirrorSpec(reported.fields, options.place);
  const labels = options.labelsOf(reported.fields.labels);
  const objection = projectObjection(spec.project ?? '');
  if (objection !== undefined || labels === undefined) {
    return { action: 'refuse', message: `the agent's Application cannot be shown: ${objection ?? unselectable}` };
  }
  const desired = { ...reported, fields: { ...reported.fields, labels } };
  if (mirror === undefined) {
    return { action: 'create', object: newMirror(desired, options) };
  }
  const shown = mirroredUid(mirror);
  const isOurs = mirror.metadata.uid === desired.mirrorUid;
  if (shown === '' && !isOurs && !mayAdopt(mirror, options)) {
    const name = `${mirror.metadata.namespace}/${mirror.metadata.name}`;
    const message = `${name} on the hub is somebody's own Application, which hides the agent's of the same name: delete or rename it, or annotate it with ${annotations.adoptionPolicy}=always`;
    return { action: 'refuse', message };
  }
  if (mirror.metadata.deletionTimestamp !== undefined) {
    return release(mirror);
  }
  if (shown !== '' && shown !== desired.sourceUid && !isOurs && recordOn(mirror) === undefined) {
    // It shows another incarnation, whose requests are not this one's.
    return removal(mirror);
  }
  const patch = patchFor(desired, mirror, options);
  if (patch === undefined || shown !== '') {
    return patch === undefined ? { action: 'none' } : { action: 'update', patch, reason: 'changed' };
  }
  const record = isOurs ? desired.record : recordOf(mirror, contentOf(mirror));
  const recorded = record === undefined ? {} : { metadata: { annotations: { [annotations.takenOver]: record } } };
  return { action: 'update', patch: mergedPatches(patch, recorded), reason: isOurs ? 'changed' : 'adopted' };
}

/**
 * Decides what to do when an agent's Application is gone: the mirror of that one goes, without waiting for any finalizer;
 * one of another incarnation stays.
 * @param desired what was desired of the mirror, if it is that one's
 */
export function planMirrorDeletion(
  sourceUid: string,
  mirror: Application | undefined,
  desired: Pick<DesiredMirror, 'mirrorUid' | 'record'> | undefined,
): Plan {
  if (mirror === undefined || sourceUid === '') {
    return { action: 'none' };
  }
  const isMeant =
    mirroredUid(mirror) === sourceUid ||
    // One that was taken over has no marks any more when it was given back.
    (desired !== undefined && desired.record === undefined && mirror.metadata.uid === desired.mirrorUid);
  const record = recordOn(mirror);
  return isMeant
    ? planLeave(mirror, {
        finalizers: [],
        givenBack: record === undefined ? undefined : giveBack(mirror, contentOf(mirror), record, mirrorMarks),
      })
    : { action: 'none' };
}

/** What the hub's principal does not see would escape its limits. */
const unselectable = "no labels would match the principal's --label-selector: correct it";

function recordOn({ metadata }: Application): string | undefined {
  return metadata.annotations?.[annotations.takenOver];
}

function contentOf({ spec }: Application): { readonly spec: Application['spec'] } {
  return { spec };
}

/** Decides what to do with a mirror of which nothing is known: one that somebody deletes is released. */
export function planMirrorRelease(mirror: Application | undefined): Plan {
  return mirror?.metadata.deletionTimestamp === undefined || mirroredUid(mirror) === ''
    ? { action: 'none' }
    : release(mirror);
}

function removal(mirror: Application): Plan {
  if ((mirror.metadata.finalizers ?? []).length > 0) {
    return release(mirror);
  }
  return mirror.metadata.deletionTimestamp === undefined
    ? { action: 'delete', uid: mirror.metadata.uid ?? '', propagation: 'Background' }
    : { action: 'wait' };
}

/** Nothing on the hub has to be cleaned up for a mirror, so no finalizer may hold it. */
function release(mirror: Application): Plan {
  if ((mirror.metadata.finalizers ?? []).length === 0) {
    return { action: 'wait' };
  }
  return { action: 'update', reason: 'changed', patch: { metadata: { uid: mirror.metadata.uid, finalizers: null } } };
}

function newMirror({ sourceUid, fields }: DesiredMirror, { name, place, now }: MirrorPlanOptions): Application {
  const status = mirrorStatus(fields, place);
  return {
    apiVersion: 'argoproj.io/v1alpha1',
    kind: 'Application',
    metadata: {
      name,
      namespace: place.agent,
      ...(Object.keys(fields.labels).length > 0 ? { labels: { ...fields.labels } } : {}),
      annotations: {
        ...mirrorAnnotations(fields, sourceUid, undefined),
        ...reportedOperation(fields),
        [annotations.lastUpdated]: now.toISOString(),
      },
      ...(fields.finalizers.length > 0 ? { finalizers: [...fields.finalizers] } : {}),
    },
    spec: mirrorSpec(fields, place),
    ...(Object.keys(status).length > 0 ? { status } : {}),
  };
}

function patchFor(desired: DesiredMirror, mirror: Application, options: MirrorPlanOptions): MergePatch | undefined {
  const { fields, sourceUid } = desired;
  const { place, now, report } = options;
  const { [annotations.lastUpdated]: _, ...present } = mirror.metadata.annotations ?? {};
  const answer = report && planReport(mirror, asReport(report.source, fields, place), report.context);
  const isOthers =
    report === undefined && (mirror.metadata.uid !== desired.mirrorUid || isOfOlderKnowledge(mirror, fields));
  const tellsOperation = isOthers || report !== undefined;
  const status = isOthers ? mergePatchBetween(mirror.status, mirrorStatus(fields, place)) : undefined;
  const metadata: Record<string, unknown> = {
    ...mergePatchBetween(
      { labels: mirror.metadata.labels ?? {}, annotations: present },
      {
        labels: fields.labels,
        annotations: {
          ...mirrorAnnotations(fields, sourceUid, mirror),
          ...(tellsOperation &&
            !(leavesRequest(mirror, answer) && ranFor(mirror, fields)) &&
            reportedOperation(fields)),
        },
      },
    ),
    ...(isEqual(mirror.metadata.finalizers ?? [], fields.finalizers) ? {} : { finalizers: fields.finalizers }),
  };
  const isAsMade = mirror.spec.destination?.name === place.cluster && digestOfSpec(mirror) === desired.settledSpec;
  const spec = isAsMade ? undefined : mergePatchBetween(mirror.spec, mirrorSpec(fields, place));
  const isEmpty =
    Object.keys(metadata).length === 0 && spec === undefined && answer === undefined && status === undefined;
  if (isEmpty && !isUnstamped(mirror)) {
    return undefined;
  }
  const answered = answer?.metadata as { readonly annotations?: object } | undefined;
  return {
    ...answer,
    metadata: {
      ...metadata,
      ...answered,
      uid: mirror.metadata.uid,
      annotations: {
        ...(metadata.annotations as object | undefined),
        ...answered?.annotations,
        [annotations.lastUpdated]: now.toISOString(),
      },
    },
    ...(spec === undefined ? {} : { spec }),
    ...(status === undefined ? {} : { status }),
  };
}

/**
 * Whether another principal wrote the mirror last, with an older report: one that does not know yet that this one serves the agent.
 * While an operation that a user asked for stands there, the mark may be older for another reason: see {@link ranFor}.
 */
function isOfOlderKnowledge({ metadata, operation }: Application, fields: MirrorFields): boolean {
  const told = reportedOperation(fields)[annotations.reportedOperation];
  return operation === undefined && metadata.annotations?.[annotations.reportedOperation] !== told;
}

/** Whether an operation that a user asked for stands on the mirror after this answer. */
function leavesRequest(mirror: Application, answer: MergePatch | undefined): boolean {
  return mirror.operation !== undefined && answer?.operation === undefined;
}

/**
 * Whether what the agent tells of is that operation. While the request stands it will be asked again, perhaps by another principal:
 * the mark has to say then that nobody noted it.
 */
function ranFor({ operation }: Application, { status }: MirrorFields): boolean {
  return isSameOperation(status.operationState?.operation, operation);
}

/** The mark by which the agent knows, when an operation is asked of it again, that it carried out this one and nobody noted that. */
function reportedOperation({ status }: MirrorFields): Record<string, string> {
  const { startedAt } = status.operationState ?? {};
  return { [annotations.reportedOperation]: typeof startedAt === 'string' ? startedAt : '' };
}

/** Whether it lacks the mark by which it is not taken for an Application that its user wants on a cluster. */
function isUnstamped({ metadata }: Application): boolean {
  return metadata.annotations?.[annotations.lastUpdated] === undefined;
}

/** The agent's object as the status rules take it: with the status that the mirror is to have. */
function asReport(source: Application, fields: MirrorFields, place: MirrorPlace): Application {
  return { ...source, status: mirrorStatus(fields, place) };
}

function mayAdopt(mirror: Application, { adoptionPolicy }: MirrorPlanOptions): boolean {
  const own = mirror.metadata.annotations?.[annotations.adoptionPolicy];
  return (own === 'always' || own === 'never' ? own : adoptionPolicy) === 'always';
}
