import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { eventBytes, mutated } from '../e2e/hostile/index.ts';
import {
  type ArgoObject,
  agentLine,
  application,
  type EmptyHub,
  giveAgentCredentials,
  namespace,
  Program,
  pairApplications,
  pairAppProjects,
  put,
  startEmptyHub,
} from '../e2e/pair/index.ts';
import { type PlayedPrincipal, playPrincipal, wirePeer } from '../e2e/peer/index.ts';
import { Random } from '../e2e/random/index.ts';
import { borrowCluster } from '../e2e/testbed/index.ts';
import { TokenAuthority } from '../lib/auth/index.ts';
import { effort, until } from '../lib/base/testing.ts';
import { configMaps, type KubeObject, namespaces, type ResourceType, secrets } from '../lib/kube/index.ts';
import { issueCertificate } from '../lib/pki/index.ts';
import {
  decodeEvent,
  eventTypes,
  messageEvent,
  type ObjectTarget,
  objectEvent,
  targets,
  type WireEvent,
  type WireTarget,
} from '../lib/wire/index.ts';
import { Event } from '../proto/gen/eventstreamapi/eventstream.ts';

/** The agent's cluster, with the key material of the principal that the test plays. */
let stand: EmptyHub;
let principal: PlayedPrincipal;
let agent: Program;
const peer = wirePeer('');
let untouched: Map<string, string>;

/** Where the agent may have Applications, besides its own namespace. */
const allowed = 'team';
const principalUid = 'hostile';
const origin = { source: '', principalUid };
const details = () => agent.output.slice(-4_000);

beforeAll(async () => {
  stand = await startEmptyHub({}, borrowCluster);
  const { client } = stand.hub;
  const certificate = await issueCertificate({
    authority: stand.authority,
    commonName: 'principal',
    hosts: ['127.0.0.1'],
    usages: ['server'],
  });
  principal = await playPrincipal({
    tls: { cert: certificate.certificate, key: certificate.key },
    version: 'hostile',
    principalNamespace: namespace,
    tokens: TokenAuthority.fromPem(stand.jwtKey),
    authenticate: async () => ({ agent: 'victim' }),
    peer: () => peer,
  });
  // A hub keeps the key beside it.
  await client.delete(secrets, { name: 'argocd-agent-ca', namespace });
  await giveAgentCredentials(client, stand.authority, 'victim');
  await Promise.all([allowed, 'private'].map((name) => client.create(namespaces, { metadata: { name } })));
  await Promise.all([
    client.create(pairApplications, application({ name: 'guarded', namespace: 'private' })),
    client.create(pairAppProjects, { metadata: { name: 'guarded', namespace: 'private' }, spec: {} }),
    client.create(secrets, { metadata: { name: 'guarded', namespace: 'private' }, data: { password: 'eA==' } }),
    put(client, 'argocd-secret', { 'admin.password': 'x' }),
    client.create(configMaps, {
      metadata: { name: 'argocd-rbac-cm', namespace },
      data: { 'policy.default': 'role:readonly' },
    }),
  ]);
  const { args } = await agentLine({
    kubeconfig: stand.hub.kubeconfig,
    server: principal.port,
    args: ['--destination-based-mapping', `--allowed-namespaces=${allowed}`],
  });
  agent = new Program(args);
  agent.start();
  await agent.says(/Connected to the principal/);
  await obeys();
  untouched = await others();
});
afterAll(async () => {
  await agent?.stop('SIGKILL');
  await principal?.close();
  await stand?.stop();
});

// After every attack the agent runs, follows correct events, and has changed only objects that a principal may change.
afterEach(async () => {
  expect(agent.pid, `the agent died:\n${details()}`).toBeDefined();
  await obeys();
  expect(await others()).toEqual(untouched);
  const status = await readFile(`/proc/${agent.pid}/status`, 'utf8');
  expect(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024, 'memory of the agent').toBeLessThan(1_200);
});

