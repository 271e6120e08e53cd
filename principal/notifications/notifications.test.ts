import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CloudEvent, HTTP } from 'cloudevents';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { createAuthority, issueCertificate } from '../../lib/pki/index.ts';
import { fleetEvents, typePrefix } from './fleet-events.ts';
import { Presence } from './presence.ts';
import { watchFleet } from './watch.ts';

const logger = createLogger({ level: 'fatal' });
let server: Server;
let url = '';
let isAway = false;
/** Events as the SDK reads them. */
const received: CloudEvent<object>[] = [];
let stop: AbortController;
let running: Promise<void> | undefined;

beforeEach(async () => {
  isAway = false;
  received.length = 0;
  stop = new AbortController();
  server = createServer(async (request: IncomingMessage, response) => {
    const body = (await request.toArray()).join('');
    if (!isAway) {
      const event = HTTP.toEvent<object>({ headers: request.headers, body });
      expect(Array.isArray(event)).toBe(false);
      expect((event as CloudEvent<object>).validate()).toBe(true);
      received.push(event as CloudEvent<object>);
    }
    response.writeHead(isAway ? 503 : 202).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  stop.abort();
  await running;
  server.closeAllConnections();
  server.close();
});

function start(mode = 'binary', capacity?: number) {
  const flags = { namespace: 'argocd', 'events-sink-url': url, 'events-sink-token-path': '', 'events-mode': mode };
  const registry = new Registry();
  const events = fleetEvents(flags, registry, logger, capacity);
  if (events === undefined) {
    throw new Error('there is a sink');
  }
  running = events.run(stop.signal);
  return { events, registry };
}

test.each(['binary', 'structured'])('a sink reads and validates %s events with the SDK', async (mode) => {
  const { events } = start(mode);
  events.report('agent-lost', 'agents/edge', { agent: 'edge' });
  await until(() => received.length === 1);
  expect(received[0]).toMatchObject({
    type: `${typePrefix}agent-lost`,
    source: '/argocd-agent/principal/argocd',
    subject: 'agents/edge',
    data: { agent: 'edge' },
  });
});

test('nothing is lost up to the bound while the sink is away; what is lost is said', async () => {
  isAway = true;
  const { events, registry } = start('binary', 20);
  for (let i = 0; i < 23; i++) {
    events.report('agent-connected', `agents/a${i}`, {});
  }
  expect(await registry.metrics()).toContain('argocd_principal_fleet_events_lost 3');
  isAway = false;
  await until(() => received.length === 21);
  expect(new Set(received.map(({ id }) => id)).size).toBe(21);
  expect(received.slice(0, 3).map(({ subject }) => subject)).toEqual(['agents/a0', 'agents/a1', 'agents/a2']);
  expect(received.at(-1)).toMatchObject({ type: `${typePrefix}events-dropped`, data: { dropped: 3 } });
});

test('an agent that comes and goes does not fill the queue', async () => {
  const { events } = start();
  for (let i = 0; i < 100; i++) {
    events.report('agent-lost', 'agents/edge', {});
  }
  events.report('agent-lost', 'agents/other', {});
  await until(() => received.at(-1)?.subject === 'agents/other');
  expect(received).toHaveLength(6);
});

test('without a sink there is nothing', () => {
  const flags = { namespace: 'a', 'events-sink-url': '', 'events-sink-token-path': '', 'events-mode': 'binary' };
  expect(fleetEvents(flags, new Registry(), logger)).toBeUndefined();
});

describe('what is reported', () => {
  const seen: string[] = [];
  const events = { report: (type: string, subject: string) => void seen.push(`${type} ${subject}`) };
  beforeEach(() => void seen.splice(0));

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

  test('an agent that stays out of step and a certificate near its end, once each', async () => {
    const authority = await createAuthority({ commonName: 'test' });
    const { certificate: pem } = await issueCertificate({
      authority,
      commonName: 'x',
      hosts: ['localhost'],
      usages: ['server'],
      lifetimeMs: 86_400_000,
    });
    let rounds = 0;
    const fleet = {
      agents: () => {
        rounds++;
        return [
          { agent: 'late', oldestMs: 2_000 },
          { agent: 'well', oldestMs: 10 },
        ];
      },
      certificates: () => [
        { certificate: 'server', pem },
        { certificate: 'authority', pem: authority.certificate },
        { certificate: 'redis-proxy', pem: undefined },
      ],
      outOfStepAfterMs: 1_000,
    };
    running = watchFleet(events, fleet, stop.signal, 5);
    await until(() => rounds > 3);
    expect(seen).toEqual(['agent-out-of-step agents/late', 'certificate-expiring certificates/server']);
  });
});
