import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFailed } from 'vitest';
import { parse } from 'yaml';
import { configMaps, deployments, type KubeObject, pods, secrets } from '../../lib/kube/index.ts';
import { applyDeliveredArgoCd } from '../argocd/index.ts';
import {
  type FleetApplication,
  fleetApplicationSets,
  fleetApplications,
  fleetAppProjects,
  isSyncedAndHealthy,
} from '../fleet/index.ts';
import { type GitServer, startGitServer } from '../git/index.ts';
import { type Node, startNode } from '../node/index.ts';
import { type Pair, Program, put, startPair } from '../pair/index.ts';
import { type Cluster, startCluster, waitForObject } from '../testbed/index.ts';

// A hub whose application controller deploys to a cluster directly. The cluster gets an agent and an Argo CD of its own, and
// `argocd-agent migrate` moves its Applications.

const namespace = 'argocd';
const agent = 'edge-agent';
const patience = { timeoutMs: 240_000 };
const web = { namespace, name: 'web' };
const other = { namespace, name: 'other' };
let pair: Pair<Cluster>;
let git: GitServer;
let folder: string;
const nodes: Node[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'migrate-'));
  git = await startGitServer(join(folder, 'git'));
  const mapping = { args: ['--destination-based-mapping'] };
  pair = await startPair({ name: agent, principal: mapping, agent: mapping }, () => startCluster());
  for (const [name, cluster] of [
    ['hub', pair.hub],
    ['edge', pair.managed],
  ] as const) {
    nodes.push(await startNode({ cluster, dir: join(folder, name) }));
    await applyDeliveredArgoCd(cluster.client, namespace);
  }
  await pair.hub.client.apply(
    fleetAppProjects,
    {
      metadata: { namespace, name: 'default' },
      spec: {
        sourceRepos: ['*'],
        destinations: [{ namespace: '*', server: '*' }],
        clusterResourceWhitelist: [{ group: '*', kind: '*' }],
      },
    },
    { fieldManager: 'test', force: true },
  );
  await put(pair.hub.client, 'direct', await directSecret(), {
    labels: { 'argocd.argoproj.io/secret-type': 'cluster' },
  });
  await git.commit('shop', { 'web/shop.yaml': workload('web'), 'other/shop.yaml': workload('other') }, 'A shop');
  for (const key of [web, other]) {
    await pair.hub.client.create(fleetApplications, {
      metadata: { ...key, finalizers: ['resources-finalizer.argocd.argoproj.io'] },
      spec: {
        project: 'default',
        source: { repoURL: git.url('shop'), path: key.name, targetRevision: 'HEAD' },
        destination: { name: 'edge', namespace: 'default' },
        syncPolicy: { automated: { prune: true, selfHeal: true } },
      },
    });
  }
  await Promise.all([web, other].map((key) => hubShows(key, isSyncedAndHealthy)));
}, 600_000);
afterAll(async () => {
  await Promise.all(nodes.map((node) => node.stop()));
  await pair?.stop();
  await git?.stop();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(() =>
  onTestFailed(async () => {
    const show = async (cluster: Cluster) => JSON.stringify(await cluster.client.list(fleetApplications), null, 1);
    console.error(await show(pair.hub), await show(pair.managed), pair.agent.output.slice(-3_000));
  }),
);

/** The cluster Secret that `argocd cluster add` would make, from the kubeconfig of the cluster. */
async function directSecret(): Promise<Record<string, string>> {
  const { clusters, users } = parse(await readFile(pair.managed.kubeconfig, 'utf8'));
  const [{ cluster }, { user }] = [clusters[0], users[0]];
  const data = async (entry: Record<string, string>, key: string) =>
    entry[`${key}-data`] ?? (entry[key] && (await readFile(entry[key])).toString('base64'));
  const tlsClientConfig = {
    caData: await data(cluster, 'certificate-authority'),
    certData: await data(user, 'client-certificate'),
    keyData: await data(user, 'client-key'),
  };
  return { name: 'edge', server: cluster.server, config: JSON.stringify({ bearerToken: user.token, tlsClientConfig }) };
}

function hubShows(key: typeof web, accept: (found: FleetApplication | undefined) => boolean) {
  return waitForObject(pair.hub.client, fleetApplications, key, accept, patience);
}

const migration = (...args: string[]) =>
  new Program([
    'migrate',
    '--destination-based-mapping',
    `--kubeconfig=${pair.hub.kubeconfig}`,
    '--cluster=edge',
    ...args,
  ]);

async function migrate(...args: string[]): Promise<{ code: number; output: string }> {
  const program = migration(...args);
  program.start();
  const code = await program.exited();
  return { code, output: program.output };
}

/** UIDs of what runs on the cluster. */
async function workloads(): Promise<Record<string, string | undefined>> {
  const { client } = pair.managed;
  const place = { namespace: 'default' };
  const found = [
    await client.list(deployments, place),
    await client.list(pods, place),
    await client.list(configMaps, place),
  ];
  return Object.fromEntries(found.flat().map(({ metadata }) => [metadata.name, metadata.uid]));
}

const copyOf = (key: typeof web) => pair.managed.client.get(fleetApplications, key);
const hubApplication = (key: typeof web) => pair.hub.client.get(fleetApplications, key);

it('says what is in the way, and changes nothing', async () => {
  const { hub, managed } = pair;
  const before = await hub.client.list(fleetApplications);
  const refused = async (text: string, ...args: string[]) => {
    const { code, output } = await migrate(...args);
    expect({ code, output }).toEqual({ code: 1, output: expect.stringContaining(text) });
  };
  await refused('has no cluster nowhere; it reaches these directly: edge', '--cluster=nowhere');
  await refused(`cluster ${agent} is that of agent ${agent}`, `--cluster=${agent}`);
  await refused(`the agent on cluster edge is ${agent}, not wrong`, '--agent=wrong');

  const cm = { namespace, name: 'argocd-cm' };
  const settings = (value: string | null) =>
    managed.client.mergePatch(configMaps, cm, { data: { installationID: value } });
  await settings('edge');
  await refused('installationID is "" on the hub and "edge" on the cluster');
  await settings(null);

  const direct = { namespace, name: 'direct' };
  await hub.client.mergePatch(secrets, direct, { stringData: { name: agent } });
  const { server = '' } = await directSecret();
  await refused("the cluster has the agent's name", `--cluster=${server}`);
  await hub.client.mergePatch(secrets, direct, { stringData: { name: 'edge' } });

  const project = { namespace, name: 'default' };
  const allow = (destination: object) =>
    hub.client.mergePatch(fleetAppProjects, project, { spec: { destinations: [destination] } });
  await allow({ namespace: '*', name: 'edge' });
  await refused('AppProject default does not permit the destination: add {name: edge-agent, namespace: default}');
  await allow({ namespace: '*', server: '*' });

  // A real one: the garbage collector deletes what an absent one owns.
  const template = { metadata: { name: 'x' }, spec: { project: 'default', destination: {} } };
  const spec = { generators: [], template, syncPolicy: { applicationsSync: 'create-only' } };
  const desired: KubeObject & { spec: object } = { metadata: { namespace, name: 'all' }, spec };
  const set = await hub.client.create(fleetApplicationSets, desired);
  const { name, uid } = set.metadata;
  const owner = { apiVersion: 'argoproj.io/v1alpha1', kind: 'ApplicationSet', name, uid };
  await hub.client.mergePatch(fleetApplications, web, { metadata: { ownerReferences: [owner] } });
  await refused('ApplicationSet argocd/all owns it: change its template');
  await hub.client.mergePatch(fleetApplications, web, { metadata: { ownerReferences: null } });
  await hub.client.delete(fleetApplicationSets, set.metadata, { propagationPolicy: 'Orphan' });

  await pair.agent.stop();
  await refused(`agent ${agent} is not connected`);
  const said = pair.agent.output.length;
  pair.agent.start();
  await pair.agent.says(/Connected to the principal/, { after: said });
  await waitForObject(managed.client, fleetAppProjects, project, Boolean, patience);

  const { code, output } = await migrate('--dry-run');
  expect(code, output).toBe(0);
  expect(output).toContain('would move argocd/web to the agent');
  const after = await hub.client.list(fleetApplications);
  expect(after.map(({ spec }) => spec)).toEqual(before.map(({ spec }) => spec));
  expect(await copyOf(web)).toBeUndefined();
}, 400_000);

it('goes on after an interruption, and re-creates and deletes nothing', async () => {
  const before = await workloads();
  const uids = await Promise.all([web, other].map(async (key) => (await hubApplication(key))?.metadata.uid));
  const program = migration('--application=web');
  program.start();
  await program.says(/argocd\/web: waits until/);
  expect(await program.stop('SIGINT')).toBe(130);
  expect(program.output).toContain('interrupted: no resource was touched; run the same command again');

  const { code, output } = await migrate();
  expect(code, output).toBe(0);
  expect(output).toMatch(/argocd\/web +Synced, Healthy +2\/2 +0/);
  expect(output).toMatch(/argocd\/other +Synced, Healthy +2\/2 +0/);
  expect(await workloads()).toEqual(before);
  for (const [index, key] of [web, other].entries()) {
    const [moved, copy] = [await hubApplication(key), await copyOf(key)];
    expect(moved?.metadata.uid).toBe(uids[index]);
    expect(moved?.spec?.destination).toEqual({ name: agent, namespace: 'default' });
    expect(moved?.metadata.annotations).toMatchObject({ 'argocd.argoproj.io/skip-reconcile': 'true' });
    expect(copy?.spec?.destination).toEqual({ name: 'in-cluster', namespace: 'default' });
    expect(copy?.spec?.syncPolicy).toEqual({ automated: { prune: true, selfHeal: true } });
  }
  expect(await migrate()).toEqual({ code: 0, output: expect.stringContaining('Nothing to do') });
}, 400_000);

it('--undo gives them back to the hub, and re-creates and deletes nothing', async () => {
  const before = await workloads();
  const { code, output } = await migrate('--undo');
  expect(code, output).toBe(0);
  expect(output).toMatch(/argocd\/web +Synced, Healthy +2\/2 +0/);
  for (const key of [web, other]) {
    expect(await copyOf(key)).toBeUndefined();
    const found = await hubApplication(key);
    expect(found?.spec).toMatchObject({
      destination: { name: 'edge', namespace: 'default' },
      syncPolicy: { automated: { prune: true, selfHeal: true } },
    });
    expect(found?.metadata.finalizers).toEqual(['resources-finalizer.argocd.argoproj.io']);
    expect(found?.metadata.annotations?.['argocd.argoproj.io/skip-reconcile']).toBeUndefined();
  }
  // The hub's application controller works on them again.
  const revision = await git.commit(
    'shop',
    { 'web/shop.yaml': workload('web').replace('colour: red', 'colour: blue') },
    'A change',
  );
  const asked = { metadata: { annotations: { 'argocd.argoproj.io/refresh': 'hard' } } };
  await pair.hub.client.mergePatch(fleetApplications, web, asked);
  await hubShows(web, (found) => isSyncedAndHealthy(found) && found?.status?.sync?.revision === revision);
  expect(await workloads()).toEqual(before);
  expect(await migrate('--undo')).toEqual({ code: 0, output: expect.stringContaining('Nothing to do') });
}, 400_000);

const workload = (name: string) => `
apiVersion: apps/v1
kind: Deployment
metadata: { name: ${name}, annotations: { colour: red } }
spec:
  replicas: 1
  selector: { matchLabels: { app: ${name} } }
  template:
    metadata: { labels: { app: ${name} } }
    spec: { containers: [{ name: web, image: "nginx:1.27", readinessProbe: { httpGet: { path: /, port: 80 } } }] }
`;
