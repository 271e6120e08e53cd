import type { CloudEvent, CloudEventAttributeValue } from '../../../proto/gen/cloudevents/cloudevent.ts';
import { WireError } from '../errors.ts';
import type { WireEvent } from './event.ts';
import { maxAttributes } from './event-fields.ts';

export type { CloudEvent };

/** Longest accepted attribute name or value, in UTF-16 units. Real ones stay below 600: names of at most 253, uids. */
const maxAttributeLength = 2 * 1024;

const specVersion = '1.0';
const extensionName = /^[a-z0-9]+$/;
/** Attributes that are fields of `WireEvent` or core attributes, not extensions. */
const coreAttributes: ReadonlySet<string> = new Set(['dataschema', 'datacontenttype', 'subject', 'time']);

/**
 * The protobuf form in which Go peers accept an event: `dataschema` as `ce_uri`, everything else as `ce_string`,
 * data in `binary_data` even when there is none.
 *
 * @throws WireError `invalid-event` when an extension has no valid CloudEvents name
 */
export function encodeEvent(event: WireEvent): CloudEvent {
  const attributes: Record<string, CloudEventAttributeValue> = { dataschema: { ceUri: event.target } };
  if (event.contentType !== undefined) {
    attributes.datacontenttype = { ceString: event.contentType };
  }
  if (event.subject !== undefined) {
    attributes.subject = { ceString: event.subject };
  }
  for (const [name, value] of Object.entries(event.extensions)) {
    if (!extensionName.test(name) || coreAttributes.has(name)) {
      throw new WireError('invalid-event', `"${name}" is not a name for an extension of a CloudEvent`);
    }
    attributes[name] = { ceString: value };
  }
  attributes.resourceid = { ceString: event.resourceId };
  attributes.eventid = { ceString: event.eventId };
  const { data } = event;
  return {
    id: '',
    source: event.source,
    specVersion,
    type: event.type,
    attributes,
    binaryData: Buffer.from(data.buffer, data.byteOffset, data.byteLength),
  };
}

/**
 * Reads an event that came from a peer; nothing about it is trusted.
 *
 * The rules are those of the CloudEvents SDK that Go peers use: an attribute without a value is an error, `dataschema`
 * counts only as `ce_uri`, extensions only as `ce_string`. Text data is what its bytes are.
 *
 * @throws WireError `invalid-event` or `too-large`
 */
export function decodeEvent(event: CloudEvent | undefined): WireEvent {
  if (event === undefined) {
    throw new WireError('invalid-event', 'The message holds no CloudEvent');
  }
  const entries = Object.entries(event.attributes);
  if (entries.length > maxAttributes) {
    throw new WireError('too-large', `The event has ${entries.length} attributes; ${maxAttributes} are accepted`);
  }
  checkLength('type', event.type);
  checkLength('source', event.source);
  const extensions: Record<string, string> = {};
  for (const [name, value] of entries) {
    checkLength('attribute name', name);
    if (!hasValue(value)) {
      throw new WireError('invalid-event', `The attribute "${name}" of the event has no value`);
    }
    if (value.ceString === undefined) {
      continue;
    }
    checkLength(name, value.ceString);
    if (!coreAttributes.has(name) && extensionName.test(name)) {
      extensions[name] = value.ceString;
    }
  }
  const { resourceid, eventid } = extensions;
  if (event.type === '') {
    throw new WireError('invalid-event', 'The event has no type');
  }
  if (!resourceid || !eventid) {
    throw new WireError('invalid-event', `The event of type ${event.type} has no resourceid or no eventid`);
  }
  const target = event.attributes.dataschema?.ceUri ?? '';
  checkLength('dataschema', target);
  const subject = event.attributes.subject?.ceString;
  const contentType = event.attributes.datacontenttype?.ceString;
  return {
    type: event.type,
    target,
    source: event.source,
    ...(subject === undefined ? undefined : { subject }),
    resourceId: resourceid,
    eventId: eventid,
    extensions,
    ...(contentType === undefined ? undefined : { contentType }),
    data: dataOfCloudEvent(event),
  };
}

function dataOfCloudEvent(event: CloudEvent): Uint8Array {
  if (event.binaryData !== undefined) {
    return event.binaryData;
  }
  if (event.textData !== undefined) {
    return Buffer.from(event.textData, 'utf8');
  }
  if (event.protoData !== undefined) {
    throw new WireError('invalid-event', `The event of type ${event.type} carries a protobuf message, not JSON`);
  }
  return Buffer.alloc(0);
}

function hasValue(value: CloudEventAttributeValue): boolean {
  for (const variant of Object.values(value)) {
    if (variant !== undefined) {
      return true;
    }
  }
  return false;
}

function checkLength(what: string, text: string): void {
  if (text.length > maxAttributeLength) {
    throw new WireError('too-large', `The ${what} of the event has ${text.length} characters`);
  }
}
