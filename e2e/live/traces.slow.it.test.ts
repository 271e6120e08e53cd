import { createClient } from '@redis/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import type { KeyCertificate } from '../../lib/pki/index.ts';
import { kubeletPods, type Node, startNode } from '../node/index.ts';
import { type CollectedSpan, type Collector, freePort, type Pair, startCollector } from '../pair/index.ts';
import { type Redis, startRedis } from '../redis/index.ts';
import type { ProxyClient } from './proxy-client.ts';
import { deployWeb, shopPod, startProxiedPair } from './shop.ts';
import { TerminalClient } from './terminal-client.ts';

// What a user does through live access is one trace, from the hub to the cluster's API server and back; and what a trace may not say.

/** Stands where a trace must not look. */
const hidden = 's3cret';

let collector: Collector;
let redis: Redis;
let node: Node;
let pair: Pair;
let port: number;
let redisProxyPort: number;
let mine: KeyCertificate;
let proxy: ProxyClient;

beforeAll(async () => {
  [collector, redis, redisProxyPort] = await Promise.all([startCollector(), startRedis(), freePort()]);
  const args = [`--otlp-address=${collector.address}`, '--otlp-insecure'];
  ({
    pair,
    port,
    credential: mine,
    proxy,
  } = await startProxiedPair({
    principal: { redisProxy: redisProxyPort, redis: redis.port, args },
    agent: { redis: redis.port, args },
  }));
  const { client } = pair.managed;
  node = await startNode({ cluster: pair.managed, dir: pair.managed.dir });
  await deployWeb(pair.hub.client, pair.name, client, proxy);
  const tracking = { 'argocd.argoproj.io/tracking-id': 'web:/Pod:shop/web' };
  await client.create(kubeletPods, shopPod('web', `echo ${hidden}-line; exec sleep 100000`, tracking));
  const look = async () =>
    (await client.get(kubeletPods, { name: 'web', namespace: 'shop' }))?.status?.phase === 'Running' || undefined;
  await until('the pod runs', look, { timeoutMs: 120_000 });
});
afterAll(async () => {
  await node?.stop();
  await pair?.stop();
  await Promise.all([collector?.stop(), redis?.stop()]);
});

const [hub, agent] = ['principal', 'agent-managed'];

/** Waits for a span of a program, by its name, and by its parent if one is given. */
async function span(
  service: string | undefined,
  name: string | RegExp,
  parent?: Pick<CollectedSpan, 'traceId' | 'spanId'>,
  also: (span: CollectedSpan) => boolean = () => true,
): Promise<CollectedSpan> {
  const isIt = (it: CollectedSpan) =>
    it.service === service &&
    (typeof name === 'string' ? it.name === name : name.test(it.name)) &&
    (parent === undefined || (it.parentId === parent.spanId && it.traceId === parent.traceId)) &&
    also(it);
  return until(`${service} traces ${name}`, async () => collector.spans.find(isIt), {
    details: () =>
      [...collector.refusals, ...collector.spans.slice(-60).map((it) => `${it.service} ${it.name}`)].join('\n'),
  });
}

/** The caller's own span, and the header that names it. */
function caller(digit: string) {
  const context = { traceId: digit.repeat(32), spanId: digit.repeat(16) };
  return { context, headers: { traceparent: `00-${context.traceId}-${context.spanId}-01` } };
}

const pod = '/api/v1/namespaces/shop/pods/web';

test('a request for an object is one trace, from its caller to the API server', async () => {
  const { context, headers } = caller('a');
  expect((await proxy.send('GET', `${pod}?pretty=${hidden}`, { headers })).status).toBe(200);
  const served = await span(hub, 'resource-proxy GET pods', context);
  expect(served).toMatchObject({
    kind: 'server',
    attributes: {
      'http.request.method': 'GET',
      'http.response.status_code': '200',
      'argocd.agent.name': pair.name,
      'k8s.resource.type': 'pods',
      'k8s.resource.namespace': 'shop',
      'k8s.resource.name': 'web',
    },
    error: undefined,
  });
  const executed = await span(agent, 'resource.GET', served);
  expect(await span(agent, 'GET pods', executed)).toMatchObject({
    kind: 'client',
    attributes: { 'http.response.status_code': '200', 'k8s.resource.name': 'web' },
  });
});

