import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { WireError } from './errors.ts';

/**
 * Calls `visit` for each field of a protobuf message, unknown and repeated ones too, before anything is built from it.
 * `content` is empty unless the field is length-delimited.
 *
 * @throws WireError `too-large` for a message with more than `most` fields; another Error for bytes that are no message
 */
export function forEachField(
  bytes: Uint8Array,
  most: number,
  visit: (field: number, content: Uint8Array) => void,
): void {
  const reader = new BinaryReader(bytes);
  for (let fields = 1; reader.pos < reader.len; fields++) {
    if (fields > most) {
      throw new WireError('too-large', `A message has more than ${most} fields`);
    }
    const [field, type] = reader.tag();
    if (type === WireType.LengthDelimited) {
      visit(field, reader.bytes());
    } else {
      skip(reader, field, type);
      visit(field, none);
    }
  }
}

function skip(reader: BinaryReader, field: number, type: WireType): void {
  // A group holds any number of fields. No peer of this protocol sends one.
  if (type === WireType.StartGroup) {
    throw new WireError('invalid-event', `Field ${field} of a message is a group`);
  }
  reader.skip(type, field);
}

const none = new Uint8Array();
