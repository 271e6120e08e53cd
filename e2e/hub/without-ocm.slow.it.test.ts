import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFailed } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { principalObjects, splitHostPort } from '../../lib/base/index.ts';
import { until } from '../../lib/base/testing.ts';
import {
  configMaps,
  deployments,
  type KubeObject,
  namespaces,
  pods,
  type ResourceType,
  resourceType,
  type Secret,
  secrets,
} from '../../lib/kube/index.ts';
import {
  generateJwtKey,
  generatePrivateKey,
  inspectCertificate,
  issueCertificate,
  secretText,
  signingRequestFor,
  tlsOfSecret,
  tlsSecretData,
} from '../../lib/pki/index.ts';
import { requestCertificate } from '../../lib/wire/index.ts';
import { fleetApplications } from '../fleet/index.ts';
import { loopbackAddress, type Node, startNode } from '../node/index.ts';
import { requestsOf } from '../rights/index.ts';
import { type Cluster, startCluster, waitForObject } from '../testbed/index.ts';
import { argoCdCrds, helm, installCrds, principalChart } from './index.ts';

// Without Open Cluster Management: the principal from its chart, which makes its certificates, and an agent from the manifest
// of `argocd-agent enroll`, on two clusters.

const namespace = 'argocd';
const day = 24 * 3_600_000;
let hub: Cluster;
let edge: Cluster;
const nodes: Node[] = [];
let folder: string;

beforeAll(async () => {
  sink.listen(0, '127.0.0.1');
  await once(sink, 'listening');
  folder = await mkdtemp(join(tmpdir(), 'without-ocm-'));
  [hub, edge] = await Promise.all([startCluster({ audit: true }), startCluster({ audit: true })]);
  for (const [cluster, name] of [
    [hub, 'hub'],
    [edge, 'edge'],
  ] as const) {
    nodes.push(await startNode({ cluster, dir: join(folder, name) }));
    await installCrds(cluster.client, await argoCdCrds());
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    await cluster.client.create(namespaces, { metadata: { name: namespace, labels } });
  }
});
afterAll(async () => {
  await Promise.all(nodes.map((node) => node.stop()));
  await Promise.all([hub?.stop(), edge?.stop()]);
  await rm(folder, { recursive: true, force: true });
  sink.closeAllConnections();
  sink.close();
});

/** Runs a command of `argocd-agent`, as an operator of the hub. */
const operator = (...args: string[]) => run('argocd-agent', args);

function run(program: string, args: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  const entry = new URL(`../../bin/${program}.ts`, import.meta.url).pathname;
  return new Promise((resolve) => {
    const env = { PATH: process.env.PATH ?? '', HOME: '/nonexistent', KUBECONFIG: hub.kubeconfig };
    execFile(process.execPath, [entry, ...args], { env, timeout: 60_000 }, (error, out, err) =>
      resolve({ code: error === null ? 0 : Number(error.code), out, err }),
    );
  });
}

function typeOf({ apiVersion = '', kind = '', metadata }: KubeObject): ResourceType {
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  const plural = kind.endsWith('y') ? `${kind.slice(0, -1).toLowerCase()}ies` : `${kind.toLowerCase()}s`;
  return resourceType({ group, version, kind, plural, namespaced: metadata.namespace !== undefined });
}

const objectsOf = (manifest: string) => parseAllDocuments(manifest).map((document) => document.toJS() as KubeObject);
const hubSecret = (name: string) => hub.client.get(secrets, { namespace, name });
const edgeSecret = (name: string) => edge.client.get(secrets, { namespace, name });
const textOf = async (name: string, key: string) => secretText((await hubSecret(name))?.data, key) ?? '';

async function isAvailable(cluster: Cluster, name: string): Promise<void> {
  const done = (d: { status?: { availableReplicas?: number } } | undefined) => d?.status?.availableReplicas === 1;
  await waitForObject(cluster.client, deployments, { namespace, name }, done, { timeoutMs: 240_000 });
}

/** Makes an Application for the agent on the hub, and waits until it is on the cluster. */
async function delivered(name: string): Promise<void> {
  const spec = {
    project: 'default',
    source: { repoURL: 'https://example.com/shop.git', path: '.' },
    destination: { name: 'edge-1', namespace: 'shop' },
  };
  await hub.client.create(fleetApplications, { metadata: { namespace, name }, spec });
  const isThere = (application: unknown) => application !== undefined;
  await waitForObject(edge.client, fleetApplications, { namespace, name }, isThere, { timeoutMs: 120_000 });
}

