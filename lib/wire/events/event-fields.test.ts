import { describe, expect, test } from 'vitest';
import { Event } from '../../../proto/gen/eventstreamapi/eventstream.ts';
import { encodeEvent, heartbeatEvent } from '../index.ts';
import { checkEventFields } from './event-fields.ts';

const heartbeat = encodeEvent(heartbeatEvent({ source: 'agent://agent-managed' }));
const encoded = (event: Partial<typeof heartbeat>) => Event.encode({ event: { ...heartbeat, ...event } }).finish();
const attributes = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`a${index}`, { ceString: 'x' }]));
/** A field of any number and content. */
function field(number: number, content: Uint8Array): Buffer {
  const varint = (value: number): number[] => (value < 128 ? [value] : [(value & 127) | 128, ...varint(value >>> 7)]);
  return Buffer.concat([Buffer.from(varint((number << 3) | 2)), Buffer.from(varint(content.length)), content]);
}
const refusal = (text: RegExp) =>
  expect.objectContaining({ name: 'WireError', code: 'too-large', message: expect.stringMatching(text) });

describe('the fields of a message are counted before it is decoded', () => {
  test('real events pass, with any length of data', () => {
    checkEventFields(encoded({}));
    checkEventFields(encoded({ binaryData: Buffer.alloc(1_000_000) }));
    checkEventFields(encoded({ attributes: attributes(64) }));
    checkEventFields(Buffer.alloc(0));
  });

  test('some unknown fields pass, many do not', () => {
    const unknown = Buffer.from([0x78, 0x01]);
    checkEventFields(field(1, Buffer.concat([...Array<Buffer>(60).fill(unknown), encoded({}).subarray(3)])));
    expect(() => checkEventFields(Buffer.alloc(1_000_000, unknown))).toThrow(refusal(/more than 4 fields/));
    expect(() => checkEventFields(field(1, Buffer.alloc(1_000_000, unknown)))).toThrow(refusal(/more than 128 fields/));
  });

  test.each([
    ['attributes', encoded({ attributes: attributes(65) }), /more than 64 attributes/],
    ['a long attribute', encoded({ attributes: { a: { ceString: 'x'.repeat(20_000) } } }), /Field 5 .* 200\d\d bytes/],
    ['a long type', encoded({ type: 'x'.repeat(20_000) }), /Field 4 .* 20000 bytes/],
    ['long unknown fields', field(1, field(99, Buffer.alloc(20_000))), /Field 99/],
    ['long unknown fields beside the event', field(99, Buffer.alloc(20_000)), /Field 99/],
  ])('%s over the limit are refused', (_, bytes, text) => {
    expect(() => checkEventFields(bytes)).toThrow(refusal(text));
  });

  test('a group, which may hold any number of fields, is refused', () => {
    expect(() => checkEventFields(Buffer.from([0x0b, 0x0c]))).toThrow(/Field 1 of a message is a group/);
  });

  test('bytes that are no message are refused', () => {
    expect(() => checkEventFields(Buffer.from([0x0a, 0x7f]))).toThrow();
    expect(() => checkEventFields(Buffer.alloc(20, 0xff))).toThrow();
  });
});
