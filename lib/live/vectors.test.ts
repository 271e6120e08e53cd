import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ZodType } from 'zod';
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

// Needs traffic recorded between the Go originals, in ../shared/vectors beside the checkout; skipped where it is not.

const folder = join(import.meta.dirname, '../../../shared/vectors');
const files = (() => {
  try {
    return readdirSync(folder).filter((name) => name.endsWith('.jsonl') && name !== 'headers.jsonl');
  } catch {
    return [];
  }
})();

function liveEvents(): WireEvent[] {
  const wanted: ReadonlySet<string> = new Set([
    targets.resource,
    targets.redis,
    targets.containerLog,
    targets.terminal,
  ]);
  return files.flatMap((name) =>
    readFileSync(join(folder, name), 'utf8')
      .split('\n')
      .flatMap((line) => {
        if (line === '') {
          return [];
        }
        const { rpc, bytes } = JSON.parse(line) as { rpc?: string; bytes?: string };
        if (rpc !== '/eventstreamapi.EventStream/Subscribe' || bytes === undefined) {
          return [];
        }
        const event = decodeEvent(Event.decode(Buffer.from(bytes, 'base64')).event);
        return wanted.has(event.target) ? [event] : [];
      }),
  );
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

test.skipIf(files.length === 0)(
  'every recorded request and answer of live access is read, and nothing of it is lost',
  () => {
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
  },
);
