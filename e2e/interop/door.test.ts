import { describe, expect, test } from 'vitest';
import type { Message } from '../../lib/argocd/index.ts';
import { adaptStream, eventOf } from '../../lib/bridge/index.ts';
import { decodeEvent, type EventStream, encodeEvent, type WireEvent } from '../../lib/wire/index.ts';
import { Event } from '../../proto/gen/eventstreamapi/eventstream.ts';
import { messageBytes, recordingNames } from '../recordings/index.ts';
import { acknowledgementOf, type GoEvent, readEvent, targetOf, typeOf } from './go-event.ts';
import { meaningOf } from './meaning.ts';
import { type RecordedEvent, recordedEvents } from './recordings.ts';

// Every recorded event at the door between the wire and the engine, on the side that it was meant for.

/** What the engine keeps in step; all else is live access and signs of life. */
const inStep = ['application', 'appproject', 'repository', 'gpgkey', 'resourceResync'];

function throughTheDoor({ line }: RecordedEvent) {
  const source = line.dir === 'agent->principal' ? '' : 'agent://agent-managed';
  const messages: Message[] = [];
  const others: WireEvent[] = [];
  const acknowledged: unknown[] = [];
  const sent: GoEvent[] = [];
  const complaints: string[] = [];
  const stream: EventStream = {
    send: (event) => {
      sent.push(readEvent(Buffer.from(Event.encode({ event: encodeEvent(event) }).finish())));
      return true;
    },
    onDrain: () => undefined,
    pause: () => undefined,
    resume: () => undefined,
    close: () => undefined,
    ended: false,
  };
  const complain = (_: object, message: string) => complaints.push(message);
  const peer = adaptStream({
    stream,
    source,
    listener: {
      receive: (message) => messages.push(message),
      unreadable: () => undefined,
      acknowledged: (ids) => acknowledged.push(ids),
      writable: () => undefined,
    },
    logger: { debug: () => undefined, info: () => undefined, warn: complain, error: complain },
    other: (event) => others.push(event),
  });
  peer.event(decodeEvent(Event.decode(messageBytes(line)).event));
  for (const message of messages) {
    peer.connection.acknowledge(message);
  }
  return { source, messages, others, acknowledged, sent, complaints };
}

describe('recorded events at the door', () => {
  test.each(recordingNames())('%s: read, or politely refused, and acknowledged as recorded', (name) => {
    let checked = 0;
    for (const recorded of recordedEvents(name)) {
      const { event, line } = recorded;
      const what = `${name}, line ${line.seq}: ${targetOf(event)} ${typeOf(event)}`;
      const { source, messages, others, acknowledged, sent, complaints } = throughTheDoor(recorded);
      expect(complaints, what).toEqual([]);
      if (targetOf(event) === 'eventProcessed') {
        expect([acknowledged.length, sent.length], what).toEqual([1, 0]);
        continue;
      }
      expect([messages.length, others.length], what).toEqual(inStep.includes(targetOf(event)) ? [1, 0] : [0, 1]);
      expect(sent, what).toEqual([acknowledgementOf(event, source)]);
      for (const message of messages) {
        // Said by ours, it means the same; the time of sending is the stream's to add.
        const again = eventOf(message, event.source);
        const ours = readEvent(Buffer.from(Event.encode({ event: encodeEvent(again) }).finish()));
        const attributes = new Map(event.attributes);
        attributes.delete('sentat');
        expect(meaningOf(ours), what).toEqual(meaningOf({ ...event, attributes }));
      }
      checked += 1;
    }
    expect(checked).toBeGreaterThan(5);
  });
});
