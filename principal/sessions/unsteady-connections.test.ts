import { beforeEach, expect, test } from 'vitest';
import { type UnsteadyConnection, UnsteadyConnections } from './unsteady-connections.ts';

let now = 0;
let found: UnsteadyConnection[];
let connections: UnsteadyConnections;
beforeEach(() => {
  found = [];
  connections = new UnsteadyConnections(
    (one) => void found.push(one),
    () => now,
  );
});

const minute = 60_000;
/** A connection of an agent that lives for this long. */
function lives(ms: number, agent = 'east'): void {
  connections.connected(agent);
  now += ms;
  connections.disconnected(agent);
}

test('five connections that end soon are reported, with how long they lived', () => {
  for (const ms of [61_000, 60_000, 60_500, 60_000]) {
    lives(ms);
    lives(ms, 'west');
  }
  expect(found).toEqual([]);
  lives(62_000);
  expect(found).toEqual([{ agent: 'east', count: 5, shortestMs: 60_000, longestMs: 62_000 }]);
});

test('and the next five again', () => {
  for (let i = 0; i < 14; i++) {
    lives(minute);
  }
  expect(found).toHaveLength(2);
});

test('connections that last, or ended long ago, do not count', () => {
  for (let i = 0; i < 10; i++) {
    lives(16 * minute);
  }
  for (let i = 0; i < 10; i++) {
    lives(minute);
    now += 20 * minute;
  }
  expect(found).toEqual([]);
});

test('the end of a connection that began before is not counted', () => {
  for (let i = 0; i < 10; i++) {
    connections.disconnected('east');
  }
  expect(found).toEqual([]);
});
