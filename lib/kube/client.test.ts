import { readFile, writeFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { mergePatchBetween } from '../base/index.ts';
import { until } from '../base/testing.ts';
import { KubeClient } from './client.ts';
import type { ClientOptions, ObservedRequest } from './client-options.ts';
import { type ApiError, ConnectionError, isConflict, isGone, isNotFound } from './errors.ts';
import { configMaps, namespaces } from './resources.ts';
import { type ScriptedServer, startScriptedServer } from './testing/scripted-server.ts';
import { startTcpProxy } from './testing/tcp-proxy.ts';

let server: ScriptedServer;
let client: KubeClient;
const clients: KubeClient[] = [];

beforeAll(async () => {
  server = await startScriptedServer();
});
afterAll(() => server.close());
beforeEach(() => {
  server.requests.length = 0;
  client = newClient();
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((c) => c.close()));
});

function newClient(options: ClientOptions = {}, kubeconfig = server.kubeconfig): KubeClient {
  const made = KubeClient.fromKubeconfig(kubeconfig, undefined, options);
  clients.push(made);
  return made;
}

const key = { namespace: 'ns', name: 'a' };
const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...key, resourceVersion: '1' } };
const status = (code: number, reason: string, message: string, details = {}) =>
  JSON.stringify({ kind: 'Status', code, reason, message, details });

function answerWith(...answers: [code: number, body: string, headers?: Record<string, string>][]): void {
  let next = 0;
  server.answer((_, response) => {
    const [code, body, headers] = answers[Math.min(next++, answers.length - 1)] ?? [500, ''];
    response.writeHead(code, { 'content-type': 'application/json', ...headers }).end(body);
  });
}

const seen = () => server.requests.map(({ method, url }) => `${method} ${url}`);

test('whoever knows an object asks for nothing but its metadata', async () => {
  answerWith([200, JSON.stringify({ metadata: { ...key, resourceVersion: '2' } })]);
  const made = await client.create(configMaps, { metadata: { ...key } }, { metadataOnly: true });
  await client.mergePatch(configMaps, key, { data: null }, { metadataOnly: true });
  expect(made.metadata.resourceVersion).toBe('2');
  const accept = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';
  expect(server.requests.map(({ headers }) => headers.accept)).toEqual([accept, accept]);
});

test('integers of 64 bits are written as they were read, and watched', async () => {
  const text = JSON.stringify({ ...object, data: { id: 1 } }).replace('"id":1', '"id":1234567890123456789');
  answerWith([200, text], [200, text], [200, `{"type":"ADDED","object":${text}}\n`]);
  await client.create(configMaps, (await client.get(configMaps, key)) as typeof object);
  expect(server.requests[1]?.body).toBe(text);
  const events = await client.watch(configMaps, { namespace: 'ns', resourceVersion: '1' });
  expect(JSON.stringify((await events.next()).value)).toBe(`{"type":"ADDED","object":${text}}`);
});

test('a patch is a merge patch, or a JSON Patch where that cannot say it', async () => {
  answerWith([200, JSON.stringify(object)]);
  const planned = { ...object, data: { a: 'x' } };
  const write = (to: object) => client.patch(configMaps, key, mergePatchBetween(planned, to) ?? {}, { planned });
  await write({ ...planned, data: { b: 'y' } });
  await write({ ...planned, data: { b: { c: null } } });
  const [merge, json] = server.requests.map(({ headers, body }) => [headers['content-type'], JSON.parse(body)]);
  expect(merge).toEqual(['application/merge-patch+json', { data: { a: null, b: 'y' } }]);
  expect(json).toEqual([
    'application/json-patch+json',
    [
      { op: 'remove', path: '/data/a' },
      { op: 'add', path: '/data/b', value: { c: null } },
    ],
  ]);
});

