import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type AgentCluster,
  application,
  namespace,
  type Pair,
  pairApplications,
  pairAppProjects,
  put,
  startPair,
} from '../e2e/pair/index.ts';
import { until } from '../lib/base/testing.ts';
import { type KubeClient, secrets } from '../lib/kube/index.ts';

// Applications whose destination is the URL of a cluster Secret, as Argo CD's form for a new one offers it first.

const mapping = { args: ['--destination-based-mapping'] };
const finalizer = 'resources-finalizer.argocd.argoproj.io';
const key = (name: string) => ({ name, namespace });
const second = 'cluster2';
let pair: Pair;
let other: AgentCluster;
const logs = () => ({
  details: () => [pair.principal, pair.agent, other.agent].map(({ output }) => output.slice(-3_000)).join('\n---\n'),
});

beforeAll(async () => {
  pair = await startPair({ principal: mapping, agent: mapping });
  other = await pair.addAgent({ name: second, ...mapping });
  const cluster = { name: pair.name };
  for (const [name, destinations] of Object.entries({
    default: [{ server: '*', namespace: '*' }],
    'by-server': [{ server: urlOf(pair.name), namespace: 'shop' }],
    'by-name': [{ ...cluster, namespace: 'shop' }],
    'by-glob': [{ server: 'https://*?agentName=cluster1', namespace: 'sh*' }],
    elsewhere: [{ server: urlOf(second), namespace: '*' }],
    denied: [
      { server: '*', namespace: '*' },
      { server: `!${urlOf(pair.name)}`, namespace: '*' },
    ],
  })) {
    await pair.hub.client.create(pairAppProjects, {
      metadata: { name, namespace },
      spec: { sourceRepos: ['*'], destinations },
    });
  }
});
afterAll(() => pair?.stop());

const urlOf = (agent: string) => `https://argocd-agent-resource-proxy:9090?agentName=${agent}`;
const labelsOf = (agent: string) => ({
  labels: { 'argocd.argoproj.io/secret-type': 'cluster', 'argocd-agent.argoproj-labs.io/agent-name': agent },
});
const create = (name: string, server: string, project = 'default') =>
  pair.hub.client.create(
    pairApplications,
    application({
      name,
      namespace,
      metadata: { finalizers: [finalizer] },
      spec: { project, destination: { name: '', server, namespace: 'shop' } },
    }),
  );
const copyOn = (client: KubeClient, name: string) => client.get(pairApplications, key(name));
const arrives = (client: KubeClient, name: string) =>
  until(`${name} is on the cluster`, () => copyOn(client, name), logs());
const notice = async (name: string) => {
  const { conditions = [] } = (await pair.hub.client.get(pairApplications, key(name)))?.status ?? {};
  return (conditions as { type: string; message: string }[]).find(({ type }) => type === 'AgentWarning')?.message;
};

test('an Application goes to the cluster with its URL if its AppProject permits that by URL or by name', async () => {
  const { managed } = pair;
  for (const project of ['default', 'by-server', 'by-name', 'by-glob', 'elsewhere', 'denied']) {
    await create(project, urlOf(pair.name), project);
  }
  for (const name of ['default', 'by-server', 'by-name', 'by-glob']) {
    const copy = await arrives(managed.client, name);
    expect(copy?.spec).toMatchObject({ project: name, destination: { name: 'in-cluster', namespace: 'shop' } });
  }
  await managed.client.mergePatch(pairApplications, key('default'), { status: { sync: { status: 'Synced' } } });
  const synced = async () =>
    (await pair.hub.client.get(pairApplications, key('default')))?.status?.sync as { status?: string } | undefined;
  await until('its status is on the hub', async () => (await synced())?.status === 'Synced', logs());
  for (const name of ['elsewhere', 'denied']) {
    const said = await until(`${name} says why it does not go`, () => notice(name), logs());
    expect(said).toMatch(`AppProject ${name} does not allow destination ${pair.name}`);
    expect(await copyOn(managed.client, name)).toBeUndefined();
  }
  expect(await other.cluster.client.list(pairApplications, { namespace })).toEqual([]);
});

test('a cluster Secret that comes later, goes, is back, and moves its URL', async () => {
  const { hub, managed, principal, name } = pair;
  const [one, two] = [managed.client, other.cluster.client];
  const url = 'https://late.example';
  const later = (agent: string) =>
    put(hub.client, 'later', { name: 'later', server: `${url}/`, config: '{}' }, labelsOf(agent));
  await create('late', url);
  const unknown = await until('nobody deploys it', () => notice('late'), logs());
  expect(unknown).toMatch('no cluster Secret of the hub has the URL in spec.destination.server');
  // The agent has another Secret, and stays connected while this one is away.
  await later(name);
  const copy = await arrives(one, 'late');
  await until('the notice is gone', async () => (await notice('late')) === undefined, logs());

  await hub.client.delete(secrets, key('later'));
  await until('nobody deploys it again', () => notice('late'), logs());
  await principal.stop();
  principal.start();
  // Its agents are back, and have got what there is for them.
  await create('after', urlOf(name));
  await arrives(one, 'after');
  expect((await copyOn(one, 'late'))?.metadata).toMatchObject({ uid: copy?.metadata.uid });
  expect((await copyOn(one, 'late'))?.metadata.deletionTimestamp).toBeUndefined();
  await hub.client.mergePatch(pairApplications, key('late'), { metadata: { labels: { edited: 'yes' } } });
  await later(name);
  const edited = async () => (await copyOn(one, 'late'))?.metadata.labels?.edited === 'yes';
  await until('what was edited meanwhile arrives', edited, logs());
  expect((await copyOn(one, 'late'))?.metadata.uid).toBe(copy?.metadata.uid);

  await put(hub.client, 'again', { name: 'again', server: url, config: '{}' }, labelsOf(second));
  const twice = await until('two Secrets have its URL', () => notice('late'), logs());
  expect(twice).toMatch(`several cluster Secrets (${namespace}/again, ${namespace}/later) have the URL`);
  expect((await copyOn(one, 'late'))?.metadata.deletionTimestamp).toBeUndefined();
  expect(await copyOn(two, 'late')).toBeUndefined();
  await hub.client.delete(secrets, key('later'));
  await arrives(two, 'late');
  const leaves = async () => (await copyOn(one, 'late'))?.metadata.deletionTimestamp !== undefined;
  await until('the first cluster removes its copy', leaves, logs());
});
