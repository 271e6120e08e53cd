import { afterAll, beforeAll, expect, test } from 'vitest';
import {
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

// Repository Secrets without a project: they stay on the hub unless a principal shares them.

const url = 'https://git.example.com/team/shop.git';
const source = { repoURL: url, path: '.', targetRevision: 'HEAD' };
const mapping = ['--destination-based-mapping'];
let pair: Pair;
const logs = () => ({
  details: () => `${pair.principal.output.slice(-3_000)}\n---\n${pair.agent.output.slice(-3_000)}`,
});

beforeAll(async () => {
  pair = await startPair({
    principal: { args: mapping },
    agent: { args: mapping },
    idle: true,
  });
  const { client } = pair.hub;
  const labels = (type: string) => ({ labels: { 'argocd.argoproj.io/secret-type': type } });
  await put(client, 'shop', { url, password: 'secret' }, labels('repository'));
  await put(client, 'team', { url: 'https://git.example.com/team/', password: 'secret' }, labels('repo-creds'));
  await put(client, 'other', { url: 'https://git.example.com/other', password: 'secret' }, labels('repository'));
  await client.create(pairAppProjects, {
    metadata: { name: 'default', namespace },
    spec: { sourceRepos: ['*'], destinations: [{ server: '*', namespace: '*' }] },
  });
});
afterAll(() => pair?.stop());

const app = (name: string, spec: object = {}) =>
  application({ name, namespace, spec: { source, destination: { name: pair.name, namespace: 'default' }, ...spec } });
const held = async (client: KubeClient) =>
  (await client.list(secrets, { namespace, labelSelector: 'argocd.argoproj.io/secret-type' }))
    .map(({ metadata }) => metadata.name)
    .sort();
const holds = (...names: string[]) =>
  until(
    `the cluster has ${names.join(' and ') || 'nothing'}`,
    async () => expect(await held(pair.managed.client)).toEqual(names),
    logs(),
  );

test('without the flag, the Secrets stay on the hub', async () => {
  const { hub, managed, principal, agent } = pair;
  principal.start();
  agent.start();
  await hub.client.create(pairApplications, app('shop'));
  const key = { name: 'shop', namespace };
  await until('the copy is made', () => managed.client.get(pairApplications, key), logs());
  // What an Application needs is sent before it.
  await holds();
  await principal.stop();
});

test('with the flag, a cluster has those of its Applications, as long as it has them', async () => {
  const { hub, newPrincipal } = pair;
  const { program, port } = await newPrincipal({ args: [...mapping, '--share-repositories'] });
  program.start();
  const agent = await pair.otherAgent({ server: port, args: mapping });
  await pair.agent.stop();
  agent.start();
  await holds('shop', 'team');
  // The Applications are not what it is about, but their AppProject is.
  await hub.client.mergePatch(
    pairAppProjects,
    { name: 'default', namespace },
    { spec: { sourceRepos: ['https://elsewhere/**'] } },
  );
  await holds();
  await hub.client.mergePatch(pairAppProjects, { name: 'default', namespace }, { spec: { sourceRepos: ['*'] } });
  await holds('shop', 'team');
  const other = { ...source, repoURL: 'https://git.example.com/other' };
  await hub.client.create(pairApplications, app('other', { source: other }));
  await holds('other', 'shop', 'team');
  await hub.client.mergePatch(
    pairApplications,
    { name: 'other', namespace },
    { spec: { destination: { name: 'another' } } },
  );
  await holds('shop', 'team');
  await hub.client.delete(pairApplications, { name: 'shop', namespace });
  await holds();
});
