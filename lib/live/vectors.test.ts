import { expect, test } from 'vitest';
import type { ZodType } from 'zod';
import { eventLines, messageBytes, recordingNames } from '../../e2e/recordings/index.ts';
import { Event } from '../../proto/gen/eventstreamapi/eventstream.ts';
import { dataOf, decodeEvent, eventTypes, targets, type WireEvent } from '../wire/index.ts';
import {
  logRequest,
  redisRequest,
  redisResponse,
  resourceRequest,
  resourceResponse,
  terminalRequest,
} from './index.ts';

function liveEvents(): WireEvent[] {
  const wanted: ReadonlySet<string> = new Set([
    targets.resource,
    targets.redis,
    targets.containerLog,
    targets.terminal,
  ]);
  return recordingNames()
    .flatMap(eventLines)
    .map((line) => decodeEvent(Event.decode(messageBytes(line)).event))
    .filter((event) => wanted.has(event.target));
}

function schemaOf({ target, type }: WireEvent): ZodType<object> {
  if (target === targets.resource) {
    return type === eventTypes.response ? resourceResponse : resourceRequest;
  }
  if (target === targets.redis) {
    return type === eventTypes.redisResponse ? redisResponse : redisRequest;
  }
  return target === targets.terminal ? terminalRequest : logRequest;
}

test('every recorded request and answer of live access is read, and nothing of it is lost', () => {
  const events = liveEvents();
  expect(new Set(events.map(({ target }) => target)).size).toBe(4);
  for (const event of events) {
    const read = dataOf(event, schemaOf(event)) as Record<string, unknown>;
    const raw = JSON.parse(Buffer.from(event.data).toString('utf8')) as Record<string, unknown>;
    expect(Object.keys(raw).filter((key) => !(key in read))).toEqual([]);
    for (const [key, value] of Object.entries(raw)) {
      if (typeof value === 'string' && key !== 'body') {
        expect(read[key]).toBe(value);
      }
    }
  }
});
