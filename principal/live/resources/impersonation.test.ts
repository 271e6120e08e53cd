import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ProxyClient } from '../../../e2e/live/index.ts';
import { eventTypes, LogStreamData, messageEvent, targets, type WireEvent } from '../../../lib/wire/index.ts';
import { Bodies } from '../agent-bodies.ts';
import { AgentRequests } from '../agent-requests.ts';
import { FakeStream } from '../testing/fake-stream.ts';
import { serveProxy } from '../testing/served-proxy.ts';
import type { ResourceProxy } from './resource-proxy.ts';

// Requests that Argo CD sends as a service account, to an agent that the test plays.

const account = 'system:serviceaccount:shop:deployer';
const pod = '/api/v1/namespaces/shop/pods/web';
const secret = '{"kind":"Secret"}';

let proxy: ResourceProxy;
let client: ProxyClient;
let asked: WireEvent[] = [];
/** What the agent does with a request. */
let reply: (event: WireEvent) => void = () => undefined;

const bodies = new Bodies();
const exchange = new AgentRequests((_agent, event) => {
  asked.push(event);
  setImmediate(() => reply(event));
  return true;
});
const payloadOf = ({ data }: WireEvent) => JSON.parse(Buffer.from(data).toString()) as Record<string, unknown>;
const answer = ({ eventId: uuid }: WireEvent, payload: object) =>
  exchange.answered(
    'edge',
    messageEvent(targets.resource, eventTypes.response, { uuid, ...payload }, { source: '' }, { eventId: uuid }),
  );

beforeAll(async () => {
  const connected = { send: () => true, isConnected: () => true, connected: () => Promise.resolve() };
  const served = await serveProxy({ exchange, bodies, ...connected });
  ({ proxy } = served);
  client = new ProxyClient(proxy.port, served.authority, served.client);
});
afterAll(() => proxy?.close());
beforeEach(() => {
  asked = [];
  reply = (event) =>
    answer(event, { status: 200, resource: secret, contentType: 'application/json', impersonated: true });
});

const sendAs = (user: string, method = 'GET', path = pod, more: Record<string, string> = {}) =>
  client.send(method, path, { headers: { 'Impersonate-User': user, ...more } });

test.each([
  ['GET', pod],
  ['DELETE', pod],
  ['GET', `${pod}/log?follow=true`],
  ['GET', '/api/v1'],
])('%s %s reaches the agent in a form that only agents understand which impersonate', async (method, path) => {
  expect(await sendAs(account, method, path)).toMatchObject({ status: 200, text: secret });
  expect(asked.map(({ target, type }) => [target, type])).toEqual([
    ['resource', 'io.argoproj.argocd-agent.event.impersonated-request'],
  ]);
  expect(asked.map(payloadOf)).toMatchObject([{ method: '', impersonated: { method, user: account } }]);
});

test.each<[string, object]>([
  ["argocd-agent's agent, to which the empty method is none", { status: 500 }],
  ['an older agent, to which the type is no method', { status: 405, resource: '{}', contentType: 'application/json' }],
  ['an agent that executes it as itself', { status: 200, resource: secret, contentType: 'application/json' }],
])('the answer of %s is refused', async (_, payload) => {
  reply = (event) => answer(event, payload);
  const { status, text } = await sendAs(account);
  expect([status, JSON.parse(text)]).toEqual([
    501,
    expect.objectContaining({
      kind: 'Status',
      message: `agent edge cannot execute requests as ${account}: it is argocd-agent's own, or of an older version`,
    }),
  ]);
});

test('a streamed answer without the acknowledgement is refused as well', async () => {
  reply = (event) => {
    const stream = new FakeStream('edge');
    stream
      .servedBy((opened) => bodies.serve(opened))
      .message(LogStreamData.fromPartial({ requestUuid: event.eventId, data: Buffer.from(secret) }));
    answer(event, { status: 200, contentType: 'application/json', streamed: true });
  };
  const { status, text } = await sendAs(account);
  expect([status, text.includes('Secret')]).toEqual([501, false]);
});

test("the agent's own refusal is passed on", async () => {
  reply = (event) =>
    answer(event, { status: 405, resource: '{"kind":"Status"}', contentType: 'application/json', impersonated: true });
  expect(await sendAs(account)).toMatchObject({ status: 405, text: '{"kind":"Status"}' });
});

test.each<[string, Record<string, string>]>([
  ['a person', { 'Impersonate-User': 'admin' }],
  ['a system user', { 'Impersonate-User': 'system:admin' }],
  ['a node', { 'Impersonate-User': 'system:node:n1' }],
  ['nobody', { 'Impersonate-User': '' }],
  ['a name without namespace', { 'Impersonate-User': 'system:serviceaccount:deployer' }],
  ['a name with more', { 'Impersonate-User': `${account}:x` }],
  ['two accounts', { 'Impersonate-User': `${account}, ${account}` }],
  ['a path', { 'Impersonate-User': 'system:serviceaccount:shop:../x' }],
  ['a group', { 'Impersonate-User': account, 'Impersonate-Group': 'system:masters' }],
  ['a group alone', { 'Impersonate-Group': 'system:masters' }],
  ['a UID', { 'Impersonate-User': account, 'Impersonate-Uid': '1' }],
  ['extra fields', { 'Impersonate-User': account, 'Impersonate-Extra-Scopes': 'all' }],
])('%s is refused, and the agent is not asked', async (_, headers) => {
  const { status, text } = await client.send('GET', pod, { headers });
  expect([status, JSON.parse(text).kind, asked]).toEqual([403, 'Status', []]);
});

test('a terminal as a service account is refused', async () => {
  const upgrade = { Connection: 'Upgrade', Upgrade: 'websocket' };
  for (const headers of [{}, upgrade]) {
    expect((await sendAs(account, 'GET', `${pod}/exec?command=sh`, headers)).status).toBe(403);
  }
  expect(asked).toEqual([]);
});

test('a request without impersonation is as before', async () => {
  reply = (event) => answer(event, { status: 200, resource: secret, contentType: 'application/json' });
  expect(await client.send('GET', pod)).toMatchObject({ status: 200, text: secret });
  expect(asked.map(({ type }) => type)).toEqual(['GET']);
  expect(asked.map(payloadOf)[0]).toMatchObject({ method: 'GET' });
  expect(asked.map(payloadOf)[0]).not.toHaveProperty('impersonated');
});
