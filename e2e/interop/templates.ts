import { createHash, randomUUID } from 'node:crypto';
import type { Direction } from '../recordings/index.ts';
import { changed, type GoEvent, goJson, goPayload, targetOf, typeOf } from './go-event.ts';
import { recordedEvents } from './recordings.ts';

/** A Kubernetes object as the originals send it. */
export interface GoObject {
  metadata: {
    name: string;
    namespace?: string;
    uid?: string;
    resourceVersion?: string;
    annotations?: Record<string, string>;
    labels?: Record<string, string>;
    finalizers?: string[];
    deletionTimestamp?: string;
    ownerReferences?: unknown[];
    [field: string]: unknown;
  };
  spec?: Record<string, unknown>;
  status?: Record<string, unknown>;
  operation?: Record<string, unknown>;
  data?: Record<string, string>;
  [field: string]: unknown;
}

/** Which recorded event is meant. */
export interface Which {
  readonly dir: Direction;
  readonly target: string;
  readonly type: string;
  readonly agent?: string;
  /** Skips so many that fit. */
  readonly nth?: number;
  readonly where?: (payload: GoObject, event: GoEvent) => boolean;
}

/** A recorded event. @throws Error when the recording holds none like this */
export function recordedEvent(recording: string, which: Which): GoEvent {
  const { dir, target, type, agent, nth = 0, where } = which;
  const fitting = recordedEvents(recording, agent).filter(
    ({ line, event }) =>
      line.dir === dir &&
      targetOf(event) === target &&
      typeOf(event) === type &&
      (where === undefined || where(goPayload(event) as GoObject, event)),
  );
  const found = fitting[nth];
  if (found === undefined) {
    throw new Error(`${recording} has no ${dir} ${target} ${type} number ${nth}`);
  }
  return found.event;
}

/** The recorded event about another object: ids and subject follow from it, as in the originals. */
export function aboutObject(
  template: GoEvent,
  object: GoObject,
  strings: Record<string, string | undefined> = {},
): GoEvent {
  const { name, namespace = '', uid = '', resourceVersion = '' } = object.metadata;
  return changed(template, {
    strings: {
      resourceid: `${name}_${uid}`,
      eventid: `${name}_${uid}_${resourceVersion}`,
      subject: `${namespace}/${name}`,
      sentat: undefined,
      ...strings,
    },
    payload: object,
  });
}

/** The recorded event with another payload that is no object, and ids of its own. */
export function withPayload(template: GoEvent, payload?: unknown): GoEvent {
  const id = randomUUID();
  return changed(template, {
    strings: { resourceid: id, eventid: id, sentat: undefined },
    ...(payload === undefined ? {} : { payload }),
  });
}

/** SHA-256 of a spec (or data) without its top-level `destination`, in Go's JSON, base64. */
export function goChecksum(spec: Readonly<Record<string, unknown>> | undefined): string {
  const { destination: _, ...rest } = spec ?? {};
  return createHash('sha256')
    .update(goJson(sorted(rest)))
    .digest('base64');
}

/** The checksum over a list of resources, base64; null for none. */
export function goListChecksum(keys: readonly { kind: string; name: string; uid: string }[]): string | null {
  if (keys.length === 0) {
    return null;
  }
  const texts = keys.map(({ kind, name, uid }) => Buffer.from(`${kind}/${name}/${uid}`)).sort(Buffer.compare);
  return createHash('sha256').update(Buffer.concat(texts)).digest('base64');
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(sorted);
  }
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  const entries = Object.entries(value).sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return Object.fromEntries(entries.map(([key, each]) => [key, sorted(each)]));
}
