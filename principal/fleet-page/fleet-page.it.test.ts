import { createHmac, randomUUID } from 'node:crypto';
import { request } from 'node:https';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  application,
  freePort,
  mapAgent,
  namespace,
  type Pair,
  pairApplications,
  put,
  startPair,
} from '../../e2e/pair/index.ts';
import { type Redis, startRedis } from '../../e2e/redis/index.ts';
import { until } from '../../lib/base/testing.ts';
import { argoAppProjects } from '../../lib/bridge/index.ts';
import { configMaps, type KubeObject } from '../../lib/kube/index.ts';

// The page of a real principal, with a real agent, before a real API server.

const key = 'the-key-that-argo-cd-signs-its-sessions-with';
const extensionKey = 'the-key-by-which-argo-cd-asks-for-its-extension';
let pair: Pair;
let redis: Redis;
let port: number;

beforeAll(async () => {
  [redis, port] = await Promise.all([startRedis(), freePort()]);
  pair = await startPair({
    principal: { redis: redis.port, args: [`--fleet-page-listen=127.0.0.1:${port}`] },
  });
  const { client } = pair.hub;
  await put(client, 'argocd-secret', { 'server.secretkey': key, 'fleet-page.extension.application': extensionKey });
  await client.create(configMaps, { metadata: { name: 'argocd-cm', namespace }, data: { 'accounts.alice': 'login' } });
  await client.create(configMaps, { metadata: { name: 'argocd-rbac-cm', namespace }, data: {} });
});
afterAll(async () => {
  await pair?.stop();
  await redis?.stop();
});

function session(account: string): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const iat = Math.floor(Date.now() / 1000);
  const claims = { iss: 'argocd', sub: `${account}:login`, jti: randomUUID(), iat, exp: iat + 600 };
  const text = `${part({ alg: 'HS256' })}.${part(claims)}`;
  return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`;
}

/** A page, by the hub's authority, as a browser with Argo CD's cookie gets it. */
function get(path: string, token?: string): Promise<{ status: number; body: string }> {
  return ask(path, token === undefined ? {} : { cookie: `other=1; argocd.token=${token}` });
}

/** What Argo CD's server gets for its UI extension, about an Application. */
function askAbout(application: string, project: string, key = extensionKey) {
  const headers = { 'argocd-application-name': application, 'argocd-project-name': project, 'x-fleet-page-key': key };
  return ask('/extension/application', headers);
}

function ask(path: string, headers: Readonly<Record<string, string>>): Promise<{ status: number; body: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>();
  request({ host: '127.0.0.1', port, path, headers, ca: pair.authority.certificate }, async (response) => {
    const body = (await response.toArray()).join('');
    resolve({ status: response.statusCode ?? 0, body });
  })
    .once('error', reject)
    .end();
  return promise;
}

test('the fleet of a real hub, for those alone who may see it', async () => {
  const { hub, name } = pair;
  const details = { details: () => pair.principal.output.slice(-3_000) };
  const page = await until(
    'the page shows the agent',
    async () => {
      const answer = await get('/', session('admin'));
      return answer.body.includes(`data-agent="${name}" data-state="ready"`) && answer;
    },
    details,
  );
  expect(page).toMatchObject({ status: 200, body: expect.stringContaining('The one cluster is ready.') });
  for (const token of [undefined, 'x', `${session('admin').slice(0, -2)}xx`, session('nobody')]) {
    const refused = await get('/', token);
    expect(refused.status).toBe(401);
    expect(refused.body).not.toContain(name);
  }
  expect((await get('/', session('alice'))).status, 'no right').toBe(403);
  await hub.client.mergePatch(
    configMaps,
    { namespace, name: 'argocd-rbac-cm' },
    { data: { 'policy.csv': 'g, alice, role:readonly' } },
  );
  await until('the new policy counts', async () => (await get('/', session('alice'))).status === 200, details);

  await hub.client.create(pairApplications, application({ name: 'shop', namespace: name }));
  await until(
    'the Application is on the cluster’s page',
    async () => (await get(`/clusters/${name}`, session('admin'))).body.includes(`${name}/shop`),
    details,
  );

  const way = await askAbout(`${name}:shop`, 'default');
  expect(way.status).toBe(200);
  expect(JSON.parse(way.body)).toMatchObject({
    waitsAt: 'compared',
    agent: name,
    cluster: { state: 'Ready' },
    stations: [
      { station: 'hub', isDone: true, text: `${name}/shop, generation 1` },
      { station: 'agent', isDone: true },
      { station: 'compared', isDone: false },
      { station: 'synced', isDone: false },
      { station: 'healthy', isDone: false },
    ],
  });
  expect((await askAbout(`${name}:shop`, 'another')).status).toBe(404);
  expect((await askAbout(`${name}:none`, 'default')).status).toBe(404);
  expect((await askAbout(`${name}:shop`, 'default', `${extensionKey}x`)).status).toBe(401);

  // Whoever may write Applications may name any cluster.
  const denied = application({ name: 'denied', namespace: name });
  await hub.client.create(argoAppProjects, {
    metadata: { name: 'closed', namespace },
    spec: { destinations: [{ name: 'elsewhere', namespace: '*' }], sourceNamespaces: ['*'] },
  } as KubeObject);
  await hub.client.create(pairApplications, { ...denied, spec: { ...denied.spec, project: 'closed' } });
  const refused = await until(
    'the principal knows the project',
    async () => {
      const answer = await askAbout(`${name}:denied`, 'closed');
      return answer.body.includes('AppProject closed') && answer;
    },
    details,
  );
  expect(JSON.parse(refused.body)).toMatchObject({
    waitsAt: 'agent',
    agent: null,
    cluster: null,
    stations: [{ station: 'hub' }, { text: expect.stringContaining('AppProject closed does not allow destination') }],
  });

  await Promise.all(Array.from({ length: 49 }, (_, index) => mapAgent(hub.client, `more-${index}`)));
  await until(
    '50 clusters',
    async () => (await get('/', session('admin'))).body.includes('<b>1</b> of <b>50</b> clusters are ready.'),
    details,
  );
  await pair.agent.stop('SIGKILL');
  await until(
    'the agent is lost',
    async () => (await get('/', session('admin'))).body.includes(`data-agent="${name}" data-state="lost"`),
    details,
  );
});