test('a JSON Patch that is refused is a conflict if the object has changed since it was made', async () => {
  const refused = status(422, 'Invalid', 'the server rejected our request due to an error in our request');
  const patch = mergePatchBetween({ data: {} }, { data: { a: null } }) ?? {};
  const write = () =>
    client.patch(configMaps, key, patch, { planned: { ...object, data: {} } }).catch((error: ApiError) => error);
  answerWith([422, refused], [200, JSON.stringify({ ...object, metadata: { ...key, resourceVersion: '2' } })]);
  expect(isConflict(await write())).toBe(true);
  answerWith([422, refused], [404, '']);
  expect(isConflict(await write())).toBe(true);
  answerWith([422, refused], [200, JSON.stringify(object)]);
  expect(await write()).toMatchObject({ status: 422 });
  // Without knowledge of the object it is read first.
  server.requests.length = 0;
  answerWith([200, JSON.stringify({ ...object, data: {} })]);
  await client.patch(configMaps, key, patch);
  expect(server.requests.map(({ method }) => method)).toEqual(['GET', 'PATCH']);
  expect(JSON.parse(server.requests[1]?.body ?? '')).toEqual([{ op: 'add', path: '/data/a', value: null }]);
});

test('each method sends the request that the API defines', async () => {
  answerWith([200, JSON.stringify(object)]);
  await client.get(configMaps, key);
  await client.create(configMaps, { metadata: { ...key } }, { fieldManager: 'me' });
  await client.replace(configMaps, { metadata: { ...key } }, { subresource: 'status' });
  await client.apply(
    configMaps,
    { metadata: { ...key, managedFields: [] }, data: { a: '1' } },
    { fieldManager: 'me', force: true },
  );
  await client.mergePatch(configMaps, key, { data: null }, { subresource: 'status' });
  await client.mergePatch(configMaps, key, { data: {} }, { dryRun: true });
  await client.delete(configMaps, key, { uid: 'u', propagationPolicy: 'Foreground', gracePeriodSeconds: 0 });
  expect(server.requests.map(({ headers }) => headers.accept)).toEqual(Array(7).fill('application/json'));
  const base = '/api/v1/namespaces/ns/configmaps';
  expect(seen()).toEqual([
    `GET ${base}/a`,
    `POST ${base}?fieldManager=me&fieldValidation=Ignore`,
    `PUT ${base}/a/status?fieldValidation=Ignore`,
    `PATCH ${base}/a?fieldManager=me&fieldValidation=Ignore&force=true`,
    `PATCH ${base}/a/status?fieldValidation=Ignore`,
    `PATCH ${base}/a?fieldValidation=Ignore&dryRun=All`,
    `DELETE ${base}/a`,
  ]);
  expect(server.requests.map(({ headers }) => headers['content-type'])).toEqual([
    undefined,
    'application/json',
    'application/json',
    'application/apply-patch+yaml',
    'application/merge-patch+json',
    'application/merge-patch+json',
    'application/json',
  ]);
  expect(JSON.parse(server.requests[3]?.body ?? '')).toEqual({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: key,
    data: { a: '1' },
  });
  expect(JSON.parse(server.requests[6]?.body ?? '')).toEqual({
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    preconditions: { uid: 'u' },
    propagationPolicy: 'Foreground',
    gracePeriodSeconds: 0,
  });
  expect(server.requests[0]?.headers).toMatchObject({
    'user-agent': 'argocd-fleet',
    authorization: 'Bearer first-token',
  });
  expect(client.namespace).toBe('mine');
});

test('a key that does not fit the kind is refused before anything is sent', async () => {
  await expect(client.get(configMaps, { name: 'a' })).rejects.toThrow('ConfigMap "a" needs a namespace');
  await expect(client.get(configMaps, { namespace: 'ns', name: '' })).rejects.toThrow('a ConfigMap needs a name');
  await expect(client.list(namespaces, { namespace: 'ns' })).rejects.toThrow('Namespace is cluster-scoped');
  expect(seen()).toEqual([]);
});

test('what is not there is undefined to get, success to delete, and an error to patch', async () => {
  answerWith([404, status(404, 'NotFound', 'configmaps "a" not found')]);
  expect(await client.get(configMaps, key)).toBeUndefined();
  await client.delete(configMaps, key);
  const error = await client.mergePatch(configMaps, key, {}).catch((e: unknown) => e);
  expect(isNotFound(error)).toBe(true);
  expect(String(error)).toBe('ApiError: PATCH /api/v1/namespaces/ns/configmaps/a: configmaps "a" not found');
});

