import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TokenAuthority } from '../../lib/auth/index.ts';
import { until } from '../../lib/base/testing.ts';
import { createAuthority, generateJwtKey, issueCertificate } from '../../lib/pki/index.ts';
import {
  acknowledgement,
  eventTypes,
  isAcknowledgement,
  messageEvent,
  objectEvent,
  principalSource,
  type Session,
  serveWire,
  targets,
  type WireEvent,
  type WireServer,
} from '../../lib/wire/index.ts';
import { LoadFleet } from './fleet.ts';
import { Generator } from './generator.ts';
import { agentCertificates } from './pki.ts';
import type { LoadReport } from './protocol.ts';

const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const origin = { source: principalSource };
let folder: string;
let server: WireServer;
let fleet: LoadFleet;
/** What agents sent, acknowledgements included. */
const heard: { agent: string; event: WireEvent }[] = [];
const sessions = new Map<string, Session>();
const reports: LoadReport[] = [];

function nothing(): undefined {
  return undefined;
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'load-'));
  const authority = await createAuthority({ commonName: 'ca' });
  await writeFile(join(folder, 'ca.crt'), authority.certificate);
  await writeFile(join(folder, 'ca.key'), authority.key);
  const own = await issueCertificate({ authority, commonName: 'principal', hosts: ['127.0.0.1'], usages: ['server'] });
  heard.length = 0;
  reports.length = 0;
  sessions.clear();
  server = await serveWire({
    address: '127.0.0.1',
    port: 0,
    tls: { cert: own.certificate, key: own.key, clientCa: authority.certificate, requireClientCertificate: true },
    version: '1',
    principalNamespace: 'argocd',
    tokens: TokenAuthority.fromPem(await generateJwtKey(2048)),
    authenticate: async (_, { certificate }) => ({ agent: /CN=(.+)/.exec(certificate?.subject ?? '')?.[1] ?? '' }),
    matchCertificateSubject: true,
    logger: silent,
    subscribe: (session) => {
      sessions.set(session.agent, session);
      return {
        event: (event) => {
          heard.push({ agent: session.agent, event });
          if (!isAcknowledgement(event)) {
            session.stream.send(acknowledgement(event, principalSource));
          }
        },
        closed: nothing,
      };
    },
  });
  const agents = ['agent-0000', 'agent-0001'];
  fleet = new LoadFleet({
    server: `127.0.0.1:${server.port}`,
    agents,
    applications: 1,
    version: '1',
    certificates: await agentCertificates(folder, agents),
    report: (report) => reports.push(report),
  });
  fleet.start();
  await until(() => said(eventTypes.requestSyncedResourceList).length === 2);
});

afterEach(async () => {
  await fleet.stop();
  await server.close();
  await rm(folder, { recursive: true });
});

/** The payloads of what an agent, or all, said of one type. */
function said(type: string, agent?: string): Record<string, unknown>[] {
  return heard
    .filter((one) => one.event.type === type && (agent === undefined || one.agent === agent))
    .map(({ event }) => JSON.parse(Buffer.from(event.data).toString('utf8') || '{}'));
}

function send(agent: string, event: WireEvent): WireEvent {
  sessions.get(agent)?.stream.send(event);
  return event;
}

const application = (agent: string, version: string) => ({
  metadata: { name: 'app', namespace: agent, uid: 'uid-1', resourceVersion: version },
  spec: { project: 'default', destination: { name: agent } },
  status: { health: { status: 'Healthy' } },
});

const isAcknowledged = ({ eventId }: WireEvent) =>
  heard.some(({ event }) => isAcknowledgement(event) && event.eventId === eventId);

test('agents are in sync when they have their Applications and all they said is acknowledged', async () => {
  const create = send(
    'agent-0000',
    objectEvent(targets.application, eventTypes.create, application('agent-0000', '5'), origin),
  );
  await until(() => reports.some(({ is }) => is === 'in-sync'));
  await until(() => isAcknowledged(create));
  expect(reports.filter(({ is }) => is === 'in-sync')).toMatchObject([{ agent: 'agent-0000' }]);
  expect(said(eventTypes.statusUpdate)).toMatchObject([
    {
      metadata: { name: 'app', annotations: { 'argocd.argoproj.io/source-uid': 'uid-1' } },
      status: { health: { status: 'Healthy' } },
    },
  ]);
  expect(fleet.counts()).toMatchObject({ connected: 2, inSync: 1, applications: 1, changesReceived: 1 });
});

test('what an agent has it tells when it is asked, and what it has not', async () => {
  send('agent-0000', objectEvent(targets.application, eventTypes.create, application('agent-0000', '5'), origin));
  send('agent-0000', messageEvent(targets.resourceResync, eventTypes.requestResourceResync, {}, origin));
  await until(() => said(eventTypes.requestUpdate).length === 1);
  expect(said(eventTypes.requestUpdate)).toMatchObject([
    { kind: 'Application', name: 'app', namespace: 'agent-0000', uid: 'uid-1', checksum: expect.any(String) },
  ]);
  const missing = { kind: 'Application', name: 'other', namespace: 'agent-0000', uid: 'uid-2' };
  send('agent-0000', messageEvent(targets.resourceResync, eventTypes.responseSyncedResource, missing, origin));
  await until(() => said(eventTypes.requestUpdate).length === 2);
  expect(said(eventTypes.requestUpdate)[1]).toMatchObject({ name: 'other', uid: '', checksum: null });
  const gone = objectEvent(targets.application, eventTypes.delete, application('agent-0000', '6'), origin);
  send('agent-0000', gone);
  await until(() => isAcknowledged(gone));
  expect(fleet.counts().applications).toBe(0);
});

test('a generator has its agents in a process of its own, and tells how they stand', async () => {
  const [name, at] = ['agent-0002', `127.0.0.1:${server.port}`];
  const generator = await Generator.start({ server: at, pki: folder, agents: [name], applications: 1 });
  try {
    expect(sessions.has(name)).toBe(false);
    const began = generator.connect();
    await until(() => sessions.has(name));
    expect(await generator.inSyncWithin(began, 0)).toBe(1);
    send(name, objectEvent(targets.application, eventTypes.create, application(name, '5'), origin));
    await generator.allInSync(began);
    expect(await generator.count()).toMatchObject({ connected: 1, inSync: 1, applications: 1, changesReceived: 1 });
  } finally {
    await generator.stop();
  }
  await expect(generator.count()).rejects.toThrow('the load generator ended with code 0');
});
