import { afterEach, beforeEach, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { Presence } from './presence.ts';
import { watchFleet } from './watch.ts';

const seen: string[] = [];
const events = { report: (type: string, subject: string) => void seen.push(`${type} ${subject}`) };
let stop: AbortController;
let running: Promise<void> | undefined;
beforeEach(() => {
  seen.splice(0);
  stop = new AbortController();
});
afterEach(async () => {
  stop.abort();
  await running;
});

test('an agent that is back at once was not lost', async () => {
  const presence = new Presence(events, 20);
  presence.connected('edge', 'managed', '1');
  presence.disconnected('edge');
  presence.connected('edge', 'managed', '1');
  presence.disconnected('edge');
  await until(() => seen.length > 1);
  expect(seen).toEqual(['agent-connected agents/edge', 'agent-lost agents/edge']);
  presence.connected('edge', 'managed', '1');
  presence.disconnected('edge');
  presence.close();
  expect(seen).toEqual(['agent-connected agents/edge', 'agent-lost agents/edge', 'agent-connected agents/edge']);
});

test('an agent and its Applications that stay out of step are reported, once until they are in step again', async () => {
  let rounds = 0;
  const late = [
    { namespace: 'shop', name: 'web', ms: 2_000 },
    // Its state and a request wait, in two outboxes.
    { namespace: 'shop', name: 'web', ms: 1_500 },
    { namespace: 'shop', name: 'api', ms: 1_200 },
  ];
  const asked: unknown[] = [];
  const fleet = {
    agents: () => {
      rounds++;
      return [
        { agent: 'late', oldestMs: 2_000 },
        { agent: 'well', oldestMs: 10 },
      ];
    },
    lateApplications: (...args: [agent: string, afterMs: number, most: number]) => {
      asked.push(args);
      return late;
    },
    outOfStepAfterMs: 1_000,
  };
  running = watchFleet(events, fleet, stop.signal, 5);
  await until(() => rounds > 3);
  const all = [
    'agent-out-of-step agents/late',
    'application-out-of-step applications/shop/web',
    'application-out-of-step applications/shop/api',
  ];
  expect(seen).toEqual(all);
  // An agent that is in step costs nothing.
  expect(asked[0]).toEqual(['late', 1_000, 100]);
  expect(asked.every((args) => (args as string[])[0] === 'late')).toBe(true);
  const [web] = late.splice(0, 2);
  const before = rounds;
  await until(() => rounds > before + 2);
  expect(seen).toEqual(all);
  late.push(web as (typeof late)[number]);
  await until(() => seen.length === 4);
  expect(seen[3]).toBe('application-out-of-step applications/shop/web');
});