test('a request that fails shows where, and nothing of its path unless it is of a resource', async () => {
  const { context, headers } = caller('b');
  const body = JSON.stringify({ metadata: { labels: { password: hidden } } });
  const type = { 'content-type': 'application/merge-patch+json' };
  expect((await proxy.send('PATCH', `${pod}x`, { body, headers: { ...headers, ...type } })).status).toBe(404);
  const served = await span(hub, 'resource-proxy PATCH pods', context);
  expect(served.error).toBe('HTTP status 404');
  const executed = await span(agent, 'resource.PATCH', served);
  expect((await span(agent, 'GET pods', executed)).error).toBe('HTTP status 404');
  const other = caller('c');
  expect((await proxy.send('GET', `/login/${hidden}`, { headers: other.headers })).status).toBe(404);
  expect((await span(hub, 'resource-proxy GET', other.context)).attributes['k8s.resource.name']).toBeUndefined();
});

test('a log is one trace, with the stream that the agent opens for it', async () => {
  const { context, headers } = caller('d');
  expect((await proxy.send('GET', `${pod}/log?container=main`, { headers })).text).toContain(hidden);
  const served = await span(hub, 'resource-proxy GET pods/log', context);
  const executed = await span(agent, 'containerlog.GET', served);
  await span(agent, 'GET pods/log', executed);
  const call = await span(agent, /\/StreamLogs$/, executed);
  expect(call).toMatchObject({ kind: 'client', attributes: { 'rpc.system': 'grpc', 'rpc.method': 'StreamLogs' } });
  expect((await span(hub, call.name, call)).kind).toBe('server');
});

test('a terminal is one trace, as long as it is open', async () => {
  const at = { port, authority: pair.authority, client: mine };
  const terminal = await TerminalClient.open(
    at,
    `${pod}/exec?container=main&stdout=true&command=echo&command=${hidden}`,
  );
  await terminal.ends();
  expect(terminal.stdout).toContain(hidden);
  const served = await span(hub, 'resource-proxy GET pods/exec');
  expect(served.attributes['http.response.status_code']).toBe('101');
  const executed = await span(agent, /^terminal\./, served);
  const call = await span(agent, /\/StreamTerminal$/, executed);
  await span(hub, call.name, call);
});

test("a question to the cluster's Redis is one trace, without the key", async () => {
  const client = createClient({ RESP: 3, socket: { host: '127.0.0.1', port: redisProxyPort } });
  client.on('error', () => undefined);
  await client.connect();
  try {
    await client.get(`app|resources-tree|${pair.name}_${hidden}|1.8.3.gz`);
  } finally {
    client.destroy();
  }
  const asked = await span(hub, 'redis-proxy get');
  expect(asked).toMatchObject({ kind: 'client', attributes: { 'argocd.agent.name': pair.name } });
  await span(agent, /^redis\./, asked);
});

test('what an event of the hub makes the agent write is part of its trace', async () => {
  const isWeb = ({ attributes }: CollectedSpan) => attributes['k8s.resource.name']?.endsWith('/web') === true;
  const made = await span(hub, 'Application.create', undefined, isWeb);
  const taken = await span(agent, /^application\..*create$/, made);
  expect(await span(agent, 'POST applications', taken)).toMatchObject({ kind: 'client', error: undefined });
});

test('gRPC calls are traced on both sides', async () => {
  const call = await span(agent, /\/Authenticate$/);
  expect(call).toMatchObject({ kind: 'client', attributes: { 'rpc.grpc.status_code': '0' }, error: undefined });
  await span(hub, call.name, call);
});

test('the collector could read everything, and found nothing that is to be kept', () => {
  expect(collector.refusals).toEqual([]);
  expect(collector.spans.length).toBeGreaterThan(20);
  expect(collector.spans.filter((it) => JSON.stringify(it).includes(hidden))).toEqual([]);
});