/** Sends events, on whatever stream there is, until each is acknowledged: a busy agent may have to reconnect. */
async function sendAll(events: readonly WireEvent[]): Promise<void> {
  for (let wave = 0; wave < events.length; wave += 200) {
    peer.say(...events.slice(wave, wave + 200));
    await until('the agent has acknowledged everything', async () => peer.writer.isIdle, { details });
  }
}

/** The agent follows a regular principal's events. */
async function obeys(): Promise<void> {
  const name = `honest-${randomUUID().slice(0, 8)}`;
  const object = {
    ...application({ name, namespace }),
    metadata: { name, namespace, uid: randomUUID(), resourceVersion: '1' },
  };
  peer.say(objectEvent(targets.application, eventTypes.create, object, origin));
  await until('the agent follows regular events', () => stand.hub.client.get(pairApplications, { name, namespace }), {
    details,
  });
}

/** Resource versions of all objects that a principal may not change. */
async function others(): Promise<Map<string, string>> {
  const { client } = stand.hub;
  const versions = async (type: ResourceType<KubeObject>, within: string, pick = (_: KubeObject) => true) =>
    (await client.list(type, { namespace: within }))
      .filter(pick)
      .map(({ metadata }) => [`${type.kind} ${within}/${metadata.name}`, metadata.resourceVersion ?? ''] as const);
  // The ConfigMap of keys stays without a mark when a principal withdraws it.
  const isOpen = ({ metadata }: KubeObject) =>
    metadata.annotations?.['argocd.argoproj.io/source-uid'] !== undefined || metadata.name === 'argocd-gpg-keys-cm';
  return new Map(
    (
      await Promise.all([
        ...[pairApplications, pairAppProjects, secrets, configMaps].map((type) => versions(type, 'private')),
        ...[secrets, configMaps].map((type) => versions(type, namespace, (object) => !isOpen(object))),
        ...[pairApplications, pairAppProjects, secrets, configMaps].map((type) => versions(type, 'default')),
        ...[pairApplications, secrets, configMaps].map((type) => versions(type, 'kube-system')),
      ])
    )
      .flat()
      .sort(),
  );
}

function said(target: string, type: string, payload: unknown): WireEvent {
  return messageEvent(target as WireTarget, type, payload, { source: '' });
}

const types = [
  eventTypes.create,
  eventTypes.specUpdate,
  eventTypes.delete,
  eventTypes.setOperation,
  eventTypes.terminateOperation,
  eventTypes.statusUpdate,
];

test('a principal reaches nothing outside the namespaces that the agent allows, and no object of another purpose', async () => {
  const { client } = stand.hub;
  const victims: ArgoObject[] = [...(await client.list(pairApplications, { namespace: 'private' }))];
  const events: WireEvent[] = [];
  const about = (target: ObjectTarget, type: string, object: object) =>
    objectEvent(target, type, object as ArgoObject, origin, { resourceId: randomUUID(), eventId: randomUUID() });
  for (const home of ['private', 'default', 'kube-system', '../private', 'private/x', 'PRIVATE', '']) {
    for (const type of types) {
      for (const { metadata, spec } of victims) {
        const marks = { 'argocd.argoproj.io/source-uid': metadata.uid ?? '' };
        events.push(
          about(targets.application, type, { metadata: { ...metadata, namespace: home, annotations: marks }, spec }),
        );
      }
      for (const name of ['guarded', 'argocd-secret', 'argocd-agent-client-tls', 'argocd-agent-ca']) {
        const metadata = { name, namespace: home, uid: 'u', resourceVersion: '1' };
        const labels = { 'argocd.argoproj.io/secret-type': 'repository' };
        const data = { url: 'eA==', project: 'ZGVmYXVsdA==', 'tls.crt': '', 'admin.password': 'eA==' };
        events.push(about(targets.repository, type, { metadata: { ...metadata, labels }, data }));
        events.push(about(targets.repository, type, { metadata, data }));
      }
      for (const name of ['argocd-rbac-cm', 'kube-root-ca.crt', 'argocd-cm']) {
        const metadata = { name, namespace: home, uid: 'u', resourceVersion: '1' };
        events.push(about(targets.gpgKey, type, { metadata, data: { 'policy.default': 'role:admin' } }));
      }
    }
  }
  await sendAll(events);
});

