import type { Delivered } from '../sync/index.ts';

/** Kinds of the delivery engine, as labels of metrics: the protocol's names of their events. */
const resourceTypes: Readonly<Record<string, string>> = {
  Application: 'application',
  AppProject: 'appproject',
  Repository: 'repository',
  GPGKey: 'gpgkey',
};

/** An object that was older when it was noticed did not change just then: the peer or this process is new. */
const noticedWithinMs = 300_000;
/** Times of objects have no fractions of a second. */
const resolutionMs = 1_000;

/** A measured delay: from the change of an object to the peer's acknowledgement that it has the new state. */
export interface Propagation {
  readonly resourceType: string;
  readonly seconds: number;
}

/**
 * How long a state was on its way to a peer: from the time that its object bears (`managedFields`, creation, deletion), but
 * at the latest from when this process noticed the change. Times of objects have a resolution of a second; that second is
 * in the object's favour. Undefined for messages that are about no object.
 * @param fieldManager who writes for this process: its writes are no changes
 * @param now milliseconds since the epoch
 */
export function propagationOf(
  { key, lagMs, object }: Delivered,
  fieldManager: string,
  now: number,
): Propagation | undefined {
  const resourceType = resourceTypes[key.kind];
  if (resourceType === undefined) {
    return undefined;
  }
  const noticed = now - lagMs;
  const changed = changedAt(object, fieldManager);
  const isRecent = changed !== undefined && noticed - changed < noticedWithinMs;
  const from = isRecent ? Math.min(noticed, changed + resolutionMs) : noticed;
  return { resourceType, seconds: Math.max(0, now - from) / 1_000 };
}

/** When somebody else last changed an object, by its metadata; milliseconds since the epoch. */
function changedAt(object: unknown, fieldManager: string): number | undefined {
  const { metadata } = (object ?? {}) as { metadata?: Record<string, unknown> };
  const fields = Array.isArray(metadata?.managedFields) ? (metadata.managedFields as ManagedFields[]) : [];
  const others = fields.flatMap(({ manager, time }) => (manager === fieldManager ? [] : [time]));
  return newest([metadata?.creationTimestamp, metadata?.deletionTimestamp, ...others]);
}

interface ManagedFields {
  readonly manager?: unknown;
  readonly time?: unknown;
}

/** The newest of some texts that may be times (RFC 3339), in milliseconds since the epoch. */
function newest(times: readonly unknown[]): number | undefined {
  const valid = times.map((time) => (typeof time === 'string' ? Date.parse(time) : Number.NaN));
  const latest = Math.max(...valid.filter((time) => !Number.isNaN(time)));
  return Number.isFinite(latest) ? latest : undefined;
}

/** The newest time in a status of Argo CD: of a reconciliation, a change of health, an operation. */
export function statusTime(status: unknown): number | undefined {
  const { reconciledAt, health, operationState } = (status ?? {}) as Record<string, unknown>;
  const { lastTransitionTime } = (health ?? {}) as Record<string, unknown>;
  const { startedAt, finishedAt } = (operationState ?? {}) as Record<string, unknown>;
  return newest([reconciledAt, lastTransitionTime, startedAt, finishedAt]);
}
