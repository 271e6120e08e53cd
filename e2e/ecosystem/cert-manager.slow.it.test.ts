import { once } from 'node:events';
import { connect } from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { secrets } from '../../lib/kube/index.ts';
import { inspectCertificate, secretText } from '../../lib/pki/index.ts';
import { application, namespace, type Pair, type Program, pairApplications, put, startPair } from '../pair/index.ts';
import { managedCertificates, putIssuers, renewByHand, startCertManager, untilIssued } from './cert-manager.ts';

// cert-manager's own controller on the hub issues everything: the authority, the principal's certificates, the agent's. The
// test carries the agent's to its cluster, as a tool for Secrets does.

let pair: Pair;
let certManager: Program | undefined;

beforeAll(async () => {
  pair = await startPair({ idle: true });
  const { client } = pair.hub;
  certManager = await startCertManager(pair.hub);
  for (const name of ['argocd-agent-ca', 'argocd-agent-principal-tls', 'argocd-agent-resource-proxy-tls']) {
    await client.delete(secrets, { namespace, name });
  }
  await putIssuers(client, namespace);
  await certificate('argocd-agent-ca', {
    isCA: true,
    commonName: 'argocd-agent-ca',
    issuerRef: { name: 'own' },
    // With its own key each time, certificates that it has signed before would not be trusted any more.
    privateKey: { algorithm: 'ECDSA', size: 384, rotationPolicy: 'Never' },
  });
  const server = { ipAddresses: ['127.0.0.1'], usages: ['digital signature', 'server auth'] };
  await certificate('argocd-agent-principal-tls', { commonName: 'argocd-agent-principal', ...server });
  await certificate('argocd-agent-resource-proxy-tls', { commonName: 'argocd-agent-resource-proxy', ...server });
  await certificate('agent-cluster1', { commonName: pair.name, usages: ['digital signature', 'client auth'] });
  await carry();
  pair.principal.start();
  pair.agent.start();
  await pair.agent.says(/Connected to the principal/);
});
afterAll(async () => {
  await certManager?.stop('SIGKILL');
  await pair?.stop();
});
beforeEach(() =>
  onTestFailed(() =>
    console.error([pair.principal, pair.agent, certManager].map((one) => one?.output.slice(-3_000)).join('\n---\n')),
  ),
);

/** Makes a Certificate whose Secret has its name; resolves when it is issued. */
async function certificate(name: string, spec: object): Promise<void> {
  await pair.hub.client.create(managedCertificates, {
    metadata: { namespace, name },
    spec: {
      secretName: name,
      issuerRef: { name: 'fleet' },
      privateKey: { algorithm: 'ECDSA', size: 256, rotationPolicy: 'Always' },
      ...spec,
    },
  });
  await untilIssued(pair.hub.client, { namespace, name });
}

const fields = async (name: string) => {
  const data = (await pair.hub.client.get(secrets, { namespace, name }))?.data;
  const text = (key: string) => secretText(data, key) ?? '';
  return { 'ca.crt': text('ca.crt'), 'tls.crt': text('tls.crt'), 'tls.key': text('tls.key') };
};

/** Brings the agent's Secret to its cluster, whole, and the authority's certificate. */
async function carry(): Promise<void> {
  const found = await fields('agent-cluster1');
  await put(pair.managed.client, 'argocd-agent-client-tls', found, { type: 'kubernetes.io/tls' });
  await put(pair.managed.client, 'argocd-agent-ca', { 'ca.crt': found['ca.crt'] });
}

/** The serial number of the certificate that the principal shows. */
async function shown(): Promise<string> {
  const { 'ca.crt': ca, 'tls.crt': cert, 'tls.key': key } = await fields('agent-cluster1');
  const socket = connect({ host: '127.0.0.1', port: pair.principalPort, ca, cert, key, ALPNProtocols: ['h2'] });
  try {
    await once(socket, 'secureConnect');
    return socket.getPeerX509Certificate()?.serialNumber ?? '';
  } finally {
    socket.destroy();
  }
}

async function delivers(name: string): Promise<void> {
  await pair.hub.client.create(pairApplications, application({ name, namespace: pair.name }));
  await until('it is delivered', () => pair.managed.client.get(pairApplications, { name, namespace }));
}

async function reconnects(): Promise<void> {
  await pair.agent.stop();
  const after = pair.agent.output.length;
  pair.agent.start();
  await pair.agent.says(/Connected to the principal/, { after });
}

describe("cert-manager's own controller", { tags: 'cert-manager' }, () => {
  test('an agent connects with certificates of an authority P-384 that cert-manager has made', async () => {
    const { 'tls.crt': authority, 'tls.key': key } = await fields('argocd-agent-ca');
    expect(inspectCertificate(authority).isAuthority).toBe(true);
    expect(key).toContain('BEGIN EC PRIVATE KEY');
    await delivers('first');
  });

  test('the principal shows a renewed certificate without a restart', async () => {
    const before = await shown();
    await renewByHand(pair.hub.client, { namespace, name: 'argocd-agent-principal-tls' });
    await until('another certificate', async () => (await shown()) !== before);
    await reconnects();
    await delivers('second');
  });

  test('the authority is renewed in place with its key, and every certificate of it stays good', async () => {
    const before = await fields('argocd-agent-ca');
    await renewByHand(pair.hub.client, { namespace, name: 'argocd-agent-ca' });
    const now = await fields('argocd-agent-ca');
    expect(now['tls.key']).toBe(before['tls.key']);
    expect(now['tls.crt']).not.toBe(before['tls.crt']);
    await reconnects();
    await delivers('third');
    // Certificates that are issued now are of the renewed one.
    await renewByHand(pair.hub.client, { namespace, name: 'agent-cluster1' });
    await carry();
    await reconnects();
    await delivers('fourth');
  });
});
