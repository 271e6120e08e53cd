import { afterAll, beforeAll, expect, test } from 'vitest';
import { ProxyClient } from '../../../e2e/live/index.ts';
import { eventTypes, LogStreamData, messageEvent, targets, type WireEvent } from '../../../lib/wire/index.ts';
import { Bodies } from '../agent-bodies.ts';
import { AgentRequests } from '../agent-requests.ts';
import { FakeStream } from '../testing/fake-stream.ts';
import { mostAnswerBytes, serveProxy } from '../testing/served-proxy.ts';
import type { ResourceProxy } from './resource-proxy.ts';

// Answers of an agent that the test plays, in pieces on a live stream.

const pieces = 2 * (mostAnswerBytes / 65_536);
let proxy: ResourceProxy;
let client: ProxyClient;
let count = pieces;
let stream = new FakeStream('edge');
const sent: string[] = [];
const warnings: object[] = [];

const bodies = new Bodies();
const exchange = new AgentRequests((_agent, event) => {
  setImmediate(() => reply(event));
  return true;
});

function reply({ eventId: uuid }: WireEvent): void {
  const head = { uuid, status: 200, contentType: 'application/json', streamed: true, impersonated: true };
  exchange.answered(
    'edge',
    messageEvent(targets.resource, eventTypes.response, head, { source: '' }, { eventId: uuid }),
  );
  stream = new FakeStream('edge');
  const { message } = stream.servedBy((opened) => bodies.serve(opened));
  let left = count;
  const go = () => {
    if (stream.ended) {
      return;
    }
    if (!stream.isPaused && left-- > 0) {
      message(LogStreamData.fromPartial({ requestUuid: uuid, data: Buffer.alloc(65_536, 'x') }));
    }
    if (left > 0) {
      setImmediate(go);
    } else {
      message(LogStreamData.fromPartial({ requestUuid: uuid, eof: true }));
    }
  };
  setTimeout(go, 20);
}

beforeAll(async () => {
  const served = await serveProxy({
    exchange,
    bodies,
    send: (_agent, event) => sent.push(event.type) > 0,
    isConnected: () => true,
    connected: () => Promise.resolve(),
    logger: { warn: (fields: object) => void warnings.push(fields), debug: () => undefined } as never,
  });
  ({ proxy } = served);
  client = new ProxyClient(proxy.port, served.authority, served.client);
});
afterAll(() => proxy?.close());

const as = { headers: { 'Impersonate-User': 'system:serviceaccount:shop:deployer' } };
const pods = '/api/v1/namespaces/shop/pods';

test.each([
  ['an object', `${pods}/web`],
  ['a watch of an object, which there is not', `${pods}/web?watch=1`],
  ['a list', pods],
  ['a list that is no watch', `${pods}?watch=0`],
])('%s that is larger than the limit is broken off, and logged', async (_, path) => {
  sent.length = 0;
  warnings.length = 0;
  count = pieces;
  await expect(client.send('GET', path)).rejects.toThrow(/aborted|hang up/);
  expect(stream.ended, 'the agent is told').toBe(true);
  expect(sent).toHaveLength(1);
  expect(warnings).toMatchObject([{ agent: 'edge', path: path.split('?')[0], limit: mostAnswerBytes }]);
});

test.each([
  ['a watch', `${pods}?watch=T`, {}],
  ['a log', `${pods}/web/log?follow=1`, as],
])('%s has no limit', async (_, path, options) => {
  count = pieces;
  const { text } = await client.send('GET', path, options);
  expect(text.length).toBeGreaterThan(mostAnswerBytes);
});

test('an answer of the limit is whole', async () => {
  count = mostAnswerBytes / 65_536;
  expect((await client.send('GET', `${pods}/web`)).text.length).toBe(mostAnswerBytes);
});
