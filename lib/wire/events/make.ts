import { randomUUID } from 'node:crypto';
import { eventTypes, targets, type WireEvent, type WireTarget } from './event.ts';
import { eventIdOf, type IdentifiedMetadata, resourceIdOf } from './ids.ts';

const json = 'application/json';
const noData: Uint8Array = Buffer.alloc(0);

/** Targets whose events carry a whole Kubernetes object. */
export type ObjectTarget =
  | typeof targets.application
  | typeof targets.appProject
  | typeof targets.repository
  | typeof targets.gpgKey
  | typeof targets.applicationSet;

/** A Kubernetes object, as far as an event about it needs to know. */
export interface EventObject {
  readonly metadata: IdentifiedMetadata & { readonly namespace?: string };
}

/** Where an event comes from. */
export interface Origin {
  /** `agentSource` or `principalSource`. */
  readonly source: string;
  /** The principal's persistent identity, stamped by principals on events about objects. */
  readonly principalUid?: string;
}

/**
 * An event that carries a Kubernetes object as JSON. Its ids come from the object's name, uid and resourceVersion,
 * which therefore must be those of the sender's cluster.
 *
 * @param ids replaces the ids; needed where one object yields several events that must not be confused
 */
export function objectEvent(
  target: ObjectTarget,
  type: string,
  object: EventObject,
  origin: Origin,
  ids?: { readonly resourceId: string; readonly eventId: string },
): WireEvent {
  const { metadata } = object;
  return event(target, type, origin, {
    resourceId: ids?.resourceId ?? resourceIdOf(metadata),
    eventId: ids?.eventId ?? eventIdOf(metadata),
    subject: `${metadata.namespace ?? ''}/${metadata.name}`,
    payload: object,
  });
}

/**
 * An event with a JSON payload that is not a Kubernetes object: resync, cluster cache info, live requests, errors.
 *
 * @param ids default: one fresh UUID as both. A response takes a fresh `resourceId`, so that it does not wait behind
 *   the request that carries the same one in the other direction, and the request's UUID as `eventId`
 */
export function messageEvent(
  target: WireTarget,
  type: string,
  payload: unknown,
  origin: Origin,
  ids: { readonly resourceId?: string; readonly eventId?: string } = {},
): WireEvent {
  const fresh = randomUUID();
  return event(target, type, origin, {
    resourceId: ids.resourceId ?? fresh,
    eventId: ids.eventId ?? fresh,
    payload,
  });
}

/** An agent's sign of life. A principal answers it with an acknowledgement only. */
export function heartbeatEvent(origin: Origin): WireEvent {
  const id = randomUUID();
  return event(targets.heartbeat, eventTypes.ping, origin, { resourceId: id, eventId: id });
}

/** The extension of an acknowledgement that says why the event was not processed. Go peers ignore it. */
const refusalExtension = 'refusal';
/** In UTF-16 code units. */
const longestRefusal = 500;

/**
 * The acknowledgement of an event that cannot be processed, however often it is sent: for peers of argocd-agent it is one like
 * any other, as they would send the event again for ever.
 */
export function refusingAcknowledgement(refused: WireEvent, source: string, reason: string): WireEvent {
  const short = reason.length > longestRefusal ? `${reason.slice(0, longestRefusal)}…` : reason;
  const acknowledging = acknowledgement(refused, source);
  return { ...acknowledging, extensions: { ...acknowledging.extensions, [refusalExtension]: short } };
}

/** Why the peer did not process the event that it acknowledges; undefined: it did, or does not say. */
export function refusedReason(acknowledged: WireEvent): string | undefined {
  return acknowledged.extensions[refusalExtension];
}

/** The acknowledgement of an event: it carries every extension of the acknowledged event (argocd-agent does so). */
export function acknowledgement(acknowledged: WireEvent, source: string): WireEvent {
  return {
    type: eventTypes.processed,
    target: targets.eventProcessed,
    source,
    resourceId: acknowledged.resourceId,
    eventId: acknowledged.eventId,
    extensions: acknowledged.extensions,
    data: noData,
  };
}

function event(
  target: WireTarget,
  type: string,
  origin: Origin,
  content: { resourceId: string; eventId: string; subject?: string; payload?: unknown },
): WireEvent {
  const { resourceId, eventId, subject, payload } = content;
  const extensions: Record<string, string> = { resourceid: resourceId, eventid: eventId };
  if (origin.principalUid !== undefined) {
    extensions.principaluid = origin.principalUid;
  }
  return {
    type,
    target,
    source: origin.source,
    ...(subject === undefined ? undefined : { subject }),
    resourceId,
    eventId,
    extensions,
    ...(payload === undefined
      ? { data: noData }
      : { contentType: json, data: Buffer.from(JSON.stringify(payload), 'utf8') }),
  };
}
