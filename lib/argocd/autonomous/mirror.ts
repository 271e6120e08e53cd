import { digestOf, wellKnown } from '../../base/index.ts';
import type { Application, ApplicationSpec, ApplicationStatus } from '../application.ts';
import { withoutPrincipalConditions } from '../managed/status.ts';
import { annotations, skipSyncLabel } from '../names.ts';
import { ownerAnnotations, ownerLabels, ownerOptions } from '../owner-marks.ts';
import { isSkipped } from '../routing.ts';
import { triggers, triggersOf } from '../triggers.ts';

/** Where a mirror stands: whose Application it shows, and what the hub calls that agent's cluster. */
export interface MirrorPlace {
  readonly agent: string;
  /** Name of the cluster in the hub's Argo CD. */
  readonly cluster: string;
}

/**
 * What a mirror takes over of an autonomous agent's Application, in a form that is equal on both sides: nothing in it says
 * where the object is. Requests (`operation`, triggers) are not part of it.
 */
export interface MirrorFields {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly finalizers: readonly string[];
  /** The project as the agent calls it; the destination without the cluster. */
  readonly spec: ApplicationSpec;
  /** Child Applications without their namespace, and without the conditions that the principal writes. */
  readonly status: ApplicationStatus;
}

/** Longest name of a Kubernetes object; an AppProject of a longer one cannot exist. */
const longestName = 253;

const triggerAnnotations: readonly string[] = triggers.flat();

/** Annotations that mean something only on the side where they are, or that the principal adds. */
const localToOneSide: ReadonlySet<string> = new Set([
  annotations.sourceUid,
  annotations.principalUid,
  annotations.namespaceRemapped,
  annotations.lastUpdated,
  annotations.lastApplied,
  annotations.notified,
  ...ownerAnnotations,
  ...ownerOptions,
  annotations.takenOver,
  annotations.adoptionPolicy,
  annotations.nudgedAt,
  annotations.waitingOperation,
  annotations.reportedOperation,
  annotations.release,
  wellKnown.skipReconcileAnnotation,
  ...triggerAnnotations,
]);

/** Annotations of a mirror that the agent's object does not decide. */
const ownOfMirror: readonly string[] = [
  annotations.notified,
  annotations.adoptionPolicy,
  annotations.lastApplied,
  annotations.reportedOperation,
  annotations.takenOver,
  ...triggerAnnotations,
];

/** The annotations that an Application of the hub has only as a mirror. */
export const mirrorMarks: readonly string[] = [
  annotations.sourceUid,
  annotations.lastUpdated,
  annotations.reportedOperation,
  annotations.takenOver,
];

/** Finalizers by which an API server carries out a deletion there; elsewhere they would block one. */
const deletionFinalizers: ReadonlySet<string> = new Set(['foregroundDeletion', 'orphan']);

/**
 * The project of a mirror: that of the agent's Application behind the agent's name, always, as argocd-agent's principal does
 * it. No project means `default` to Argo CD; the original makes `<agent>-` of it, which is no name at all.
 */
export function mirrorProject(agent: string, project: string | undefined): string {
  return `${agent}-${project || 'default'}`;
}

/** What makes a project name impossible on the hub; undefined when nothing does. */
export function projectObjection(name: string): string | undefined {
  return name.length <= longestName
    ? undefined
    : `its project would be called ${name} on the hub, and ${name.length} characters are more than the ${longestName} that a name may have: give the project or the agent a shorter name`;
}

/** The fields of an Application as the agent's cluster has it. */
export function fieldsOfSource(source: Application): MirrorFields {
  const project = source.spec.project || 'default';
  return fieldsOf(source, { ...source.spec, project });
}

/** The fields of a mirror: what the agent's Application must be like, if the mirror is right. */
export function fieldsOfMirror(mirror: Application, agent: string): MirrorFields {
  return fieldsOf(mirror, { ...mirror.spec, project: sourceProject(mirror, agent) });
}

/**
 * Equal for an agent's Application and a mirror that shows it: either side can report what it has without sending it.
 * Requests count, so that an answered one is reported again.
 */
export function mirrorDigest(fields: MirrorFields, object: Application): string {
  return digestOf([fields, object.operation ?? null, triggersOf(object)]);
}

/** The spec of a mirror with these fields. */
export function mirrorSpec(fields: MirrorFields, { agent, cluster }: MirrorPlace): ApplicationSpec {
  return {
    ...fields.spec,
    project: mirrorProject(agent, fields.spec.project),
    destination: { ...fields.spec.destination, name: cluster },
  };
}