test('a list of a kind that is not served says which CustomResourceDefinition is missing', async () => {
  const project = {
    ...configMaps,
    group: 'argoproj.io',
    version: 'v1alpha1',
    kind: 'AppProject',
    plural: 'appprojects',
  };
  answerWith([404, '404 page not found'], [404, '404 page not found']);
  await expect(client.list(project)).rejects.toThrow(
    'the API server does not serve appprojects of argoproj.io/v1alpha1: install the CustomResourceDefinition appprojects.argoproj.io with version v1alpha1',
  );
  const own = { ...configMaps, group: 'events.k8s.io', version: 'v1', kind: 'Event', plural: 'events' };
  await expect(client.list(own)).rejects.toThrow(/does not serve events of events.k8s.io\/v1$/);
});

test('errors carry the fields of the Status; the page of a proxy is shown as text', async () => {
  const causes = [{ reason: 'FieldManagerConflict', field: '.data.x', message: 'conflict with "kubectl"' }];
  answerWith([409, status(409, 'Conflict', 'Apply failed', { causes })]);
  const error = await client.replace(configMaps, object).catch((e: unknown) => e);
  expect(isConflict(error)).toBe(true);
  expect((error as ApiError).details?.causes).toEqual(causes);
  answerWith([502, '<html>bad gateway</html>']);
  await expect(client.replace(configMaps, object)).rejects.toThrow('<html>bad gateway</html>');
});

test('429 is tried again after the time that the server asks for, also for writes', async () => {
  answerWith([429, 'slow down', { 'retry-after': '1' }], [201, JSON.stringify(object)]);
  const startedAt = performance.now();
  await client.create(configMaps, { metadata: key });
  expect(performance.now() - startedAt).toBeGreaterThan(990);
  expect(seen()).toHaveLength(2);
});

test('each attempt is reported, and waits for its turn when there is a rate', async () => {
  const observed: ObservedRequest[] = [];
  const paced = newClient({ observe: (request) => observed.push(request), rate: { perSecond: 20, burst: 2 } });
  answerWith([429, status(429, 'TooManyRequests', 'slow down')], [200, JSON.stringify(object)]);
  await paced.get(configMaps, key);
  await paced.get(configMaps, key);
  expect(observed.map(({ method, status }) => [method, status])).toEqual([
    ['GET', 429],
    ['GET', 200],
    ['GET', 200],
  ]);
  await Promise.all([paced.get(configMaps, key), paced.get(configMaps, key), paced.get(configMaps, key)]);
  expect(Math.max(...observed.map(({ waitedSeconds }) => waitedSeconds))).toBeGreaterThan(0);
});

test('500 is not repeated', async () => {
  answerWith([500, status(500, 'InternalError', 'etcdserver: request timed out')]);
  await expect(client.create(configMaps, { metadata: key })).rejects.toMatchObject({ status: 500 });
  await expect(client.get(configMaps, key)).rejects.toMatchObject({ status: 500 });
  expect(seen()).toHaveLength(2);
});

test('a connection that breaks under a request: reads, applies and what may be repeated are repeated once, other writes never', async () => {
  server.answer((_, response) => void response.stream?.destroy());
  const cutOnce = () => {
    let isCut = false;
    server.answer((_, response) => {
      if (isCut) {
        response.writeHead(200).end(JSON.stringify(object));
      } else {
        isCut = true;
        server.cut();
      }
    });
  };
  cutOnce();
  await client.get(configMaps, key);
  cutOnce();
  await client.apply(configMaps, { metadata: key }, { fieldManager: 'me' });
  expect(seen()).toHaveLength(4);
  cutOnce();
  await client.create(configMaps, { metadata: key }, { repeatable: true });
  expect(seen()).toHaveLength(6);
  cutOnce();
  const error = await client.create(configMaps, { metadata: key }).catch((e: unknown) => e);
  expect(error).toBeInstanceOf(ConnectionError);
  expect((error as ConnectionError).sent).toBe(true);
  expect(seen()).toHaveLength(7);
});

test('a server that is not there is reported at once as such', async () => {
  const other = newClient({}, await server.kubeconfigVia(1));
  const error = await other.get(configMaps, key).catch((e: unknown) => e);
  expect(error).toMatchObject({ name: 'ConnectionError', code: 'ECONNREFUSED', sent: false });
  expect(String(error)).toContain('GET https://127.0.0.1:1/api/v1/namespaces/ns/configmaps/a');
});

