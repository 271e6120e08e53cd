import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFailed } from 'vitest';
import { stringify } from 'yaml';
import {
  deployments,
  type KubeObject,
  namespaces,
  pods,
  type ResourceType,
  resourceType,
  secrets,
} from '../../lib/kube/index.ts';
import { createAuthority, generateJwtKey, issueCertificate, type KeyCertificate } from '../../lib/pki/index.ts';
import { fleetApplications } from '../fleet/index.ts';
import { type Node, startNode } from '../node/index.ts';
import { requestsOf } from '../rights/index.ts';
import { type Cluster, startCluster, waitForObject } from '../testbed/index.ts';
import { agentChart, argoCdCrds, helm, installCrds, kustomize, manifestsFolder } from './index.ts';

// Without Open Cluster Management: the principal from the kustomize manifests, one agent from the chart, one from the
// manifests. All on one cluster, in namespaces that take restricted pods only.

const hubNamespace = 'argocd';
let cluster: Cluster;
let node: Node;
let folder: string;
let authority: KeyCertificate;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'plain-'));
  cluster = await startCluster({ audit: true });
  node = await startNode({ cluster, dir: folder });
  await installCrds(cluster.client, await argoCdCrds());
  authority = await createAuthority({ commonName: 'agents' });
  for (const name of [hubNamespace, 'edge-a', 'edge-b']) {
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    await cluster.client.create(namespaces, { metadata: { name, labels } });
  }
});
afterAll(async () => {
  await node?.stop();
  await cluster?.stop();
  await rm(folder, { recursive: true, force: true });
});

async function putSecret(namespace: string, name: string, stringData: Record<string, string>, type = 'Opaque') {
  await cluster.client.create(secrets, { metadata: { namespace, name }, type, stringData });
}

async function putPair(namespace: string, name: string, { certificate, key }: KeyCertificate) {
  await putSecret(namespace, name, { 'tls.crt': certificate, 'tls.key': key }, 'kubernetes.io/tls');
}

async function agentSecrets(namespace: string, agent: string) {
  await putSecret(namespace, 'argocd-agent-ca', { 'ca.crt': authority.certificate });
  const certificate = await issueCertificate({ authority, commonName: agent, usages: ['client'] });
  await putPair(namespace, 'argocd-agent-client-tls', certificate);
}

/** The hub's cluster Secret of an agent, which says that the agent may have what is the cluster's. */
async function mapAgent(name: string) {
  const labels = { 'argocd.argoproj.io/secret-type': 'cluster', 'argocd-agent.argoproj-labs.io/agent-name': name };
  const resourceProxy = `https://argocd-agent-resource-proxy:9090?agentName=${name}`;
  await cluster.client.create(secrets, {
    metadata: { namespace: hubNamespace, name: `cluster-${name}`, labels },
    stringData: { name, server: resourceProxy, config: '{}' },
  });
}

/** Builds an overlay of the project's manifests, as a user would write it, and applies it. */
async function applyOverlay(name: string, program: 'principal' | 'agent', overlay: object): Promise<void> {
  const place = join(folder, name);
  await mkdir(place, { recursive: true });
  const kustomization = { resources: [relative(place, manifestsFolder(program))], ...overlay };
  await writeFile(join(place, 'kustomization.yaml'), stringify(kustomization));
  for (const object of await kustomize(place)) {
    await cluster.client.apply(typeOf(object), object, { fieldManager: 'kubectl', force: true });
  }
}

/** A patch of ConfigMap argocd-agent-params. */
const params = (data: Record<string, string>) => ({
  patch: stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'argocd-agent-params' }, data }),
});

function typeOf({ apiVersion = '', kind = '', metadata }: KubeObject): ResourceType {
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  const plural = kind.endsWith('y') ? `${kind.slice(0, -1).toLowerCase()}ies` : `${kind.toLowerCase()}s`;
  return resourceType({ group, version, kind, plural, namespaced: metadata.namespace !== undefined });
}

async function isAvailable(namespace: string, name: string): Promise<void> {
  const done = (d: { status?: { availableReplicas?: number } } | undefined) => d?.status?.availableReplicas === 1;
  await waitForObject(cluster.client, deployments, { namespace, name }, done, { timeoutMs: 240_000 });
}

