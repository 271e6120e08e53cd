import { expect, test } from 'vitest';
import { LogStreamData } from '../../../proto/gen/logstreamapi/logstream.ts';
import { logStreamCodec } from './log-stream-data.ts';

const messages = [
  LogStreamData.fromPartial({}),
  LogStreamData.fromPartial({ requestUuid: 'ü', data: Buffer.from('x') }),
  LogStreamData.fromPartial({ requestUuid: 'u', data: Buffer.alloc(70_000, 7), eof: true, error: 'none' }),
  LogStreamData.fromPartial({ data: Buffer.alloc(200, 1) }),
  LogStreamData.fromPartial({ eof: true }),
];

test.each(messages)('messages are written and read as by the generated code', (message) => {
  const bytes = Buffer.concat(logStreamCodec.encode(message).finish());
  expect(LogStreamData.decode(bytes)).toEqual(message);
  expect(logStreamCodec.decode(LogStreamData.encode(message).finish())).toEqual(message);
});

test('unknown fields are passed over, the last of a repeated field counts', () => {
  const two = messages.slice(1, 3).map((message) => LogStreamData.encode(message).finish());
  const bytes = Buffer.concat([Buffer.from('7a0161', 'hex'), ...two, Buffer.from('f80101', 'hex')]);
  expect(logStreamCodec.decode(bytes)).toEqual(LogStreamData.decode(bytes));
});

test('what breaks off is refused', () => {
  const bytes = Buffer.from(LogStreamData.encode(messages[2] as LogStreamData).finish());
  expect(() => logStreamCodec.decode(bytes.subarray(0, 1000))).toThrow();
  expect(() => logStreamCodec.decode(Buffer.from('07', 'hex'))).toThrow();
});

test('too much beside the data is refused', () => {
  const refusal = expect.objectContaining({ name: 'WireError', code: 'too-large' });
  const decode = (bytes: Buffer) => () => logStreamCodec.decode(bytes);
  expect(decode(Buffer.alloc(1_000_000, Buffer.from('7801', 'hex')))).toThrow(refusal);
  const long = LogStreamData.encode(LogStreamData.fromPartial({ error: 'x'.repeat(70_000) })).finish();
  expect(decode(Buffer.from(long))).toThrow(refusal);
});
