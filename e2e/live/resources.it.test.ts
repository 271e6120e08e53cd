import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { configMaps, namespaces, resourceType } from '../../lib/kube/index.ts';
import { issueCertificate } from '../../lib/pki/index.ts';
import { metricsNow, type Pair } from '../pair/index.ts';
import { ProxyClient } from './proxy-client.ts';
import { deployWeb, startProxiedPair } from './shop.ts';

// The API of an agent's cluster, through principal and agent, as Argo CD and kubectl ask for it.

const deployments = resourceType({
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
});
const tracking = (app: string) => ({ 'argocd.argoproj.io/tracking-id': `${app}:apps/Deployment:shop/web` });

let pair: Pair;
let proxy: ProxyClient;

beforeAll(async () => {
  ({ pair, proxy } = await startProxiedPair());
  const { client } = pair.managed;
  await client.create(namespaces, { metadata: { name: 'foreign' } });
  await deployWeb(pair.hub.client, pair.name, client, proxy);
  const spec = {
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'web', image: 'web' }] } },
  };
  await client.create(deployments, {
    metadata: { name: 'web', namespace: 'shop', annotations: tracking('web') },
    spec,
  } as never);
  await client.create(deployments, { metadata: { name: 'other', namespace: 'shop' }, spec } as never);
  await client.create(configMaps, { metadata: { name: 'secret-plans', namespace: 'foreign' }, data: { a: 'b' } });
});
afterAll(() => pair?.stop());

const web = '/apis/apps/v1/namespaces/shop/deployments/web';
const json = (text: string) => JSON.parse(text);

test('an object of an Application is read, patched in every way, scaled and deleted', async () => {
  const read = await proxy.send('GET', web);
  expect([read.status, read.contentType, json(read.text).metadata.name]).toEqual([200, 'application/json', 'web']);
  for (const [type, patch] of [
    ['application/merge-patch+json', { metadata: { labels: { merge: 'yes' } } }],
    ['application/json-patch+json', [{ op: 'add', path: '/metadata/labels/json', value: 'yes' }]],
    ['application/strategic-merge-patch+json', { metadata: { labels: { strategic: 'yes' } } }],
    [
      'application/apply-patch+yaml',
      { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', labels: { apply: 'yes' } } },
    ],
  ] as const) {
    const path = type.includes('apply') ? `${web}?fieldManager=test&force=true` : web;
    const answer = await proxy.send('PATCH', path, { body: JSON.stringify(patch), headers: { 'content-type': type } });
    expect([type, answer.status, answer.text.slice(0, 300)]).toEqual([type, 200, expect.any(String)]);
  }
  const { labels } = json((await proxy.send('GET', web)).text).metadata;
  expect(labels).toEqual({ merge: 'yes', json: 'yes', strategic: 'yes', apply: 'yes' });
  const scale = await proxy.send('GET', `${web}/scale`);
  expect([scale.status, json(scale.text).kind]).toEqual([200, 'Scale']);
});

test('a list shows what belongs to Applications, also as a Table and in pages', async () => {
  const list = await proxy.send('GET', '/apis/apps/v1/namespaces/shop/deployments');
  expect(json(list.text).items.map(({ metadata }: { metadata: { name: string } }) => metadata.name)).toEqual(['web']);
  const table = await proxy.send('GET', '/apis/apps/v1/deployments', {
    headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json' },
  });
  expect([json(table.text).kind, json(table.text).rows.length]).toEqual(['Table', 1]);
  const page = json((await proxy.send('GET', '/apis/apps/v1/deployments?limit=1')).text);
  expect(page.metadata.remainingItemCount).toBeUndefined();
});

test('a watch shows what happens to them, until the client leaves', async () => {
  const stop = new AbortController();
  const { resourceVersion } = json((await proxy.send('GET', '/apis/apps/v1/deployments')).text).metadata;
  const watch = await proxy.open('GET', `/apis/apps/v1/deployments?watch=true&resourceVersion=${resourceVersion}`, {
    signal: stop.signal,
  });
  expect([watch.statusCode, watch.headers['content-type']]).toEqual([200, 'application/json']);
  const seen: string[] = [];
  watch.on('data', (chunk: Buffer) => {
    for (const line of chunk.toString().split('\n').filter(Boolean)) {
      seen.push(json(line).object.metadata.name);
    }
  });
  watch.on('error', () => undefined);
  for (const name of ['other', 'web']) {
    await pair.managed.client.mergePatch(deployments, { name, namespace: 'shop' }, {
      metadata: { labels: { n: '1' } },
    } as never);
  }
  await until('the change is seen', async () => seen.includes('web'));
  expect(seen).not.toContain('other');
  stop.abort();
});

test.each([
  ['GET', '/apis/apps/v1/namespaces/shop/deployments/other', 403, /belongs to no Application/],
  ['GET', '/api/v1/namespaces/foreign/configmaps/secret-plans', 403, /belongs to no Application/],
  ['DELETE', '/api/v1/namespaces/foreign/configmaps/secret-plans', 403, /belongs to no Application/],
  ['POST', '/api/v1/namespaces/foreign/configmaps', 403, /no Application of this cluster deploys there/],
  ['DELETE', '/apis/apps/v1/namespaces/shop/deployments', 403, /one by one/],
  ['GET', '/apis/apps/v1/namespaces/shop/deployments/nothing', 404, /not found/],
  ['GET', '/api/v1/namespaces/shop/pods/%2e%2e/x', 404, /not served/],
  ['OPTIONS', web, 403, /not served/],
  ['GET', '/metrics', 404, /not served/],
])('%s %s is refused with %d, in words', async (method, path, status, text) => {
  const answer = await proxy.send(method, path, method === 'POST' ? { body: '{}' } : {});
  expect([answer.status, json(answer.text).kind]).toEqual([status, 'Status']);
  expect(json(answer.text).message).toMatch(text);
});

test('what the API server offers is shown: kinds, version, schemas', async () => {
  for (const path of [
    '/api',
    '/apis',
    '/api/v1',
    '/apis/apps',
    '/apis/apps/v1',
    '/version',
    '/openapi/v2',
    '/openapi/v3',
  ]) {
    const answer = await proxy.send('GET', path);
    expect([path, answer.status]).toEqual([path, 200]);
    const direct = await (await pair.managed.client.request(path)).body.text();
    expect(json(answer.text)).toEqual(json(direct));
  }
});

test('defect 39: an object is created where an Application deploys, and deleted', async () => {
  const body = JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'made', annotations: tracking('web') },
  });
  const dry = await proxy.send('POST', '/api/v1/namespaces/shop/configmaps?dryRun=All', { body });
  expect(dry.status).toBe(201);
  expect((await proxy.send('GET', '/api/v1/namespaces/shop/configmaps/made')).status).toBe(404);
  expect((await proxy.send('POST', '/api/v1/namespaces/shop/configmaps', { body })).status).toBe(201);
  const elsewhere = await proxy.send('POST', '/api/v1/namespaces/default/configmaps', { body });
  expect(elsewhere.status).toBe(403);
  const deleted = await proxy.send('DELETE', '/api/v1/namespaces/shop/configmaps/made');
  expect(deleted.status).toBe(200);
});