/** The end of what every pod has logged. */
async function logs(): Promise<string> {
  const ends = (await cluster.client.list(pods)).map(async ({ metadata: { namespace, name } }) => {
    const { body } = await cluster.client.request(`/api/v1/namespaces/${namespace}/pods/${name}/log?tailLines=30`);
    return `--- ${namespace}/${name}\n${await body.text()}`;
  });
  return (await Promise.all(ends)).join('\n');
}

beforeEach(() => onTestFailed(async () => console.error(await logs())));

const edgeA = { namespace: 'edge-a', name: 'edge-agent-helm' };
const edgeB = { namespace: 'edge-b', name: 'argocd-agent-agent' };
const server = { host: `argocd-agent-principal.${hubNamespace}.svc`, port: process.getuid?.() === 0 ? '443' : '8443' };

// Programs start one after the other, and the machine may be busy.
describe('without Open Cluster Management', { timeout: 400_000 }, () => {
  it('the principal runs from the manifests', async () => {
    await putPair(hubNamespace, 'argocd-agent-ca', authority);
    const hosts = [server.host, 'argocd-agent-resource-proxy'];
    const certificate = await issueCertificate({ authority, commonName: 'principal', usages: ['server'], hosts });
    await putPair(hubNamespace, 'argocd-agent-principal-tls', certificate);
    await putPair(hubNamespace, 'argocd-agent-resource-proxy-tls', certificate);
    await putSecret(hubNamespace, 'argocd-agent-jwt', { 'jwt.key': await generateJwtKey() });
    const service = { kind: 'Service', name: 'argocd-agent-principal' };
    const port = `- { op: replace, path: /spec/ports/0/port, value: ${server.port} }`;
    await applyOverlay('principal', 'principal', {
      namespace: hubNamespace,
      patches: [
        params({ 'principal.allowed-namespaces': '*', 'principal.namespace-create.enable': 'true' }),
        { target: service, patch: port },
      ],
    });
    await isAvailable(hubNamespace, 'argocd-agent-principal');
  });

  it('an agent runs from its chart, and helm test says that it is connected', async () => {
    const release = async (command: string, ...args: string[]) =>
      await helm([command, 'edge', ...args, '--namespace', edgeA.namespace], { kubeconfig: cluster.kubeconfig });
    const values = ['--set', `server=${server.host}`, '--set', `serverPort=${server.port}`];
    const notes = await release('install', agentChart, ...values);
    expect(notes).toContain('Secret argocd-agent-client-tls with the agent');
    await agentSecrets(edgeA.namespace, 'agent-a');
    await isAvailable(edgeA.namespace, edgeA.name);
    expect(await release('test', '--timeout', '4m')).toContain('Succeeded');
  });

  it('another one runs from the manifests, in a namespace of its own', async () => {
    await agentSecrets(edgeB.namespace, 'agent-b');
    const settings = {
      'agent.server.address': server.host,
      'agent.server.port': server.port,
      'agent.namespace': edgeB.namespace,
      'agent.creds': 'mtls:any',
    };
    await applyOverlay('agent', 'agent', { namespace: edgeB.namespace, patches: [params(settings)] });
    await isAvailable(edgeB.namespace, edgeB.name);
  });

  it.each([
    ['agent-a', edgeA.namespace],
    ['agent-b', edgeB.namespace],
  ])('what is on the cluster of %s shows on the hub', async (agent, namespace) => {
    const spec = {
      project: 'default',
      source: { repoURL: 'https://example.com/shop.git', path: '.' },
      destination: { server: 'https://kubernetes.default.svc', namespace: 'shop' },
    };
    await mapAgent(agent);
    await cluster.client.create(fleetApplications, { metadata: { namespace, name: 'shop' }, spec });
    const shown = { namespace: agent, name: 'shop' };
    await waitForObject(cluster.client, fleetApplications, shown, (a) => a !== undefined, { timeoutMs: 120_000 });
  });

  it('nobody was refused anything', async () => {
    const accounts = [
      `${hubNamespace}:argocd-agent-principal`,
      'edge-a:edge-agent-helm-sa',
      'edge-b:argocd-agent-agent',
    ];
    for (const account of accounts) {
      const requests = await requestsOf(cluster.auditLog, `system:serviceaccount:${account}`);
      expect(requests.length, account).toBeGreaterThan(3);
      expect(
        requests.filter(({ allowed }) => !allowed),
        account,
      ).toEqual([]);
    }
  });
});
