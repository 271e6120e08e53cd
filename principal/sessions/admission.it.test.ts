import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  application,
  giveAgentCredentials,
  mapAgent,
  namespace,
  type Pair,
  pairApplications,
  put,
  putTls,
  startPair,
} from '../../e2e/pair/index.ts';
import { until } from '../../lib/base/testing.ts';
import { configMaps, leases, secrets } from '../../lib/kube/index.ts';
import { createAuthority, generateJwtKey, issueCertificate } from '../../lib/pki/index.ts';

let pair: Pair;
const logs = () => ({
  details: () => `${pair.principal.output.slice(-3_000)}\n---\n${pair.agent.output.slice(-3_000)}`,
});

beforeAll(async () => {
  pair = await startPair({
    principal: { args: ['--destination-based-mapping'] },
    agent: { args: ['--destination-based-mapping', '--create-namespace', '--allowed-namespaces=*'] },
  });
});
afterAll(async () => {
  await pair?.stop();
});

/** Starts another agent with its own key material and returns the message of its first failure. */
async function refusal(material: (put: typeof giveAgentCredentials) => Promise<void>): Promise<string> {
  await material(giveAgentCredentials);
  const agent = await pair.otherAgent();
  agent.start();
  const [line] = await agent.says(/time=.*level=(warning|error).*retry.*\n/i);
  await agent.stop('SIGKILL');
  return line;
}

/** The hub's record of the agent's connection. */
async function connected(): Promise<string | undefined> {
  const lease = await pair.hub.client.get(leases, { name: `argocd-agent-${pair.name}`, namespace });
  return lease?.metadata.annotations?.['argocd-agent.argoproj-labs.io/connected'];
}

/** The fingerprint of the principal's server certificate. */
async function shownCertificate(): Promise<string> {
  const own = await pair.managed.client.get(secrets, { name: 'argocd-agent-client-tls', namespace });
  const [cert, key] = ['tls.crt', 'tls.key'].map((name) => Buffer.from(own?.data?.[name] ?? '', 'base64'));
  const socket = connect({
    host: '127.0.0.1',
    port: pair.principalPort,
    ca: pair.authority.certificate,
    ALPNProtocols: ['h2'],
    ...(cert && key && { cert, key }),
  });
  try {
    await once(socket, 'secureConnect');
    return socket.getPeerX509Certificate()?.fingerprint256 ?? '';
  } finally {
    socket.destroy();
  }
}

/** A new agent process, connected when it resolves. */
async function restartAgent(): Promise<void> {
  await pair.agent.stop();
  await until('the old process is disconnected', async () => (await connected()) === 'false', logs());
  const said = pair.principal.output.length;
  pair.agent.start();
  await pair.principal.says(/An agent is connected/, { after: said });
}

test('with destination-based mapping Applications keep their namespace, which is created', async () => {
  const { hub, managed } = pair;
  await hub.client.create(
    pairApplications,
    application({ name: 'here', namespace, spec: { destination: { name: pair.name } } }),
  );
  await until('it arrives', () => managed.client.get(pairApplications, { name: 'here', namespace }), logs());
  await hub.client.create(
    pairApplications,
    application({ name: 'else', namespace, spec: { destination: { name: 'in-cluster' } } }),
  );
  await hub.client.apply(
    { group: '', version: 'v1', kind: 'Namespace', plural: 'namespaces', namespaced: false },
    { metadata: { name: 'team' } },
    { fieldManager: 'test' },
  );
  await hub.client.create(
    pairApplications,
    application({ name: 'there', namespace: 'team', spec: { destination: { name: pair.name } } }),
  );
  await until('it arrives', () => managed.client.get(pairApplications, { name: 'there', namespace: 'team' }), logs());
  expect(await managed.client.get(pairApplications, { name: 'else', namespace })).toBeUndefined();
  await hub.client.mergePatch(
    pairApplications,
    { name: 'here', namespace },
    { spec: { destination: { name: 'another' } } },
  );
  await until(
    'it leaves with its destination',
    async () => (await managed.client.get(pairApplications, { name: 'here', namespace })) === undefined,
    logs(),
  );
});

test('an agent gets its Applications when its cluster Secret appears', async () => {
  const { hub, managed } = pair;
  await hub.client.delete(secrets, { name: `cluster-${pair.name}`, namespace });
  await pair.principal.says(/no longer mapped/);
  await hub.client.create(
    pairApplications,
    application({ name: 'early', namespace, spec: { destination: { name: pair.name } } }),
  );
  await mapAgent(hub.client, pair.name);
  await until('it arrives', () => managed.client.get(pairApplications, { name: 'early', namespace }), logs());
});