/** The status of a mirror with these fields: its child Applications are where their mirrors are. */
export function mirrorStatus(fields: MirrorFields, { agent }: Pick<MirrorPlace, 'agent'>): ApplicationStatus {
  return withChildrenIn(fields.status, agent);
}

/**
 * The annotations of a mirror with these fields, next to those that are its own. An application controller of the hub
 * skips a mirror: the cluster owns the Application.
 */
export function mirrorAnnotations(
  fields: MirrorFields,
  sourceUid: string,
  mirror: Application | undefined,
): Record<string, string> {
  const result: Record<string, string> = {
    ...fields.annotations,
    [annotations.sourceUid]: sourceUid,
    [wellKnown.skipReconcileAnnotation]: 'true',
  };
  for (const key of ownOfMirror) {
    const value = mirror?.metadata.annotations?.[key];
    if (value !== undefined) {
      result[key] = value;
    }
  }
  return result;
}

/**
 * The UID of the agent's Application that an Application in the agent's namespace of the hub shows; empty when it is no
 * mirror. One that somebody took the source UID from is known by the time stamp that only principals write: it passes for
 * the mirror of something that its agent does not have, until it is known better.
 */
export function mirroredUid({ metadata }: Application): string {
  const marks = metadata.annotations;
  const isStripped = marks?.[annotations.lastUpdated] !== undefined;
  return marks?.[annotations.sourceUid] || (isStripped ? (metadata.uid ?? '') : '');
}

/** Whether a mirror has its mark. */
export function isMarked({ metadata }: Application): boolean {
  return (metadata.annotations?.[annotations.sourceUid] ?? '') !== '';
}

/** Whether an application controller of the hub skips a mirror. Those that argocd-agent's principal made, it does not. */
export function isSkippedOnHub({ metadata }: Application): boolean {
  return metadata.annotations?.[wellKnown.skipReconcileAnnotation] === 'true';
}

/**
 * Whether an Application is the mirror of an agent's, and nothing else that has a source UID: a cluster may be hub and managed cluster
 * at once, and the finalizers of a managed cluster's copies are not the principal's to remove.
 */
export function isMadeHere(application: Application): boolean {
  const isReported = application.metadata.annotations?.[annotations.reportedOperation] !== undefined;
  return isReported && isMarked(application) && isSkippedOnHub(application) && !isSkipped(application);
}

/** What the agent's side hashes for a resync, made from the mirror: the spec with the project as the agent calls it. */
export function sourceSpecOf(mirror: Application, agent: string): Readonly<Record<string, unknown>> {
  return { ...mirror.spec, project: sourceProject(mirror, agent) };
}

/** What a Go principal hashes for a resync, made from the agent's object: the spec with the project as the hub calls it. */
export function hubSpecOf(source: Application, agent: string): Readonly<Record<string, unknown>> {
  return { ...source.spec, project: `${agent}-${source.spec.project ?? ''}` };
}

function fieldsOf({ metadata, status }: Application, spec: ApplicationSpec): MirrorFields {
  const { server: _, name: __, ...destination } = spec.destination ?? {};
  // An agent reports no Application with this label, so on a mirror a user of the hub set it.
  const labels = Object.entries(metadata.labels ?? {}).filter(
    ([key]) => key !== skipSyncLabel && !ownerLabels.includes(key),
  );
  return {
    labels: Object.fromEntries(labels),
    annotations: Object.fromEntries(
      Object.entries(metadata.annotations ?? {}).filter(([key]) => !localToOneSide.has(key)),
    ),
    finalizers: (metadata.finalizers ?? []).filter((one) => !deletionFinalizers.has(one)),
    spec: { ...spec, destination },
    status: withChildrenIn(withoutPrincipalConditions(status ?? {}), undefined),
  };
}

function sourceProject(mirror: Application, agent: string): string {
  const project = mirror.spec.project ?? '';
  return project.startsWith(`${agent}-`) ? project.slice(agent.length + 1) : project;
}

/** A status whose child Applications are in this namespace, or in none. */
function withChildrenIn(status: ApplicationStatus, namespace: string | undefined): ApplicationStatus {
  if (!Array.isArray(status.resources)) {
    return status;
  }
  const resources = status.resources.map((resource: { group?: unknown; kind?: unknown; namespace?: unknown }) => {
    if (resource?.group !== 'argoproj.io' || resource.kind !== 'Application') {
      return resource;
    }
    const { namespace: _, ...others } = resource;
    return namespace === undefined ? others : { ...others, namespace };
  });
  return { ...status, resources };
}
