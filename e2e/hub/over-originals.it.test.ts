import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFailed } from 'vitest';
import { parse, stringify } from 'yaml';
import { until } from '../../lib/base/testing.ts';
import {
  type Deployment,
  deployments,
  Informer,
  keyOf,
  namespaces,
  pods,
  type Secret,
  secrets,
} from '../../lib/kube/index.ts';
import { createAuthority, generateJwtKey, issueCertificate, type KeyCertificate } from '../../lib/pki/index.ts';
import { fleetApplications } from '../fleet/index.ts';
import { Kubectl } from '../live/index.ts';
import { type ImageRecipe, type Node, standardImages, startNode } from '../node/index.ts';
import { borrowCluster, type Cluster, startCluster, waitForObject } from '../testbed/index.ts';
import { toolPath } from '../tools/index.ts';
import { agentChart, argoCdCrds, helm, installCrds, manifestsFolder, principalChart } from './index.ts';

// An installation of argocd-agent without OCM is changed to this project and back, one side at a time, by applying one's
// manifests or charts over the other's. Their source tree is ARGOCD_AGENT_SOURCE. With ARGOCD_AGENT_BIN their own program
// runs in it too, otherwise only this project's image does.

const { ARGOCD_AGENT_SOURCE: source, ARGOCD_AGENT_BIN: binary } = process.env;
const theirImage = 'ghcr.io/argoproj-labs/argocd-agent/argocd-agent';
const ourImage = 'quay.io/open-cluster-management/argocd-fleet';
const port = process.getuid?.() === 0 ? '443' : '8443';
const server = 'argocd-agent-principal.argocd.svc';
const agentName = 'agent-a';
const generous = { timeoutMs: 240_000 };

type Part = 'principal' | 'agent';
/** Whose manifests or chart, with whose image. */
type Whose = 'theirs' | 'theirs, our image' | 'ours';
const where = { principal: 'argocd', agent: 'edge' } as const;

/** argocd-agent's own program. Its proxies are left out: they listen on fixed ports of all addresses. */
const goImage: ImageRecipe = async ({ address, substitutePort }) => {
  const [metrics, agentMetrics, health, agentHealth] = await Promise.all([8000, 8181, 8003, 8002].map(substitutePort));
  const flags = {
    principal: `--listen-host ${address} --metrics-port ${metrics} --healthz-port ${health} --enable-resource-proxy=false --disable-redis-proxy`,
    agent: `--metrics-port ${agentMetrics} --healthz-port ${agentHealth}`,
  };
  const script = Object.entries(flags).map(
    ([part, all]) => `[ "$1" = ${part} ] && exec /opt/argocd-agent/argocd-agent "$@" ${all}`,
  );
  return {
    user: { name: 'argocd', uid: 999, gid: 999 },
    entrypoint: ['/usr/local/bin/argocd-agent'],
    files: {
      '/usr/local/bin/argocd-agent': { script: script.join('\n') },
      '/opt/argocd-agent/argocd-agent': { from: binary ?? '' },
    },
  };
};

/** The settings that any user of argocd-agent makes. */
const settings: Record<Part, Record<string, string>> = {
  principal: { 'principal.listen.host': '', 'principal.allowed-namespaces': agentName },
  agent: {
    'agent.mode': 'managed',
    'agent.creds': 'mtls:any',
    'agent.namespace': where.agent,
    'agent.server.address': server,
    'agent.server.port': port,
  },
};
const values: Record<Part, Record<string, string | number>> = {
  principal: { 'principal.listen.host': '', 'principal.allowedNamespaces': agentName, 'service.port': Number(port) },
  agent: { agentMode: 'managed', server, serverPort: port },
};

let cluster: Cluster;
let node: Node;
let folder: string;
let kubectl: Kubectl;
const deleted: string[] = [];
let ended: AbortController;

