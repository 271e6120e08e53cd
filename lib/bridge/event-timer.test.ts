import { expect, test } from 'vitest';
import { acknowledgement, heartbeatEvent, sentAt, type WireEvent } from '../wire/index.ts';
import { EventTimer, resourceTypeOf } from './index.ts';

function start() {
  const heard: [what: string, type: string, seconds: number][] = [];
  const timer = new EventTimer({
    arrived: (type, seconds) => heard.push(['arrived', type, seconds]),
    done: (type, seconds) => heard.push(['done', type, seconds]),
  });
  return { timer, heard };
}

const event = (extensions: Record<string, string> = {}): WireEvent => {
  const made = heartbeatEvent({ source: '' });
  return { ...made, extensions: { ...made.extensions, ...extensions } };
};

test('the way of an event is measured when its sender says when it began, the work when it is acknowledged', () => {
  const { timer, heard } = start();
  const sent = event({ sentat: sentAt(new Date(Date.now() - 2_000)) });
  timer.received(sent);
  timer.received(sent);
  timer.sent(acknowledgement(sent, ''));
  timer.sent(acknowledgement(sent, ''));
  expect(heard.map(([what, type]) => [what, type])).toEqual([
    ['arrived', 'heartbeat'],
    ['arrived', 'heartbeat'],
    ['done', 'heartbeat'],
  ]);
  expect(heard[0]?.[2]).toBeGreaterThan(1.9);
  expect(heard[0]?.[2]).toBeLessThan(60);
});

test('no or a senseless time of sending is not measured; a clock ahead of ours counts as no way at all', () => {
  const { timer, heard } = start();
  timer.received(event());
  timer.received(event({ sentat: 'yesterday' }));
  timer.received(event({ sentat: '1970-01-01T00:00:00Z' }));
  expect(heard).toEqual([]);
  timer.received(event({ sentat: sentAt(new Date(Date.now() + 60_000)) }));
  expect(heard).toEqual([['arrived', 'heartbeat', 0]]);
});

test("a peer's own targets are one label", () => {
  expect([resourceTypeOf({ target: 'application' }), resourceTypeOf({ target: 'x'.repeat(99) })]).toEqual([
    'application',
    'unknown',
  ]);
});
