import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CloudEvent, HTTP } from 'cloudevents';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { until } from '../base/testing.ts';
import { createLogger, fleetEventPrefix, fleetEvents, watchCertificates } from './index.ts';

const logger = createLogger({ level: 'fatal' });
let server: Server;
let url = '';
let isAway = false;
/** Events as the SDK reads them. */
const received: CloudEvent<object>[] = [];
/** The authorization of each request. */
const tokens: (string | undefined)[] = [];
let stop: AbortController;
let running: Promise<void> | undefined;

beforeEach(async () => {
  isAway = false;
  received.length = 0;
  tokens.length = 0;
  stop = new AbortController();
  server = createServer(async (request: IncomingMessage, response) => {
    tokens.push(request.headers.authorization);
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

function start(mode = 'binary', capacity?: number, token = '') {
  const flags = { 'events-sink-url': url, 'events-sink-token-path': token, 'events-mode': mode };
  const registry = new Registry();
  const source = '/argocd-agent/principal/argocd';
  const bound = capacity === undefined ? {} : { capacity };
  const events = fleetEvents({ flags, source, metrics: 'argocd_principal', registry, logger, ...bound });
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
    type: `${fleetEventPrefix}agent-lost`,
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
  expect(received.at(-1)).toMatchObject({ type: `${fleetEventPrefix}events-dropped`, data: { dropped: 3 } });
});

test('a token that is replaced in its file counts from the next request on', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'token-'));
  const file = join(folder, 'token');
  await writeFile(file, 'first\n');
  const { events } = start('binary', undefined, file);
  isAway = true;
  events.report('agent-lost', 'agents/edge', {});
  await until(() => tokens.includes('Bearer first'));
  await writeFile(file, 'second');
  isAway = false;
  await until(() => received.length === 1);
  await rm(folder, { recursive: true });
  // While it is not there, the last one counts.
  events.report('agent-lost', 'agents/other', {});
  await until(() => received.length === 2);
  expect(tokens.slice(-2)).toEqual(['Bearer second', 'Bearer second']);
  expect(() => start('binary', undefined, file)).toThrow(/^--events-sink-token-path cannot be read: ENOENT/);
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
  const flags = { 'events-sink-url': '', 'events-sink-token-path': '', 'events-mode': 'binary' };
  const options = { flags, source: '', metrics: 'a', registry: new Registry(), logger };
  expect(fleetEvents(options)).toBeUndefined();
});

test('certificates that end within a week are reported, once each, and those that follow them', async () => {
  const seen: string[] = [];
  const events = {
    report: (type: string, subject: string, data: object) => void seen.push(JSON.stringify([type, subject, data])),
  };
  const inDays = (days: number) => new Date(Date.now() + days * 86_400_000);
  const certificates = [
    { certificate: 'server', notAfter: inDays(6.9) },
    { certificate: 'authority', notAfter: inDays(7.1) },
  ];
  let looks = 0;
  const look = () => {
    looks++;
    return certificates;
  };
  running = watchCertificates(events, look, stop.signal, 5);
  await until(() => looks > 3);
  const [first] = certificates;
  const data = { certificate: 'server', notAfter: first?.notAfter.toISOString() };
  expect(seen).toEqual([JSON.stringify(['certificate-expiring', 'certificates/server', data])]);
  certificates.splice(0, 1, { certificate: 'server', notAfter: inDays(1) });
  await until(() => seen.length === 2);
});