test('the connection is recorded', async () => {
  await until('it says connected', async () => (await connected()) === 'true', logs());
  await pair.agent.stop();
  await until('it says disconnected', async () => (await connected()) === 'false', logs());
  pair.agent.start();
  await until('it says connected again', async () => (await connected()) === 'true', logs());
});

test('ocm defect H5: ocm defect M8: a new principal certificate is served without a restart', async () => {
  const said = pair.principal.output.length;
  const certificate = await issueCertificate({
    authority: pair.authority,
    commonName: 'renewed',
    hosts: ['127.0.0.1'],
    usages: ['server'],
  });
  const shown = await shownCertificate();
  await putTls(pair.hub.client, 'argocd-agent-principal-tls', certificate);
  await pair.principal.says(/credentials changed and were reloaded/, { after: said });
  await until('the new certificate', async () => (await shownCertificate()) !== shown, logs());
  expect(await shownCertificate()).toBe(new X509Certificate(certificate.certificate).fingerprint256);
  await restartAgent();
});

test('a new token key counts without a restart', async () => {
  const said = pair.principal.output.length;
  await put(pair.hub.client, 'argocd-agent-jwt', { 'jwt.key': await generateJwtKey(2048) });
  await pair.principal.says(/credentials changed and were reloaded.*argocd-agent-jwt/, { after: said });
  await restartAgent();
});

test('a blocked certificate is disconnected and not let in again, until it is taken off the list', async () => {
  const { hub, managed } = pair;
  const secret = await managed.client.get(secrets, { name: 'argocd-agent-client-tls', namespace });
  const pem = Buffer.from(secret?.data?.['tls.crt'] ?? '', 'base64');
  const fingerprint = new X509Certificate(pem).fingerprint256.replaceAll(':', '');
  const metadata = { name: 'argocd-agent-tls-blocklist', namespace };
  const before = pair.agent.output.length;
  await hub.client.create(configMaps, { metadata, data: { [fingerprint]: '' } });
  await pair.principal.says(/open connection is ended: the client certificate is on the blocklist/);
  await pair.principal.says(/blocklist/);
  await pair.agent.says(/refused us.*\n/, { after: before });
  const after = pair.agent.output.length;
  await hub.client.delete(configMaps, metadata);
  await pair.agent.says(/Connected to the principal/, { after });
});

test('refused agents get the reason', async () => {
  const { managed, authority } = pair;
  const stranger = await createAuthority({ commonName: 'another authority' });
  const wrongCa = await refusal((put) => put(managed.client, stranger, pair.name, { trust: authority }));
  expect(wrongCa).toMatch(/client certificate must be in force and issued by the CA that the principal trusts/);

  const untrusted = await refusal((put) => put(managed.client, authority, pair.name, { trust: stranger }));
  expect(untrusted).toMatch(/certificate.*(CA|trust)/i);

  const badName = await refusal((put) => put(managed.client, authority, 'Not_A_Name'));
  expect(badName).toMatch(/refused us.*authentication failed.*the principal's log says which/);
  await pair.principal.says(/Not_A_Name.*is no DNS label/);

  await giveAgentCredentials(managed.client, authority, pair.name);
});

test('an expired client certificate is named', async () => {
  const { managed, authority } = pair;
  const now = new Date(Date.now() - 3 * 24 * 3_600_000);
  await giveAgentCredentials(managed.client, authority, pair.name, { lifetimeMs: 3_600_000, now });
  const agent = await pair.otherAgent();
  agent.start();
  await agent.says(/argocd-agent-client-tls.*expired at/);
  await giveAgentCredentials(managed.client, authority, pair.name);
  await agent.says(/Connected to the principal/);
  await agent.stop('SIGKILL');
});

test('an agent that cannot list its cluster in time ends and names what is missing', async () => {
  const agent = await pair.otherAgent({ args: ['--informer-sync-timeout=1ms'] });
  agent.start();
  await agent.says(/\[FATAL\]: .*Applications.* could not be listed within 1ms: .*ARGOCD_AGENT_INFORMER_SYNC_TIMEOUT/);
  expect(await agent.exited()).toBe(1);
});

test('a principal that is stopped sends its agents away at once and records that they are gone', async () => {
  await restartAgent();
  await until('it says connected', async () => (await connected()) === 'true', logs());
  const said = pair.agent.output.length;
  expect(await pair.principal.stop()).toBe(0);
  await pair.agent.says(/does not serve us now: the principal is shutting down/, { after: said });
  expect(await connected()).toBe('false');
  const after = pair.agent.output.length;
  pair.principal.start();
  await pair.agent.says(/Connected to the principal/, { after });
});
