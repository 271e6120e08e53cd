import { BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire';
import { LogStreamData } from '../../../proto/gen/logstreamapi/logstream.ts';
import { WireError } from '../errors.ts';

const lengthDelimited = 2;
const dataTag = (2 << 3) | lengthDelimited;
/** Most fields beside the data, unknown ones included. There are three. */
const maxOtherFields = 16;
/** Most bytes beside the data: a UUID, and an error. */
const maxOtherBytes = 64 * 1024;

/**
 * The bytes of {@link LogStreamData}, as the generated code writes and reads them, but without a copy of the data on either side:
 * large answers and logs pass through here, and each copy of them costs as much as encrypting them.
 */
export const logStreamCodec = {
  encode(message: LogStreamData): { finish(): Uint8Array[] } {
    const { data, ...rest } = message;
    const others = LogStreamData.encode({ ...rest, data: none }).finish();
    if (data.length === 0) {
      return { finish: () => [others] };
    }
    const head = new BinaryWriter().uint32(dataTag).uint32(data.length).finish();
    return { finish: () => [others, head, data] };
  },

  /** The data is a part of the bytes. @throws Error for an invalid message, or one with too much beside the data */
  decode(bytes: Uint8Array): LogStreamData {
    const reader = new BinaryReader(bytes);
    let data: Uint8Array = none;
    const others: Uint8Array[] = [];
    let otherBytes = 0;
    while (reader.pos < reader.len) {
      const start = reader.pos;
      const tag = reader.uint32();
      if (tag === dataTag) {
        data = reader.bytes();
      } else {
        reader.skip(tag & 7, tag >>> 3);
        others.push(bytes.subarray(start, reader.pos));
        otherBytes += reader.pos - start;
        if (others.length > maxOtherFields || otherBytes > maxOtherBytes) {
          throw new WireError('too-large', 'A message of a live stream has too much beside its data');
        }
      }
    }
    const message = LogStreamData.decode(
      others.length === 1 && others[0] !== undefined ? others[0] : Buffer.concat(others),
    );
    message.data = Buffer.from(data.buffer, data.byteOffset, data.length);
    return message;
  },
};

const none = Buffer.alloc(0);