/** `kubectl apply -k` of a kustomization that a user has written on top of the manifests. */
async function applyManifests(part: Part, whose: Whose, args: string[] = []): Promise<void> {
  const place = join(folder, `${part} ${whose}`);
  await mkdir(place, { recursive: true });
  const base = whose === 'ours' ? manifestsFolder(part) : join(source ?? '', 'install/kubernetes', part);
  const patches: object[] = [
    {
      patch: stringify({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'argocd-agent-params' },
        data: settings[part],
      }),
    },
  ];
  if (part === 'principal') {
    const target = { kind: 'Service', name: 'argocd-agent-principal' };
    patches.push({ target, patch: `- { op: replace, path: /spec/ports/0/port, value: ${port} }` });
  }
  if (whose !== 'ours') {
    // Their bindings name namespace argocd, and kustomize leaves that.
    const patch = `- { op: replace, path: /subjects/0/namespace, value: ${where[part]} }`;
    patches.push(...['RoleBinding', 'ClusterRoleBinding'].map((kind) => ({ target: { kind }, patch })));
  }
  const kustomization = {
    resources: [relative(place, base)],
    namespace: where[part],
    patches,
    ...(whose === 'theirs, our image' && { images: [{ name: theirImage, newName: ourImage, newTag: '0.1.0' }] }),
  };
  await writeFile(join(place, 'kustomization.yaml'), stringify(kustomization));
  const { code, stderr } = await kubectl.run(['apply', '-k', place, ...args]);
  expect(code, stderr).toBe(0);
}

/** `helm upgrade --install` with the user's values. */
async function applyChart(part: Part, whose: Whose): Promise<void> {
  const ours = { principal: principalChart, agent: agentChart }[part];
  const chart = whose === 'ours' ? ours : join(source ?? '', 'install/helm-repo', `argocd-agent-${part}`);
  const image = { theirs: [theirImage, 'v1'], 'theirs, our image': [ourImage, '0.1.0'], ours: [] }[whose];
  const [repository, tag] = image;
  const all = { ...values[part], ...(repository && { 'image.repository': repository, 'image.tag': tag }) };
  const set = Object.entries(all).flatMap(([key, value]) => [
    typeof value === 'string' ? '--set-string' : '--set',
    `${key}=${value}`,
  ]);
  const release = ['upgrade', '--install', `argocd-agent-${part}`, chart, '--namespace', where[part]];
  await helm([...release, ...set], { kubeconfig: cluster.kubeconfig });
}

const ways = {
  'kubectl apply -k': { apply: applyManifests, agent: 'argocd-agent-agent' },
  'helm upgrade': { apply: applyChart, agent: 'argocd-agent-agent-agent-helm' },
};

async function putSecret(namespace: string, name: string, stringData: Record<string, string>, type = 'Opaque') {
  await cluster.client.create(secrets, { metadata: { namespace, name }, type, stringData });
}
const pairOf = ({ certificate, key }: KeyCertificate) => ({ 'tls.crt': certificate, 'tls.key': key });

/** What a user of argocd-agent has made, by hand or with its command-line tool. */
async function makeSecrets(): Promise<void> {
  const authority = await createAuthority({ commonName: 'agents' });
  const hosts = [server, 'argocd-agent-resource-proxy'];
  const serves = await issueCertificate({ authority, commonName: 'principal', usages: ['server'], hosts });
  const client = await issueCertificate({ authority, commonName: agentName, usages: ['client'] });
  const tls = 'kubernetes.io/tls';
  await putSecret(where.principal, 'argocd-agent-ca', pairOf(authority), tls);
  await putSecret(where.principal, 'argocd-agent-principal-tls', pairOf(serves), tls);
  await putSecret(where.principal, 'argocd-agent-resource-proxy-tls', pairOf(serves), tls);
  await putSecret(where.principal, 'argocd-agent-jwt', { 'jwt.key': await generateJwtKey() });
  await putSecret(where.agent, 'argocd-agent-ca', { 'ca.crt': authority.certificate });
  await putSecret(where.agent, 'argocd-agent-client-tls', pairOf(client), tls);
  const labels = { 'argocd.argoproj.io/secret-type': 'cluster', 'argocd-agent.argoproj-labs.io/agent-name': agentName };
  const resourceProxy = `https://argocd-agent-resource-proxy:9090?agentName=${agentName}`;
  await cluster.client.create(secrets, {
    metadata: { namespace: where.principal, name: `cluster-${agentName}`, labels },
    stringData: { name: agentName, server: resourceProxy, config: '{}' },
  });
  for (const namespace of Object.values(where)) {
    await putSecret(namespace, 'argocd-redis', { auth: 'redis' });
  }
}

