import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { configMaps, roleBindings, roles, secrets, serviceAccounts } from '../../lib/kube/index.ts';
import { namespace, type Pair, pairAppProjects } from '../pair/index.ts';
import type { ProxyClient } from './proxy-client.ts';
import { deployWeb, startProxiedPair } from './shop.ts';

// Requests that Argo CD sends as a service account which an AppProject names: the API server of the cluster decides by the
// rights of that account, which may read ConfigMaps and no Secrets.

const account = { namespace: 'shop', name: 'deployer' };
const user = 'system:serviceaccount:shop:deployer';
const project = { namespace, name: 'default' };
const settings = '/api/v1/namespaces/shop/configmaps/settings';
const password = '/api/v1/namespaces/shop/secrets/password';
const tracking = (what: string) => ({ 'argocd.argoproj.io/tracking-id': `web:/${what}` });

let pair: Pair;
let proxy: ProxyClient;

beforeAll(async () => {
  ({ pair, proxy } = await startProxiedPair());
  const { client } = pair.managed;
  await deployWeb(pair.hub.client, pair.name, client, proxy);
  await client.create(serviceAccounts, { metadata: account });
  await client.create(serviceAccounts, { metadata: { ...account, name: 'admin' } });
  await client.create(roles, {
    metadata: account,
    rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }],
  } as never);
  await client.create(roleBindings, {
    metadata: account,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: account.name },
    subjects: [{ kind: 'ServiceAccount', ...account }],
  } as never);
  await client.create(configMaps, {
    metadata: { namespace: 'shop', name: 'settings', annotations: tracking('ConfigMap:shop/settings') },
    data: { colour: 'red' },
  });
  await client.create(secrets, {
    metadata: { namespace: 'shop', name: 'password', annotations: tracking('Secret:shop/password') },
    stringData: { password: 'confidential' },
  } as never);
  await pair.hub.client.create(pairAppProjects, {
    metadata: project,
    spec: {
      sourceRepos: ['*'],
      destinations: [{ name: '*', server: '*', namespace: 'shop' }],
      sourceNamespaces: [pair.name],
      destinationServiceAccounts: [
        { server: 'https://elsewhere', namespace: '*', defaultServiceAccount: 'admin' },
        { server: '*', namespace: 'sh*', defaultServiceAccount: account.name },
        { server: '*', namespace: '*', defaultServiceAccount: 'kube-system:admin' },
      ],
    },
  });
  await until('the agent knows the account', async () => (await send('GET', settings)).status === 200);
});
afterAll(() => pair?.stop());

async function send(method: string, path: string, body?: object, as = user) {
  const answer = await proxy.send(method, path, {
    headers: {
      'impersonate-user': as,
      ...(method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : {}),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const isJson = answer.contentType.startsWith('application/json');
  return { status: answer.status, text: answer.text, object: isJson ? JSON.parse(answer.text) : undefined };
}

const forbidden = (verb: string, resource: string) =>
  new RegExp(`User "${user}" cannot ${verb} resource "${resource}" in API group "" in the namespace "shop"`);

test('the API server sees the service account and its groups', async () => {
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
  const { object } = await send('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', review);
  expect(object.status.userInfo).toMatchObject({
    username: user,
    groups: expect.arrayContaining(['system:serviceaccounts', 'system:serviceaccounts:shop']),
  });
});

test.each([
  ['get', 'configmaps', true],
  ['get', 'secrets', false],
  ['delete', 'configmaps', false],
])('may it %s %s: %s, by a review of its rights', async (verb, resource, allowed) => {
  const spec = { resourceAttributes: { namespace: 'shop', verb, resource } };
  const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec };
  const { object } = await send('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', review);
  expect(object.status.allowed).toBe(allowed);
});

test('what it may read is read: an object, a list, discovery', async () => {
  expect((await send('GET', settings)).object.data).toEqual({ colour: 'red' });
  const list = await send('GET', '/api/v1/namespaces/shop/configmaps');
  expect(list.object.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name)).toEqual(['settings']);
  expect((await send('GET', '/api/v1')).object.kind).toBe('APIResourceList');
});

test.each([
  ['GET', password, 'get', 'secrets'],
  ['GET', '/api/v1/namespaces/shop/secrets', 'list', 'secrets'],
  ['GET', '/api/v1/namespaces/shop/secrets?watch=true', 'watch', 'secrets'],
  ['DELETE', password, 'delete', 'secrets'],
  ['DELETE', settings, 'delete', 'configmaps'],
  ['PATCH', settings, 'patch', 'configmaps'],
  ['POST', '/api/v1/namespaces/shop/configmaps', 'create', 'configmaps'],
])('%s %s is refused by the API server, though the agent may do it', async (method, path, verb, resource) => {
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'made' }, data: { colour: 'blue' } };
  const { status, object, text } = await send(method, path, method === 'PATCH' || method === 'POST' ? body : undefined);
  expect([status, object.kind]).toEqual([403, 'Status']);
  expect(object.message).toMatch(forbidden(verb, resource));
  expect(text).not.toContain(Buffer.from('confidential').toString('base64'));
});

test('nothing was changed, and the agent itself may read and change it', async () => {
  const { client } = pair.managed;
  expect((await client.get(configMaps, { namespace: 'shop', name: 'settings' }))?.data).toEqual({ colour: 'red' });
  expect(await client.get(configMaps, { namespace: 'shop', name: 'made' })).toBeUndefined();
  expect((await proxy.send('GET', password)).status).toBe(200);
});

test.each([
  ['another account of the namespace', 'system:serviceaccount:shop:admin'],
  ['an account that a later entry names', 'system:serviceaccount:kube-system:admin'],
  ['the account of that name elsewhere', 'system:serviceaccount:default:deployer'],
  ['a powerful one', 'system:serviceaccount:kube-system:clusterrole-aggregation-controller'],
])('%s is refused by the agent', async (_, as) => {
  const { status, object } = await send('GET', settings, undefined, as);
  expect([status, object.message]).toEqual([403, expect.stringContaining(`${as} may not be impersonated`)]);
});

test('an account that the project of the hub names no longer is refused', async () => {
  await pair.hub.client.mergePatch(pairAppProjects, project, { spec: { destinationServiceAccounts: null } });
  await until('the account is refused', async () => (await send('GET', settings)).status === 403);
  expect((await send('GET', settings)).object.message).toContain('may not be impersonated');
});
