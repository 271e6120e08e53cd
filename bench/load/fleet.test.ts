import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type PlayedPrincipal, playPrincipal, type WirePeer, wirePeer } from '../../e2e/peer/index.ts';
import { until } from '../../lib/base/testing.ts';
import { createAuthority, issueCertificate } from '../../lib/pki/index.ts';
import {
  eventTypes,
  messageEvent,
  objectEvent,
  principalSource,
  targets,
  type WireEvent,
} from '../../lib/wire/index.ts';
import { LoadFleet } from './fleet.ts';
import { Generator } from './generator.ts';
import { agentCertificates } from './pki.ts';
import type { LoadReport } from './protocol.ts';

const origin = { source: principalSource };
let folder: string;
let principal: PlayedPrincipal;
let fleet: LoadFleet;
/** The principal's end of each agent's stream. */
const peers = new Map<string, WirePeer>();
const reports: LoadReport[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'load-'));
  const authority = await createAuthority({ commonName: 'ca' });
  await writeFile(join(folder, 'ca.crt'), authority.certificate);
  await writeFile(join(folder, 'ca.key'), authority.key);
  const own = await issueCertificate({ authority, commonName: 'principal', hosts: ['127.0.0.1'], usages: ['server'] });
  reports.length = 0;
  peers.clear();
  principal = await playPrincipal({
    tls: { cert: own.certificate, key: own.key, clientCa: authority.certificate, requireClientCertificate: true },
    matchCertificateSubject: true,
    peer: ({ agent }) => {
      const peer = wirePeer(principalSource);
      peers.set(agent, peer);
      return peer;
    },
  });
  const agents = ['agent-0000', 'agent-0001'];
  fleet = new LoadFleet({
    server: `127.0.0.1:${principal.port}`,
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
  await principal.close();
  await rm(folder, { recursive: true });
});

/** The payloads of what an agent, or all, said of one type. */
function said(type: string, agent?: string): Record<string, unknown>[] {
  return [...peers]
    .filter(([name]) => agent === undefined || name === agent)
    .flatMap(([, peer]) => peer.received.filter((event) => event.type === type))
    .map(({ data }) => JSON.parse(Buffer.from(data).toString('utf8') || '{}'));
}

function send(agent: string, event: WireEvent): WireEvent {
  peers.get(agent)?.say(event);
  return event;
}

const application = (agent: string, version: string) => ({
  metadata: { name: 'app', namespace: agent, uid: 'uid-1', resourceVersion: version },
  spec: { project: 'default', destination: { name: agent } },
  status: { health: { status: 'Healthy' } },
});

const isAcknowledged = ({ eventId }: WireEvent) =>
  [...peers.values()].some((peer) => peer.events('eventProcessed').some((event) => event.eventId === eventId));

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
  const [name, at] = ['agent-0002', `127.0.0.1:${principal.port}`];
  const generator = await Generator.start({ server: at, pki: folder, agents: [name], applications: 1 });
  try {
    expect(peers.has(name)).toBe(false);
    const began = generator.connect();
    await until(() => peers.has(name));
    expect(await generator.inSyncWithin(began, 0)).toBe(1);
    send(name, objectEvent(targets.application, eventTypes.create, application(name, '5'), origin));
    await generator.allInSync(began);
    expect(await generator.count()).toMatchObject({ connected: 1, inSync: 1, applications: 1, changesReceived: 1 });
  } finally {
    await generator.stop();
  }
  await expect(generator.count()).rejects.toThrow('the load generator ended with code 0');
});
