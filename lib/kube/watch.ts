import { parseJson } from '../base/index.ts';
import { errorFromStatus } from './errors.ts';
import type { KubeObject } from './types.ts';

/** One event of a watch. A BOOKMARK carries nothing but the resourceVersion reached. */
export type WatchEvent<T extends KubeObject> =
  | { type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: T }
  | { type: 'BOOKMARK'; resourceVersion: string };

const newline = 0x0a;

/**
 * Splits a byte stream into lines. Bytes are put together before they are decoded, so a character or an object may
 * be spread over any number of chunks, and a line of n chunks costs one copy, not n.
 */
export async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  let parts: Uint8Array[] = [];
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      const line = joined(parts, chunk.subarray(start, end));
      parts = [];
      start = end + 1;
      if (line.trim() !== '') {
        yield line;
      }
    }
    if (start < chunk.length) {
      parts.push(start === 0 ? chunk : chunk.slice(start));
    }
  }
  // A broken connection leaves an incomplete last line; the resumed watch sends the event again.
}

function joined(parts: Uint8Array[], last: Uint8Array): string {
  const whole =
    parts.length === 0 ? Buffer.from(last.buffer, last.byteOffset, last.length) : Buffer.concat([...parts, last]);
  return whole.toString('utf8');
}

/** Parses the body of a watch. Throws ApiError on an ERROR event. */
export async function* readWatch<T extends KubeObject>(
  what: string,
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<WatchEvent<T>, void, undefined> {
  for await (const line of readLines(body)) {
    const event = parseJson(line) as { type: string; object: T };
    switch (event.type) {
      case 'ADDED':
      case 'MODIFIED':
      case 'DELETED':
        yield { type: event.type, object: event.object };
        break;
      case 'BOOKMARK':
        yield { type: 'BOOKMARK', resourceVersion: event.object.metadata.resourceVersion ?? '' };
        break;
      case 'ERROR':
        throw errorFromStatus(what, event.object);
      default: // a type of a newer server: it cannot concern objects we were told about
    }
  }
}
