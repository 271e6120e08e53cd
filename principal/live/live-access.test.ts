import { expect, test, vi } from 'vitest';
import { eventTypes, messageEvent, targets, type WireEvent } from '../../lib/wire/index.ts';
import { LiveAccess } from './live-access.ts';

const redisEvent = (data: Uint8Array, eventId = 'nobody asked'): WireEvent => ({
  ...messageEvent(targets.redis, eventTypes.redisResponse, {}, { source: '' }, { eventId }),
  data,
});
const live = () => new LiveAccess({ send: () => true, isConnected: () => true });

test('an answer that nobody waits for is dropped without reading it', () => {
  // Parsed, these 24 MiB take 700 MB and more than a second.
  const bytes = Buffer.alloc(24 * 1024 * 1024, ',[]');
  bytes.write('{"z":[[]', 0);
  bytes.write(']}', bytes.length - 2);
  const parse = vi.spyOn(JSON, 'parse');
  try {
    expect(live().answered('a', redisEvent(bytes))).toBe(false);
    expect(parse).not.toHaveBeenCalled();
  } finally {
    parse.mockRestore();
  }
});

test('a message on a channel is read only if it is short', () => {
  const message = (name: string) =>
    Buffer.from(JSON.stringify({ uuid: 'u', connectionUuid: 'c', body: { pushFromSubscribe: { channelName: name } } }));
  expect(live().answered('a', redisEvent(message('app|managed-resources|a_web|1.8.3')))).toBe(true);
  expect(live().answered('a', redisEvent(message('x'.repeat(20_000))))).toBe(false);
  expect(() => live().answered('a', redisEvent(Buffer.from('no json')))).toThrow(/not JSON/);
});
