import { type Attribute, extensionOf, type GoEvent, goPayload, targetOf } from './go-event.ts';

/**
 * What an event says, for comparing ours with a recorded one: attribute by attribute, with its variant, and everything in the
 * payload that a receiver of the originals looks at. What is left out, or replaced by a word for its form, is free:
 *
 * | free | because |
 * |---|---|
 * | value of `sentat` | the time of sending; receivers only compute a latency from it |
 * | value of `principaluid` | the identity of that principal |
 * | values of uids and resourceVersions | the API server's; that ids are made of them is compared |
 * | what follows `<name>_<uid>_<resourceVersion>` in an `eventid` | receivers match it with acknowledgements and take it apart nowhere; ours tells two events about one version apart, which the originals confuse |
 * | order of attributes, fields and keys | maps |
 * | fields with Go's zero value (`""`, `0`, `false`, `{}`, `[]`, `null`) | Go reads an absent field the same; the recorded ones come from typed objects |
 * | `kind`, `apiVersion` | receivers decode by target; the recorded ones have them or not, by chance of the informer |
 * | `digest` and `complete` in resync messages | extensions of ours, which Go ignores as it does every unknown key |
 * | `metadata.managedFields`, `generation`, `creationTimestamp`, `selfLink` | the API server's own; receivers drop or ignore them |
 */
export interface Meaning {
  readonly id: string;
  readonly source: string;
  readonly specVersion: string;
  readonly type: string;
  readonly target: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly data: 'binary' | 'text' | 'none';
  readonly payload: unknown;
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const sentAt = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,8}[1-9]|\.[1-9])?Z$/;
/** Extensions of ours to the payloads of resync messages. */
const ourKeys = ['digest', 'complete'];
/** Owned by the API server of the sender. */
const ownMetadata = ['managedFields', 'generation', 'creationTimestamp', 'selfLink'];

interface ObjectPayload {
  readonly metadata: { readonly name: string; readonly uid?: string; readonly resourceVersion?: string };
}

/** What an event means. */
export function meaningOf(event: GoEvent): Meaning {
  const payload = goPayload<unknown>(event);
  const { id, source, specVersion, type } = event;
  const attributes = [...event.attributes].map(([name, value]) => [name, formOf(name, value, event, payload)] as const);
  return {
    id,
    source,
    specVersion,
    type,
    target: targetOf(event),
    attributes: Object.fromEntries(attributes.sort(([a], [b]) => (a < b ? -1 : 1))),
    data: event.binaryData !== undefined ? 'binary' : event.textData !== undefined ? 'text' : 'none',
    payload: isObject(payload) ? withoutZeros(objectMeaning(payload)) : messageMeaning(targetOf(event), payload),
  };
}

/** The form of an attribute, as `<variant>:<form>`. */
function formOf(name: string, attribute: Attribute, event: GoEvent, payload: unknown): string {
  const [[variant = '', value] = []] = Object.entries(attribute);
  const text = String(value);
  return `${variant}:${valueForm(name, text, event, payload)}`;
}

function valueForm(name: string, text: string, event: GoEvent, payload: unknown): string {
  switch (name) {
    case 'sentat':
      return sentAt.test(text) ? 'time' : text;
    case 'principaluid':
      return uuid.test(text) ? 'uuid' : text;
    case 'resourceid':
      return isObject(payload) && text === resourceIdOf(payload) ? 'name_uid' : uuid.test(text) ? 'uuid' : text;
    case 'eventid': {
      const resource = extensionOf(event, 'resourceid');
      if (isObject(payload)) {
        const { resourceVersion = '' } = payload.metadata;
        return text.startsWith(`${resourceIdOf(payload)}_${resourceVersion}`) ? 'name_uid_version' : text;
      }
      return text === resource ? 'resourceid' : uuid.test(text) ? 'uuid' : text;
    }
    default:
      return text;
  }
}

function resourceIdOf({ metadata }: ObjectPayload): string {
  return `${metadata.name}_${metadata.uid ?? ''}`;
}

function isObject(payload: unknown): payload is ObjectPayload {
  return typeof payload === 'object' && payload !== null && 'metadata' in payload;
}

function messageMeaning(target: string, payload: unknown): unknown {
  if (target !== 'resourceResync' || typeof payload !== 'object' || payload === null) {
    return payload;
  }
  return Object.fromEntries(Object.entries(payload).filter(([key]) => !ourKeys.includes(key)));
}

function objectMeaning(object: ObjectPayload): unknown {
  const { kind: _, apiVersion: __, metadata, ...rest } = object as ObjectPayload & Record<string, unknown>;
  const kept = Object.entries(metadata).filter(([name]) => !ownMetadata.includes(name));
  const { uid, resourceVersion, deletionTimestamp, ...named } = Object.fromEntries(kept) as Record<string, unknown>;
  return {
    ...rest,
    metadata: {
      ...named,
      ...(uid === undefined || uid === '' ? {} : { uid: 'uid' }),
      ...(resourceVersion === undefined || resourceVersion === '' ? {} : { resourceVersion: 'version' }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp: 'time' }),
    },
  };
}

/** The value without everything that Go reads like an absent field; undefined when nothing is left. */
export function withoutZeros(value: unknown): unknown {
  if (value === null || value === '' || value === 0 || value === false) {
    return undefined;
  }
  if (Array.isArray(value)) {
    return value.length === 0 ? undefined : value.map((each) => withoutZeros(each) ?? null);
  }
  if (typeof value !== 'object') {
    return value;
  }
  const kept = Object.entries(value)
    .map(([key, each]) => [key, withoutZeros(each)] as const)
    .filter(([, each]) => each !== undefined);
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/**
 * What a request for an operation says: of the object only who it is and what is requested, since receivers of the originals
 * look at nothing else (`set-operation`, `terminate-operation`).
 */
export function requestOf(event: GoEvent): unknown {
  const { payload, ...rest } = meaningOf(event);
  const { metadata, operation } = payload as { metadata: Record<string, unknown>; operation?: unknown };
  const { name, namespace, uid } = metadata;
  return { ...rest, payload: { name, namespace, uid, operation } };
}

/** What a deletion says: who it is. The originals send the last object they saw, or nothing but its name; ours the latter. */
export function deletionOf(event: GoEvent): unknown {
  const { payload, ...rest } = meaningOf(event);
  const { name, namespace, uid } = (payload as { metadata: Record<string, unknown> }).metadata;
  return { ...rest, payload: { name, namespace, uid } };
}