/** The fingerprint of the certificate that the principal shows. */
async function shownCertificate(server: string): Promise<string | undefined> {
  const { host, port = 0 } = splitHostPort(server) ?? {};
  const socket = connect({ ...(host && { host }), port, rejectUnauthorized: false, ALPNProtocols: ['h2'] });
  try {
    await once(socket, 'secureConnect');
    return socket.getPeerX509Certificate()?.fingerprint256.replaceAll(':', '');
  } finally {
    socket.destroy();
  }
}

/** The token in a manifest, and the address of the principal. */
function enrolmentIn(manifest: string): { token: string; server: string } {
  const objects = objectsOf(manifest);
  const named = (name: string) =>
    objects.find(({ metadata }) => metadata.name === name) as { data?: Record<string, string> };
  const { data: params = {} } = named('argocd-agent-params');
  const server = `${params['agent.server.address']}:${params['agent.server.port']}`;
  return { token: secretText(named('argocd-agent-enrolment').data, 'token') ?? '', server };
}

/** Asks the principal for a certificate, as an agent with a key of its own does. */
async function exchange({ token, server }: { token: string; server: string }, commonName = token.split('.')[0] ?? '') {
  const key = await generatePrivateKey('p256');
  const request = await signingRequestFor(key, commonName);
  const ca = await textOf('argocd-agent-ca', 'tls.crt');
  const signal = AbortSignal.timeout(30_000);
  return requestCertificate({ server, tls: { ca }, token, request, signal });
}

async function logs(): Promise<string> {
  const ends = [hub, edge].map(async ({ client }) =>
    (await client.list(pods)).map(async ({ metadata: { namespace: where, name } }) => {
      const { body } = await client.request(`/api/v1/namespaces/${where}/pods/${name}/log?tailLines=40`);
      return `--- ${where}/${name}\n${await body.text()}`;
    }),
  );
  return (await Promise.all((await Promise.all(ends)).flat())).join('\n');
}

beforeEach(() => onTestFailed(async () => console.error(await logs())));

const principal = 'argocd-agent-principal';
const digest = `sha256:${'0'.repeat(64)}`;

/** Changes values of the principal's release; resolves when it runs with them. */
async function changed(...values: string[]): Promise<void> {
  const sets = values.flatMap((value) => ['--set', value]);
  const wait = ['--reuse-values', '--wait', '--timeout', '4m'];
  const { kubeconfig } = hub;
  await helm(['upgrade', principal, principalChart, '--namespace', namespace, ...wait, ...sets], { kubeconfig });
}

/** What a sink of events gets. */
const received: IncomingHttpHeaders[] = [];
const sink = createServer((request, response) => {
  received.push(request.headers);
  request.resume();
  response.writeHead(204).end();
});
const port = process.getuid?.() === 0 ? '443' : '8443';