test('who waits for a server that is not there is woken when any request of the client is answered', async () => {
  const former = await startTcpProxy(server.port);
  const { port } = former;
  await former.close();
  const mine = newClient({}, await server.kubeconfigVia(port));
  const never = new AbortController().signal;
  expect(await mine.answersAgain(1, never), 'nothing has failed').toBe(true);
  await expect(mine.get(configMaps, key)).rejects.toThrow('ECONNREFUSED');
  expect(await mine.answersAgain(1, never)).toBe(false);
  const waiting = Promise.all([mine.answersAgain(60_000, never), mine.answersAgain(60_000, never)]);
  const proxy = await startTcpProxy(server.port, port);
  try {
    answerWith([500, status(500, 'InternalError', 'not yet')]);
    await expect(mine.get(configMaps, key)).rejects.toThrow('not yet');
    expect(await waiting).toEqual([true, true]);
  } finally {
    await proxy.close();
  }
});

test('a rotated token is read again when the server refuses the old one', async () => {
  answerWith([200, JSON.stringify(object)]);
  await client.get(configMaps, key);
  await server.setToken('second-token');
  server.answer((request, response) => {
    if (request.headers.authorization === 'Bearer second-token') {
      response.writeHead(200).end(JSON.stringify(object));
    } else {
      response.writeHead(401).end(status(401, 'Unauthorized', 'Unauthorized'));
    }
  });
  expect(await client.get(configMaps, key)).toEqual(object);
  await server.setToken('third-token');
  server.answer((_, response) => void response.writeHead(401).end(status(401, 'Unauthorized', 'Unauthorized')));
  server.requests.length = 0;
  await expect(client.get(configMaps, key)).rejects.toMatchObject({ status: 401 });
  expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([
    'Bearer second-token',
    'Bearer third-token',
  ]);
  await server.setToken('first-token');
});

test('a request may name another user to act as than the kubeconfig', async () => {
  answerWith([200, JSON.stringify(object)]);
  const file = `${server.kubeconfig}-as`;
  await writeFile(
    file,
    (await readFile(server.kubeconfig, 'utf8')).replace(/"?tokenFile"?:/, (field) => `"as": "jane", ${field}`),
  );
  const as = newClient({}, file);
  await as.request('/api');
  await as.request('/api', { headers: { 'impersonate-user': 'joe' } });
  expect(server.requests.map(({ headers }) => headers['impersonate-user'])).toEqual(['jane', 'joe']);
});

test('a server that stays silent is given up, an abort ends a request at once', async () => {
  server.answer(() => undefined);
  const impatient = newClient({ requestTimeoutMs: 200 });
  await expect(impatient.create(configMaps, { metadata: key })).rejects.toBeInstanceOf(ConnectionError);
  const stop = new AbortController();
  const waiting = client.get(configMaps, key, stop.signal);
  await until(() => expect(server.requests).toHaveLength(2));
  stop.abort(new Error('enough'));
  await expect(waiting).rejects.toThrow('enough');
});

test('lists all pages and sets apiVersion and kind of the items', async () => {
  server.answer((request, response) => {
    const next = new URL(request.url, 'http://x').searchParams.get('continue');
    const items = [{ metadata: { name: next ? 'b' : 'a' } }];
    response
      .writeHead(200)
      .end(JSON.stringify({ metadata: { resourceVersion: '7', continue: next ? '' : 'more' }, items }));
  });
  const items = await client.list(configMaps, { namespace: 'ns', labelSelector: 'a=b', pageSize: 1 });
  expect(items).toEqual(['a', 'b'].map((name) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } })));
  expect(seen()).toEqual([
    'GET /api/v1/namespaces/ns/configmaps?labelSelector=a%3Db&limit=1',
    'GET /api/v1/namespaces/ns/configmaps?labelSelector=a%3Db&limit=1&continue=more',
  ]);
});