/** The Secrets of users: Helm's records and those that the programs or their manifests make are left out. */
async function secretsOfUsers(): Promise<Record<string, Secret['data']>> {
  const all = (
    await Promise.all(Object.values(where).map((namespace) => cluster.client.list(secrets, { namespace })))
  ).flat();
  const own = all.filter(
    ({ metadata, type }) => type !== 'helm.sh/release.v1' && !metadata.labels?.['app.kubernetes.io/managed-by'],
  );
  return Object.fromEntries(own.map((secret) => [keyOf(secret), secret.data]));
}

/** The Deployment has no pods but new ones. */
async function isRolledOut(namespace: string, name: string): Promise<void> {
  const isNew = (found: Deployment | undefined) => {
    const { observedGeneration, updatedReplicas, availableReplicas, replicas } = found?.status ?? {};
    return (
      observedGeneration === found?.metadata.generation &&
      [updatedReplicas, availableReplicas, replicas].every((n) => n === 1)
    );
  };
  await waitForObject(cluster.client, deployments, { namespace, name }, isNew, generous);
}

async function logs(): Promise<string> {
  const ends = (await cluster.client.list(pods)).map(async ({ metadata: { namespace, name } }) => {
    const { body } = await cluster.client.request(`/api/v1/namespaces/${namespace}/pods/${name}/log?tailLines=30`);
    return `--- ${namespace}/${name}\n${await body.text()}`;
  });
  return (await Promise.all(ends)).join('\n');
}

const steps: { part: Part; whose: Whose }[] = [
  { part: 'principal', whose: 'ours' },
  { part: 'agent', whose: 'ours' },
  { part: 'principal', whose: 'theirs, our image' },
  { part: 'agent', whose: 'theirs, our image' },
  { part: 'agent', whose: 'theirs' },
  { part: 'principal', whose: 'theirs' },
  { part: 'agent', whose: 'ours' },
  { part: 'principal', whose: 'ours' },
];
const first: Whose = binary === undefined ? 'theirs, our image' : 'theirs';