test('defect 38: a large list comes whole, and holds nothing up', async () => {
  const { client } = pair.managed;
  const data = { text: 'x'.repeat(100_000) };
  for (let index = 0; index < 30; index++) {
    const metadata = { name: `large-${index}`, namespace: 'shop', annotations: tracking('web') };
    await client.create(configMaps, { metadata, data });
  }
  const list = await proxy.send('GET', '/api/v1/namespaces/shop/configmaps');
  expect(list.text.length).toBeGreaterThan(3_000_000);
  expect(json(list.text).items).toHaveLength(30);
});

test('the agent counts the requests, and those that were answered with an error', async () => {
  const counted = async () => {
    const text = await metricsNow(pair.agentMetricsPort);
    const numberOf = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
    return [
      numberOf('argocd_agent_resource_proxy_requests_total'),
      numberOf('argocd_agent_resource_proxy_errors_total'),
    ] as const;
  };
  const [requests, errors] = await counted();
  const namespace = '/api/v1/namespaces/shop';
  expect((await proxy.send('GET', namespace)).status).toBeLessThan(400);
  expect((await proxy.send('GET', `${web}-missing`)).status).toBe(404);
  expect((await proxy.send('GET', '/api/v1/namespaces/foreign/configmaps/secret-plans')).status).toBe(403);
  expect(await counted()).toEqual([requests + 3, errors + 2]);
});

test('another agent, a stranger and an absent agent', async () => {
  const issue = (commonName: string) => issueCertificate({ authority: pair.authority, commonName, usages: ['client'] });
  const as = async (commonName: string) =>
    new ProxyClient(proxy.port, pair.authority, await issue(commonName)).send('GET', web);
  expect((await as('absent')).status).toBe(502);
  expect((await as('not a name')).status).toBe(400);
  const token = await proxy.send('GET', web, { headers: { authorization: 'Bearer nonsense' } });
  expect(token.status).toBe(401);
  const impersonated = await proxy.send('GET', web, { headers: { 'impersonate-user': 'admin' } });
  expect(impersonated.status).toBe(403);
  await pair.agent.stop('SIGKILL');
  expect((await proxy.send('GET', web)).status).toBe(502);
});