test('kinds are looked up once; one that was missing is looked up again', async () => {
  let served = false;
  server.answer((_, response) => {
    const resources = served
      ? [
          { name: 'things', kind: 'Thing', namespaced: true },
          { name: 'things/status', kind: 'Thing', namespaced: true },
        ]
      : [];
    response.writeHead(served ? 200 : 404).end(JSON.stringify({ resources }));
  });
  const missing = await Promise.all([client.resolve('g/v1', 'Thing'), client.resolve('g/v1', 'Thing')]);
  expect(missing).toEqual([undefined, undefined]);
  expect(seen()).toEqual(['GET /apis/g/v1']);
  served = true;
  const thing = { group: 'g', version: 'v1', kind: 'Thing', plural: 'things', namespaced: true };
  await until(async () => expect(await client.resolve('g/v1', 'Thing')).toEqual(thing));
  const asked = seen().length;
  expect(await client.resolve('g/v1', 'Thing')).toEqual(thing);
  expect(seen()).toHaveLength(asked);
});

test('a raw request streams', async () => {
  const lines = Promise.withResolvers<void>();
  server.answer(async (_, response) => {
    response.writeHead(200);
    response.write('first');
    await lines.promise;
    response.end('second');
  });
  const response = await client.request('/logs?follow=true', { timeoutMs: 0 });
  const parts: string[] = [];
  for await (const part of response.body) {
    parts.push(Buffer.from(part).toString());
    lines.resolve();
  }
  expect(parts).toEqual(['first', 'second']);
});

const added = (version: string) =>
  `${JSON.stringify({ type: 'ADDED', object: { ...object, metadata: { ...key, resourceVersion: version } } })}\n`;

test('watches share an HTTP/2 connection, requests use HTTP/1.1', async () => {
  server.answer((request, response) => {
    response.writeHead(200);
    if (request.url.includes('watch=true')) {
      response.write(added('5'));
    } else {
      response.end(JSON.stringify(object));
    }
  });
  const watches = await Promise.all(
    [1, 2, 3].map(() => client.watch(configMaps, { namespace: 'ns', resourceVersion: '4' })),
  );
  for (const watch of watches) {
    expect((await watch.next()).value).toMatchObject({ type: 'ADDED' });
  }
  await client.get(configMaps, key);
  expect(server.requests.map((r) => r.httpVersion)).toEqual(['2.0', '2.0', '2.0', '1.1']);
  expect(seen()[0]).toMatch(/watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=4$/);
});

test.each([['h2' as const], ['http/1.1' as const]])(
  'a watch over %s ends, breaks, is refused and aborted as it should',
  async (protocol) => {
    const other = await startScriptedServer(protocol === 'h2');
    try {
      const mine = newClient({}, other.kubeconfig);
      const watch = (signal?: AbortSignal) => mine.watch(configMaps, { resourceVersion: '4', signal });

      other.answer((_, response) => void response.writeHead(200).end(added('5')));
      const ending = await watch();
      expect((await ending.next()).done).toBe(false);
      expect((await ending.next()).done).toBe(true);

      other.answer(
        (_, response) => void response.writeHead(410).end(status(410, 'Expired', 'too old resource version')),
      );
      expect(isGone(await watch().catch((e: unknown) => e))).toBe(true);

      other.answer((_, response) => void response.writeHead(200).write(added('5')));
      const breaking = await watch();
      await breaking.next();
      const next = breaking.next().catch((e: unknown) => e);
      other.cut();
      expect(await next).toBeInstanceOf(ConnectionError);

      const stop = new AbortController();
      const aborted = await watch(stop.signal);
      await aborted.next();
      const last = aborted.next();
      stop.abort(new Error('enough'));
      await expect(last).rejects.toThrow('enough');
      expect(other.requests.at(-1)?.httpVersion).toBe(protocol === 'h2' ? '2.0' : '1.1');
    } finally {
      await other.close();
    }
  },
);

test('a watch that is aborted at any moment before it is open ends with the reason', async () => {
  server.answer((_, response) => void response.writeHead(200).write(added('5')));
  const reason = new Error('enough');
  // With and without a connection that is open already: the first of each client has to make one.
  for (let client = newClient(), warm = 0; warm < 2; warm++) {
    for (let ticks = 0; ticks < 30; ticks++) {
      const stop = new AbortController();
      const outcome = client
        .watch(configMaps, { resourceVersion: '4', signal: stop.signal })
        .then(async (watch) => {
          for await (const _ of watch) {
            expect(stop.signal.aborted).toBe(true);
          }
        })
        .catch((error: unknown) => error);
      for (let tick = 0; tick < ticks; tick++) {
        await undefined;
      }
      stop.abort(reason);
      expect(await outcome, `aborted after ${ticks} microtasks`).toBe(reason);
      if (!warm) {
        client = newClient();
      }
    }
    await (await client.watch(configMaps, { resourceVersion: '4' })).next();
  }
});

