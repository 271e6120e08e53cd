import { type Fields, readMessage, writeMessage } from './protobuf.ts';
import { event as eventSchema } from './schemas.ts';

/** The value of a CloudEvent's attribute, with the variant of the oneof that holds it. */
export type Attribute =
  | { readonly ceString: string }
  | { readonly ceUri: string }
  | { readonly [variant: string]: unknown };

/** A CloudEvent as it is on the wire. */
export interface GoEvent {
  readonly id: string;
  readonly source: string;
  readonly specVersion: string;
  /** In full. */
  readonly type: string;
  readonly attributes: ReadonlyMap<string, Attribute>;
  /** Undefined: there is no `binary_data`, or the data is text. */
  readonly binaryData?: Buffer;
  readonly textData?: string;
}

const prefix = 'io.argoproj.argocd-agent.event.';

/** Reads an `eventstreamapi.Event`. @throws Error when it is none */
export function readEvent(bytes: Buffer): GoEvent {
  const { event } = readMessage(eventSchema, bytes);
  if (event === undefined) {
    throw new Error('the message holds no event');
  }
  const { id = '', source = '', specVersion = '', type = '', attributes = new Map(), ...data } = event as Fields;
  return { id, source, specVersion, type, attributes, ...data } as GoEvent;
}

/** The bytes of an `eventstreamapi.Event`. */
export function writeEvent(event: GoEvent): Buffer {
  return writeMessage(eventSchema, { event });
}

/** The last part of the type: `create`, `processed`; the whole where it has not the usual prefix (`GET`). */
export function typeOf({ type }: GoEvent): string {
  return type.startsWith(prefix) ? type.slice(prefix.length) : type;
}

/** The `dataschema`; empty unless it is a URI attribute, which is the only form that originals read. */
export function targetOf(event: GoEvent): string {
  const schema = event.attributes.get('dataschema');
  return schema !== undefined && 'ceUri' in schema ? String(schema.ceUri) : '';
}

/** An extension; empty unless it is a string attribute, which is the only form that originals read. */
export function extensionOf(event: GoEvent, name: string): string {
  const value = event.attributes.get(name);
  return value !== undefined && 'ceString' in value ? String(value.ceString) : '';
}

/** The payload; undefined when there is none. */
export function goPayload<T = Record<string, unknown>>(event: GoEvent): T | undefined {
  return event.binaryData === undefined || event.binaryData.length === 0
    ? undefined
    : (JSON.parse(event.binaryData.toString('utf8')) as T);
}

/** The event with other extensions and another payload, everything else as it was. */
export function changed(
  event: GoEvent,
  changes: { readonly strings?: Readonly<Record<string, string | undefined>>; readonly payload?: unknown },
): GoEvent {
  const attributes = new Map(event.attributes);
  for (const [name, value] of Object.entries(changes.strings ?? {})) {
    if (value === undefined) {
      attributes.delete(name);
    } else {
      attributes.set(name, { ceString: value });
    }
  }
  const { payload } = changes;
  return { ...event, attributes, ...(payload === undefined ? {} : { binaryData: goJson(payload) }) };
}

/** The acknowledgement that originals send: every extension of the event, no subject, no content type, empty data. */
export function acknowledgementOf(event: GoEvent, source: string): GoEvent {
  const attributes = new Map(event.attributes);
  for (const name of ['dataschema', 'datacontenttype', 'subject']) {
    attributes.delete(name);
  }
  attributes.set('dataschema', { ceUri: 'eventProcessed' });
  return { id: '', source, specVersion: '1.0', type: `${prefix}processed`, attributes, binaryData: Buffer.alloc(0) };
}

/** JSON as Go's encoder writes it. */
export function goJson(value: unknown): Buffer {
  const escapes: Readonly<Record<string, string>> = {
    '<': '\\u003c',
    '>': '\\u003e',
    '&': '\\u0026',
    '\u2028': '\\u2028',
    '\u2029': '\\u2029',
  };
  return Buffer.from(
    JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (character) => escapes[character] ?? character),
  );
}
