import { expect } from 'vitest';
import { type Check, until } from '../../lib/base/testing.ts';
import { acknowledgementOf, changed, extensionOf, type GoEvent, goPayload, targetOf, typeOf } from './go-event.ts';
import type { GoStream } from './go-side.ts';
import type { GoObject } from './templates.ts';

/** Waits until a check passes; the error of a wait in vain ends with what helps to understand it. */
export type Until = (check: Check) => Promise<void>;

/** A way to wait whose errors end with `details`. */
export function untilWith(details: () => string): Until {
  return (check) => until(check, { details });
}

const keyOf = (event: GoEvent) => ['resourceid', 'eventid', 'sentat'].map((name) => extensionOf(event, name)).join(' ');

/**
 * Waits until everything that the stream sent is acknowledged, each with all extensions of what it acknowledges. Of what cannot be
 * read the reason may come beside them, which originals pass over.
 */
export async function allAcknowledged(stream: GoStream, source: string, until: Until): Promise<void> {
  await until(() =>
    expect(stream.writer.unacknowledged.map((event) => `${targetOf(event)} ${typeOf(event)}`)).toEqual([]),
  );
  await until(() => expect(stream.writer.isIdle).toBe(true));
  await until(() => {
    const acknowledgements = new Map(
      stream
        .events('eventProcessed')
        .map((event) => [keyOf(event), changed(event, { strings: { refusal: undefined } })]),
    );
    for (const event of stream.sent.filter((each) => targetOf(each) !== 'eventProcessed')) {
      expect(acknowledgements.get(keyOf(event)), typeOf(event)).toEqual(acknowledgementOf(event, source));
    }
  });
}

/** The events about one object that arrived from a moment on, each once however often it was sent. */
export function eventsAbout(stream: GoStream, name: string, from = 0): GoEvent[] {
  const events = new Map<string, GoEvent>();
  for (const event of stream.received.slice(from)) {
    if (targetOf(event) === 'eventProcessed' || goPayload<GoObject>(event)?.metadata?.name !== name) {
      continue;
    }
    const key = `${typeOf(event)} ${keyOf(event)}`;
    if (!events.has(key)) {
      events.set(key, event);
    }
  }
  return [...events.values()];
}

/** The recorded object as a user makes it, under another name and perhaps in a namespace. */
export function asMade(recorded: GoObject | undefined, name: string, namespace?: string): GoObject {
  if (recorded === undefined) {
    throw new Error('there is no recorded object');
  }
  const { metadata, status: _, operation: __, kind: ___, apiVersion: ____, ...content } = structuredClone(recorded);
  const { labels, annotations, finalizers } = metadata;
  const kept = Object.entries({ namespace, labels, annotations, finalizers }).filter(
    ([, value]) => value !== undefined,
  );
  return { ...content, metadata: { name, ...Object.fromEntries(kept) } };
}