test('a connection that is dead without being closed is noticed, and the next one works', async () => {
  const proxy = await startTcpProxy(server.port);
  try {
    const mine = newClient({ pingIntervalMs: 100, pingTimeoutMs: 200 }, await server.kubeconfigVia(proxy.port));
    server.answer((_, response) => void response.writeHead(200).write(added('5')));
    const watch = await mine.watch(configMaps, { resourceVersion: '4' });
    await watch.next();
    const silent = watch.next().catch((e: unknown) => e);
    server.answer(() => undefined);
    const requests = [mine.create(configMaps, { metadata: key }), mine.get(configMaps, key)];
    const answers = requests.map((r) => r.catch((e: unknown) => e));
    await until(() => expect(server.requests).toHaveLength(3));
    server.answer((request, response) => {
      response.writeHead(200);
      if (request.url.includes('watch=true')) {
        response.write(added('5'));
      } else {
        response.end(JSON.stringify(object));
      }
    });
    proxy.blackHole();
    const error = await silent;
    expect(await answers[0]).toMatchObject({ code: 'DEAD' });
    expect(await answers[1]).toEqual(object);
    expect(error).toMatchObject({ name: 'ConnectionError', code: 'DEAD' });
    expect(String(error)).toMatch(/is dead: silent for \d+ ms, ping unanswered/);
    const again = await mine.watch(configMaps, { resourceVersion: '4' });
    expect((await again.next()).done).toBe(false);
    expect(proxy.accepted).toBe(5);
  } finally {
    await proxy.close();
  }
});

test('a quiet connection that answers pings is left alone', async () => {
  const mine = newClient({ pingIntervalMs: 20, pingTimeoutMs: 200 });
  const later = Promise.withResolvers<void>();
  server.answer(async (_, response) => {
    response.writeHead(200).write('\n');
    await later.promise;
    response.write(added('5'));
  });
  const watch = await mine.watch(configMaps, { resourceVersion: '4' });
  const event = watch.next();
  // Longer than a ping and its time limit together, several times over.
  setTimeout(() => later.resolve(), 800);
  expect((await event).value).toMatchObject({ type: 'ADDED' });
});

test('a connection is not taken for dead because this process was busy', async () => {
  const mine = newClient({ pingIntervalMs: 1, pingTimeoutMs: 100 });
  server.answer((_, response) => void response.writeHead(200).write(added('5')));
  const watch = await mine.watch(configMaps, { resourceVersion: '4' });
  await watch.next();
  let ended: unknown;
  const next = watch.next().catch((error: unknown) => {
    ended = error;
  });
  for (let i = 0; i < 10; i++) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
  }
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(ended).toBeUndefined();
  await mine.close();
  await next;
});

test('many requests at once under one signal cause no warning', async () => {
  answerWith([200, JSON.stringify(object)]);
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on('warning', note);
  const { signal } = new AbortController();
  await Promise.all(Array.from({ length: 100 }, () => client.get(configMaps, key, signal)));
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', note);
  expect(warnings).toEqual([]);
});

test('requests and watches reach an API server at an IPv6 address', { tags: 'ipv6' }, async () => {
  const other = await startScriptedServer(true, '::1');
  const api = KubeClient.fromKubeconfig(other.kubeconfig);
  try {
    other.answer(({ url }, response) => {
      const isWatch = url?.includes('watch=');
      response.end(JSON.stringify(isWatch ? { type: 'ADDED', object } : object));
    });
    expect((await api.get(configMaps, key))?.metadata.name).toBe('a');
    const events = await api.watch(configMaps, { resourceVersion: '1', signal: AbortSignal.timeout(5_000) });
    for await (const event of events) {
      expect(event.type).toBe('ADDED');
      break;
    }
    expect(api.server).toContain('[::1]');
  } finally {
    await api.close();
    await other.close();
  }
});