// Programs start one after the other, and the machine may be busy.
const options = { timeout: 400_000, tags: 'argocd-agent-source' } as const;
describe.each(Object.entries(ways))("argocd-agent's installation, by %s", options, (_, way) => {
  const onHub = { namespace: agentName, name: 'shop' };
  const onCluster = { namespace: where.agent, name: 'shop' };
  let uid: string | undefined;

  beforeAll(async () => {
    ended = new AbortController();
    folder = await mkdtemp(join(tmpdir(), 'over-originals-'));
    cluster = await startCluster();
    const images = { ...standardImages(toolPath), ...(binary !== undefined && { [theirImage]: goImage }) };
    node = await startNode({ cluster, dir: folder, images });
    kubectl = await Kubectl.prepare(cluster.kubeconfig, folder);
    await installCrds(cluster.client, await argoCdCrds());
    for (const name of [...Object.values(where), agentName]) {
      await cluster.client.create(namespaces, { metadata: { name } });
    }
    await makeSecrets();
    const informer = new Informer({ client: cluster.client, type: fleetApplications });
    informer.subscribe({ deleted: (application) => void deleted.push(keyOf(application)) });
    void informer.run(ended.signal).catch(() => undefined);
  });
  afterAll(async () => {
    ended.abort();
    await node?.stop();
    await cluster?.stop();
    await rm(folder, { recursive: true, force: true });
  });
  beforeEach(() => onTestFailed(async () => console.error(await logs())));

  const deploymentOf = (part: Part) => (part === 'agent' ? way.agent : 'argocd-agent-principal');

  /** An edit on the hub reaches the cluster, and Argo CD's report comes back; the milliseconds of the edit. */
  async function works(edit: string): Promise<number> {
    const { client } = cluster;
    const since = performance.now();
    await client.mergePatch(fleetApplications, onHub, { spec: { source: { path: edit } } });
    const pathOf = (one: { spec?: { source?: { path?: string } } } | undefined) => one?.spec?.source?.path;
    await waitForObject(client, fleetApplications, onCluster, (copy) => pathOf(copy as never) === edit, generous);
    const milliseconds = Math.round(performance.now() - since);
    await client.mergePatch(fleetApplications, onCluster, { status: { sync: { status: 'Synced', revision: edit } } });
    const revisionOf = (one: unknown) => (one as { status?: { sync?: { revision?: string } } })?.status?.sync?.revision;
    await waitForObject(client, fleetApplications, onHub, (shown) => revisionOf(shown) === edit, generous);
    return milliseconds;
  }

  it(`works as it was (${first})`, async () => {
    for (const part of ['principal', 'agent'] as const) {
      await way.apply(part, first);
      await isRolledOut(where[part], deploymentOf(part));
    }
    const spec = {
      project: 'default',
      source: { repoURL: 'https://example.com/shop.git', path: '.' },
      destination: { name: 'in-cluster', namespace: 'shop' },
    };
    await cluster.client.create(fleetApplications, { metadata: onHub, spec });
    await until('the copy', () => cluster.client.get(fleetApplications, onCluster), generous);
    await works('before');
    uid = (await cluster.client.get(fleetApplications, onCluster))?.metadata.uid;
  });

  it.each(steps.filter(({ whose }) => whose !== 'theirs' || binary !== undefined))(
    'the $part becomes: $whose',
    async ({ part, whose }) => {
      const before = await secretsOfUsers();
      await way.apply(part, whose);
      const milliseconds = await works(`${part} ${whose}`);
      await isRolledOut(where[part], deploymentOf(part));
      await works(`${part} ${whose}, all new`);
      expect(await secretsOfUsers()).toEqual(before);
      expect((await cluster.client.get(fleetApplications, onCluster))?.metadata.uid).toBe(uid);
      expect(deleted).toEqual([]);
      console.info(`${part} becomes ${whose}: an edit meanwhile took ${milliseconds} ms`);
    },
  );
});

// argocd-agent's manifests say no strategy. Ours say Recreate: only one principal may write.
it.each(['principal', 'agent'] as const)('server-side apply of our %s needs another strategy first', async (part) => {
  const lent = await borrowCluster();
  const { client } = lent;
  try {
    await client.create(namespaces, { metadata: { name: 'argocd' } });
    const text = await readFile(join(manifestsFolder(part), `${part}-deployment.yaml`), 'utf8');
    const ours = parse(text);
    ours.metadata.namespace = 'argocd';
    const { strategy: _, ...spec } = ours.spec;
    const apply = (object: object) =>
      client.apply(deployments, object as never, { fieldManager: 'kubectl', force: true });
    await apply({ ...ours, spec });
    await expect(apply(ours)).rejects.toThrow('spec.strategy.rollingUpdate: Forbidden');
    const docs = await readFile(new URL('../../docs/takeover.md', import.meta.url), 'utf8');
    const [, patch = ''] = /--type merge -p '([^']+)'/.exec(docs) ?? [];
    await client.mergePatch(deployments, ours.metadata, JSON.parse(patch));
    expect((await apply(ours)).spec).toMatchObject({ strategy: { type: 'Recreate' } });
  } finally {
    await lent.stop();
  }
});