test('what is nobody’s message harms nobody', async () => {
  const nested = (depth: number) => JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`) as unknown;
  const payloads = [
    null,
    [],
    1,
    'x',
    {},
    { metadata: null },
    { metadata: { name: 7 } },
    { metadata: { name: '__proto__' }, spec: {} },
    { metadata: { name: 'x'.repeat(10_000) }, spec: {} },
    { metadata: { name: 'deep' }, spec: nested(900) },
    { metadata: { name: 'listed', uid: 'u' }, spec: [] },
    // It belongs to no source, and so is never correct.
    { metadata: { name: 'unidentified' }, spec: { project: 'default' } },
    { metadata: { name: 'unidentified', uid: '' }, spec: { project: 'default' } },
    {
      metadata: {
        name: 'many',
        uid: 'u',
        labels: Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`l${i}`, 'x'])),
      },
      spec: {},
    },
  ];
  const events = Object.values(targets)
    .filter((target) => target !== targets.eventProcessed)
    .flatMap((target) =>
      [...Object.values(eventTypes), 'GET', 'constructor'].flatMap((type) =>
        payloads
          .slice(0, types.includes(type as (typeof types)[number]) ? undefined : 3)
          .map((payload) => said(target, type, payload)),
      ),
    );
  await sendAll(events);
});

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

const spoilt = effort(600, 3_000);

test(`${spoilt} spoilt messages of a principal (SEED=${seed})`, async () => {
  const random = new Random(seed);
  const object = { ...application({ name: 'spoilt', namespace }), operation: { sync: {} } };
  const secret = { metadata: { name: 'spoilt', namespace, uid: 'u' }, data: { url: 'eA==' } };
  const messages = [
    ...types.map((type) => objectEvent(targets.application, type, object, origin)),
    ...types.map((type) => objectEvent(targets.appProject, type, object, origin)),
    ...types.map((type) => objectEvent(targets.repository, type, secret, origin)),
    ...types.map((type) =>
      objectEvent(targets.gpgKey, type, { ...secret, metadata: { name: 'argocd-gpg-keys-cm', uid: 'u' } }, origin),
    ),
    said(targets.resourceResync, eventTypes.requestResourceResync, {}),
    said(targets.resourceResync, eventTypes.responseSyncedResource, { kind: 'Application', name: 'spoilt', uid: 'u' }),
  ].map(eventBytes);
  const words = [
    ...Object.values(targets),
    ...Object.values(eventTypes),
    'spoilt',
    'guarded',
    'private',
    '__proto__',
    '',
    'metadata',
  ];
  for (let count = 0; count < spoilt; count++) {
    try {
      principal.sessions.at(-1)?.stream.send(decodeEvent(Event.decode(mutated(messages, words, random)).event));
    } catch {
      // An invalid event does not pass our own codec, which the agent uses too.
    }
  }
});

test('a principal that ends and opens streams, and answers nothing', async () => {
  for (let count = 0; count < 5; count++) {
    const connected = agent.output.length;
    principal.server.disconnect('victim', 'go away');
    await agent.says(/Connected to the principal/, { after: connected });
  }
});

test('a flood of requests', async () => {
  for (let index = 0; index < 20_000; index++) {
    const told = { kind: 'Application', name: `made-up-${index}`, namespace, uid: `u${index}` };
    principal.sessions.at(-1)?.stream.send(said(targets.resourceResync, eventTypes.responseSyncedResource, told));
  }
});
