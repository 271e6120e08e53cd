import { WireError } from '../errors.ts';
import { forEachField } from '../fields.ts';

/** Most attributes of an event. Real events have at most 8. */
export const maxAttributes = 64;
/** Most fields of a CloudEvent: its own, its attributes, and some that this version does not know. */
const maxEventFields = 2 * maxAttributes;
/** The message around the CloudEvent has one field. */
const maxMessageFields = 4;
/** Longest field but the data. An attribute has a name and a value of 2 KiB each, in characters of up to 3 bytes. */
const maxFieldBytes = 16 * 1024;

const numbers = { event: 1, attributes: 5, binaryData: 6, textData: 7 } as const;

/**
 * Checks a protobuf `Event` before it is decoded: the number of its fields and attributes, and the length of everything but
 * the data. After that decoding costs little, whatever the message holds.
 *
 * @throws WireError `too-large`; another Error for bytes that are no message
 */
export function checkEventFields(message: Uint8Array): void {
  forEachField(message, maxMessageFields, (field, content) => {
    if (field === numbers.event) {
      checkCloudEvent(content);
    } else {
      checkLength(field, content);
    }
  });
}

function checkCloudEvent(event: Uint8Array): void {
  let attributes = 0;
  forEachField(event, maxEventFields, (field, content) => {
    if (field === numbers.binaryData || field === numbers.textData) {
      return;
    }
    checkLength(field, content);
    attributes += field === numbers.attributes ? 1 : 0;
    if (attributes > maxAttributes) {
      throw new WireError('too-large', `The event has more than ${maxAttributes} attributes`);
    }
  });
}

function checkLength(field: number, content: Uint8Array): void {
  if (content.byteLength > maxFieldBytes) {
    throw new WireError('too-large', `Field ${field} of an event has ${content.byteLength} bytes`);
  }
}