// Programs start one after the other, and the machine may be busy.
describe('without Open Cluster Management', { timeout: 400_000 }, () => {
  it('the principal runs from its chart, with certificates of its own', async () => {
    const key = Buffer.from(await generateJwtKey()).toString('base64');
    await hub.client.create(secrets, { metadata: { namespace, name: 'argocd-agent-jwt' }, data: { 'jwt.key': key } });
    const values = [
      'principal.destinationBasedMapping=true',
      `service.port=${port}`,
      'pki.addresses={hub.example.com}',
      `image.digest=${digest}`,
    ];
    const args = values.flatMap((value) => ['--set', value]);
    const { kubeconfig } = hub;
    await helm(['install', principal, principalChart, '--namespace', namespace, ...args], { kubeconfig });
    await isAvailable(hub, principal);
    const certificate = inspectCertificate(await textOf('argocd-agent-principal-tls', 'tls.crt'));
    expect(certificate.dnsNames).toEqual(expect.arrayContaining(['hub.example.com', `${principal}.${namespace}.svc`]));
    expect(await textOf('argocd-agent-ca', 'tls.key')).toContain('PRIVATE KEY');
    expect((await hubSecret('argocd-agent-jwt'))?.data).toEqual({ 'jwt.key': key });
    const release = ['test', principal, '--namespace', namespace, '--timeout', '4m'];
    expect(await helm(release, { kubeconfig })).toContain('Succeeded');
  });

  let manifest: string;

  it('one command enrolls an agent, and its manifest connects it', async () => {
    const { code, out, err } = await operator('enroll', 'edge-1', '--label=env=prod', '--label', 'example.com/zone=a');
    expect({ code, err }).toEqual({ code: 0, err: expect.stringContaining('agent edge-1 is enrolled') });
    expect((await hubSecret('cluster-edge-1'))?.metadata.labels).toMatchObject({
      'argocd.argoproj.io/secret-type': 'cluster',
      env: 'prod',
      'example.com/zone': 'a',
    });
    manifest = out;
    expect(manifest).not.toContain('PRIVATE KEY');
    expect(manifest, 'the image of the principal').toMatch(new RegExp(`image: \\S+@${digest}\\n`));
    for (const object of objectsOf(manifest)) {
      await edge.client.apply(typeOf(object), object, { fieldManager: 'kubectl', force: true });
    }
    await isAvailable(edge, 'argocd-agent-agent');
    await delivered('shop');
  });

  it('nothing of a token is left on the hub after its first login, and the key never leaves the cluster', async () => {
    await until('the token has ended', async () => !(await secretsOfHub()).includes('"hash'));
    const key = secretText((await edgeSecret('argocd-agent-client-tls'))?.data, 'tls.key') ?? '';
    expect(key).toContain('PRIVATE KEY');
    expect(await secretsOfHub()).not.toContain(key.split('\n')[1]);
  });

  it('an agent that is enrolled is enrolled again only on demand', async () => {
    const { code, out, err } = await operator('enroll', 'edge-1');
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toContain('agent edge-1 is enrolled already (Secret argocd/cluster-edge-1): add --again');
    const before = await hubSecret('cluster-edge-1');
    const again = await operator('enroll', 'edge-1', '--again', '--label=env=test');
    expect(again.code, again.err).toBe(0);
    expect(enrolmentIn(again.out).token).not.toBe(enrolmentIn(manifest).token);
    const after = (await hubSecret('cluster-edge-1'))?.metadata;
    expect(after?.uid).toBe(before?.metadata.uid);
    expect(after?.labels).toEqual({ ...before?.metadata.labels, env: 'test' });
  });

  it('a token counts once, for its name, and until it expires', async () => {
    const { out } = await operator('enroll', 'edge-2');
    const enrolment = enrolmentIn(out);
    const known = await secretsOfHub();
    expect(known, 'the hub has a hash of the token').toContain('"hash');
    expect(known, 'and no more').not.toContain(enrolment.token.split('.')[1]);
    await expect(exchange(enrolment, 'edge-1')).rejects.toThrow('its request is for another name');
    const stolen = { ...enrolment, token: enrolment.token.replace('edge-2', 'edge-1') };
    await expect(exchange(stolen)).rejects.toThrow(/gives us no certificate: enrolment refused$/);
    const issued = await Promise.allSettled([exchange(enrolment), exchange(enrolment), exchange(enrolment)]);
    const won = issued.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
    expect(won.map(({ certificate }) => inspectCertificate(certificate).commonName)).toEqual(['edge-2']);
    await expect(exchange(enrolment)).rejects.toThrow('its token has been used');

    const { out: late } = await operator('enroll', 'edge-3', '--token-ttl=1ms');
    await expect(exchange(enrolmentIn(late))).rejects.toThrow('its token has expired');
  });

  it('makes the key itself for agents that cannot, and the namespace of an autonomous one', async () => {
    const { out, code } = await operator('enroll', 'edge-5', '--certificate=generate', '--mode=autonomous');
    expect(code).toBe(0);
    const tls = objectsOf(out).find(({ metadata }) => metadata.name === 'argocd-agent-client-tls') as Secret;
    const pair = tlsOfSecret(tls.data);
    expect(inspectCertificate(pair?.certificate ?? '')).toMatchObject({ commonName: 'edge-5', usages: ['client'] });
    expect(out).not.toContain('argocd-agent-enrolment');
    expect(await hub.client.get(namespaces, { name: 'edge-5' })).toBeDefined();
    expect(await hub.client.get(namespaces, { name: 'edge-1' })).toBeUndefined();

    const key = { namespace, name: `${principal}-params` };
    const mapped = (isMapped: boolean) => ({ data: { 'principal.destination-based-mapping': String(isMapped) } });
    await hub.client.mergePatch(configMaps, key, mapped(false));
    const { err } = await operator('enroll', 'edge-6');
    expect(err).toContain(
      'the principal does not handle Applications in namespace edge-6: add it to principal.allowed-',
    );
    await hub.client.mergePatch(configMaps, key, mapped(true));
  });

  it('certificates are renewed by the agent, and by pki, while the agent stays connected', async () => {
    const authority = tlsOfSecret((await hubSecret('argocd-agent-ca'))?.data);
    if (authority === undefined) {
      throw new Error('there is no authority');
    }
    // Its life begins five minutes ago: two thirds of it are over.
    const aging = { authority, lifetimeMs: 120_000 };
    const client = await issueCertificate({ ...aging, commonName: 'edge-1', usages: ['client'] });
    const key = { namespace, name: 'argocd-agent-client-tls' };
    await edge.client.mergePatch(secrets, key, { data: tlsSecretData(client) });
    await until('the agent has renewed its certificate', async () => {
      const now = secretText((await edgeSecret(key.name))?.data, 'tls.crt') ?? '';
      return now !== client.certificate && inspectCertificate(now).commonName === 'edge-1';
    });

    const before = await textOf('argocd-agent-principal-tls', 'tls.crt');
    const { dnsNames, ipAddresses } = inspectCertificate(before);
    const hosts = [...dnsNames, ...ipAddresses];
    const server = await issueCertificate({ ...aging, commonName: principal, hosts, usages: ['server', 'client'] });
    await hub.client.mergePatch(
      secrets,
      { namespace, name: 'argocd-agent-principal-tls' },
      { data: tlsSecretData(server) },
    );
    const { out, code } = await operator('pki');
    expect(code).toBe(0);
    expect(out).toContain('argocd-agent-principal-tls: issued, because two thirds of its life are over');
    expect(out).toContain('argocd-agent-jwt: yours, kept');
    const renewed = inspectCertificate(await textOf('argocd-agent-principal-tls', 'tls.crt'));
    expect(renewed.dnsNames).toEqual(dnsNames);
    expect(renewed.notAfter.getTime()).toBeGreaterThan(Date.now() + 89 * day);
    const { server: address } = enrolmentIn(manifest);
    const isShown = async () => (await shownCertificate(address)) === renewed.fingerprint;
    await until('the principal shows the renewed certificate', isShown);
    await delivered('shop-2');
    expect(await logs()).not.toContain('An agent is disconnected');
  });

  it('says what is wrong', async () => {
    const refused = async (...args: string[]) => {
      const { code, out, err } = await operator('enroll', ...args);
      expect({ code, out }).toEqual({ code: 1, out: '' });
      return err;
    };
    await hub.client.create(secrets, { metadata: { namespace, name: 'cluster-mine' } });
    expect(await refused('mine')).toContain('Secret argocd/cluster-mine is not the cluster Secret of agent mine');
    await hub.client.create(namespaces, { metadata: { name: 'empty' } });
    expect(await refused('edge-4', '--namespace=empty')).toContain(
      'has no address of a load balancer: give --principal-address',
    );
    const labels = (await hubSecret('argocd-agent-principal-tls'))?.metadata.labels ?? {};
    const own = { metadata: { labels: { 'app.kubernetes.io/managed-by': null } } };
    await hub.client.mergePatch(secrets, { namespace, name: 'argocd-agent-principal-tls' }, own);
    expect(await refused('edge-4', '--principal-address=other.example.com')).toContain(
      'which you made, is not for other.example.com',
    );
    await hub.client.mergePatch(secrets, { namespace, name: 'argocd-agent-principal-tls' }, { metadata: { labels } });
    expect(await hubSecret('cluster-edge-4')).toBeUndefined();
  });

  it('the fleet page shows a certificate for the names of its Service', async () => {
    const token = Buffer.from('open sesame\n').toString('base64');
    await hub.client.create(secrets, { metadata: { namespace, name: 'sink-token' }, data: { token } });
    await changed(
      'principal.fleetPage.enabled=true',
      `principal.events.sinkUrl=http://127.0.0.1:${(sink.address() as AddressInfo).port}`,
      'principal.events.tokenSecret=sink-token',
    );
    const servername = `${principal}-fleet-page.${namespace}.svc`;
    const ca = await textOf('argocd-agent-ca', 'tls.crt');
    await until('the page at its name', async () => {
      const [pod] = await hub.client.list(pods, { namespace, labelSelector: principalObjects.labelSelector });
      const socket = connect({ host: loopbackAddress(pod?.status?.podIP ?? ''), port: 8446, servername, ca });
      try {
        await once(socket, 'secureConnect');
        return socket.authorized;
      } finally {
        socket.destroy();
      }
    });
  });

  it('events of the fleet go to a sink, with the token of a Secret', async () => {
    const connected = await until('the event', () =>
      received.find((headers) => headers['ce-type'] === 'io.argoproj.argocd-agent.fleet.agent-connected'),
    );
    expect(connected).toMatchObject({ 'ce-subject': 'agents/edge-1', authorization: 'Bearer open sesame' });
  });

  it('the state of a principal of a pair is asked for through the API server, which forwards the port of its pod', async () => {
    const ask = (...args: string[]) => run('argocd-agentctl', ['ha', 'status', '--timeout', '30s', ...args]);
    expect(await ask()).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        /failed to get HA status: error forwarding port 8405 to pod argocd-agent-principal-.*ECONNREFUSED.*; is the principal one of a pair \(--ha-enabled\)\?\n$/,
      ),
    });
    await changed('principal.ha.enabled=true', 'principal.ha.adminAuth=mtls:subject:^CN=ha-admin(\\,|$)');
    expect(await run('argocd-agentctl', ['pki', 'issue', 'ha-admin'])).toMatchObject({ code: 0 });
    const issued = await hub.client.get(secrets, { namespace, name: 'argocd-agent-ha-admin-tls' });
    const { out: authority } = await run('argocd-agentctl', ['pki', 'dump', '--cert']);
    const [cert, key] = [secretText(issued?.data, 'tls.crt'), secretText(issued?.data, 'tls.key')];
    const files = Object.entries({ cert, key, ca: authority });
    const flags = files.flatMap(([flag]) => [`--tls-${flag}`, join(folder, `admin.${flag}`)]);
    await Promise.all(files.map(([flag, pem = '']) => writeFile(join(folder, `admin.${flag}`), pem)));
    let answer = '';
    const details = () => answer;
    await until(
      'an answer of the pair',
      async () => {
        const { code, out, err } = await ask(...flags);
        answer = out + err;
        return code === 0 && out.includes('State:             active\nPreferred Role:    primary\n');
      },
      { details },
    );
    const { out } = await ask('-o', 'json', ...flags);
    expect(JSON.parse(out)).toMatchObject({ state: 'active', preferred_role: 'primary' });
    expect(await ask()).toMatchObject({
      code: 1,
      err: expect.stringContaining('Provide --tls-cert, --tls-key, and --tls-ca'),
    });
  });

  it('doctor finds nothing, and a request goes to the cluster and back', async () => {
    const all = await run('argocd-agentctl', ['doctor', 'edge-1', '-o', 'json']);
    expect(JSON.parse(all.out), all.err).toMatchObject({ findings: [], roundTrip: { ms: expect.any(Number) } });
    const { code, out, err } = await run('argocd-agentctl', ['doctor', 'edge-1']);
    expect({ code, out, err }).toEqual({
      code: 0,
      out: '',
      err: expect.stringMatching(
        /^Nothing found\. Looked at: the hub, agent edge-1, the network [^\n]+\nNot looked at: [^\n]+\nedge-1: a request to the cluster and back took \d+ ms\n$/,
      ),
    });
  });

  it('nobody was refused anything', async () => {
    const accounts = [
      [hub, `${namespace}:${principal}`],
      [hub, `${namespace}:${principal}-pki`],
      [edge, `${namespace}:argocd-agent-agent`],
    ] as const;
    for (const [cluster, account] of accounts) {
      const requests = await requestsOf(cluster.auditLog, `system:serviceaccount:${account}`);
      expect(requests.length, account).toBeGreaterThan(3);
      expect(
        requests.filter(({ allowed }) => !allowed),
        account,
      ).toEqual([]);
    }
  });
});

const decoded = (base64: string) => Buffer.from(base64, 'base64').toString('utf8');

async function secretsOfHub(): Promise<string> {
  return JSON.stringify((await hub.client.list(secrets)).map(({ data = {} }) => Object.values(data).map(decoded)));
}
