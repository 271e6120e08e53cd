import { describe, expect, test } from 'vitest';
import { decodeEvent, encodeEvent } from '../../lib/wire/index.ts';
import { Event } from '../../proto/gen/eventstreamapi/eventstream.ts';
import { messageBytes, recordedLines, recordingNames } from '../recordings/index.ts';
import { readEvent, writeEvent } from './go-event.ts';
import { writeMessage } from './protobuf.ts';
import { messageOfLine } from './recordings.ts';
import { messagesOf, methods } from './schemas.ts';

// The codec of the tests against recorded bytes, and the programs' codec against that of the tests.

describe('recorded messages', () => {
  test.each(recordingNames())('%s: read and written alike by two codecs', (name) => {
    let compared = 0;
    for (const line of recordedLines(name)) {
      if (line.bytes === undefined) {
        continue;
      }
      const bytes = messageBytes(line);
      const schema = messagesOf[line.rpc]?.[line.dir];
      const what = `${name}, line ${line.seq}`;
      if (schema === undefined) {
        throw new Error(`${what}: no message is known for ${line.rpc}`);
      }
      const written = writeMessage(schema, messageOfLine(line));
      // The Go runtime writes maps in any order, so events have the same length and fields, not the same bytes.
      if (line.rpc === methods.subscribe) {
        expect(written.length, what).toBe(bytes.length);
        expect(Event.decode(written), what).toEqual(Event.decode(bytes));
        const ours = Buffer.from(Event.encode({ event: encodeEvent(decodeEvent(Event.decode(bytes).event)) }).finish());
        expect(readEvent(ours), what).toEqual(readEvent(bytes));
        expect(writeEvent(readEvent(ours)).length, what).toBe(bytes.length);
      } else {
        expect(written.toString('hex'), what).toBe(bytes.toString('hex'));
      }
      compared += 1;
    }
    expect(compared).toBeGreaterThan(10);
  });
});

test('what is no message is not read', () => {
  for (const hex of ['0a', '0a05', '0a0201', '12', '0800', '1a00', '0a00']) {
    const read = () => readEvent(Buffer.from(hex, 'hex'));
    if (hex === '0a00') {
      expect(read().attributes.size).toBe(0);
    } else {
      expect(read, hex).toThrow();
    }
  }
});
