import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect, type TLSSocket } from 'node:tls';
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { until } from '../../../lib/base/testing.ts';
import { channelMessage } from '../../../lib/live/index.ts';
import {
  eventTypes,
  LogStreamData,
  messageEvent,
  TerminalStreamData,
  targets,
  type WireEvent,
} from '../../../lib/wire/index.ts';
import { createPeerIdentity } from '../../peers/peer-identity.ts';
import { type FakeAgentEnd, FakeLiveStream, FakeStream } from '../testing/fake-stream.ts';
import { type Callers, HeldAgents, makeCallers, type PlayedReplica, playReplica } from '../testing/replicas.ts';

// Callers reach the replica `near`; the agent `edge` is held by `far`.

let callers: Callers;
let held: HeldAgents;
let near: PlayedReplica;
let far: PlayedReplica;
const clean: (() => unknown)[] = [];

beforeAll(async () => {
  callers = await makeCallers();
});
beforeEach(async () => {
  held = new HeldAgents();
  [near, far] = await Promise.all([playReplica(held, 'near', callers), playReplica(held, 'far', callers)]);
  clean.push(
    () => near.stop(),
    () => far.stop(),
  );
  await settle(far);
});
afterEach(async () => {
  for (const step of clean.splice(0).reverse()) {
    await step();
  }
});

/** The agent is at this replica from now on. */
async function settle(replica: PlayedReplica): Promise<void> {
  for (const other of [near, far]) {
    if (other.connected.delete('edge')) {
      other.live.disconnected('edge');
    }
  }
  replica.connected.add('edge');
  held.hold('edge', replica.identity);
  replica.live.connected('edge');
}

interface Ask {
  readonly method?: string;
  readonly path: string;
  readonly body?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  readonly at?: PlayedReplica;
}

function open({ method = 'GET', path, body, headers = {}, at = near }: Ask) {
  const { authority, client } = callers;
  const sent = httpsRequest({
    host: '127.0.0.1',
    port: at.proxy.port,
    method,
    path,
    headers,
    ca: authority.certificate,
    cert: client.certificate,
    key: client.key,
    agent: false,
  });
  clean.push(() => sent.destroy());
  sent.on('error', () => undefined);
  sent.end(body);
  return sent;
}

async function ask(options: Ask) {
  const [response] = (await once(open(options), 'response')) as [IncomingMessage];
  return { status: response.statusCode, text: await textOf(response), headers: response.headers };
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const part of response) {
    text += part;
  }
  return text;
}

const payloadOf = (event: WireEvent) => JSON.parse(Buffer.from(event.data).toString()) as Record<string, unknown>;

function answer(at: PlayedReplica, event: WireEvent, payload: object) {
  const uuid = event.eventId;
  const made = messageEvent(
    targets.resource,
    eventTypes.response,
    { uuid, status: 200, contentType: 'application/json', ...payload },
    { source: '' },
    { eventId: uuid },
  );
  return at.live.answered('edge', made);
}

test('a request reaches the agent at another replica, with its body, headers and user', async () => {
  const asked: Record<string, unknown>[] = [];
  far.onEvent = (_agent, event) => {
    asked.push(payloadOf(event));
    answer(far, event, { status: 201, resource: '{"kind":"ConfigMap"}', impersonated: true });
  };
  const body = JSON.stringify({ data: { large: 'x'.repeat(1_000_000) } });
  const got = await ask({
    method: 'POST',
    path: '/api/v1/namespaces/shop/configmaps?dryRun=All&x=%2F',
    body,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      'impersonate-user': 'system:serviceaccount:shop:web',
      // Names of the link's own headers mean nothing here.
      'argocd-agent-name': 'other',
      'transfer-encoding': 'chunked',
    },
  });
  expect([got.status, got.text, got.headers['content-type']]).toEqual([
    201,
    '{"kind":"ConfigMap"}',
    'application/json',
  ]);
  expect(asked).toMatchObject([
    {
      query: 'dryRun=All&x=%2F',
      headers: { accept: 'application/json', 'content-type': 'application/json' },
      impersonated: { method: 'POST', user: 'system:serviceaccount:shop:web' },
      body: Buffer.from(body).toString('base64'),
    },
  ]);
  expect(near.failures).toEqual([]);
});

test('refusals are those of one replica, and are counted where the caller is', async () => {
  far.onEvent = (_agent, event) => answer(far, event, { status: 404, resource: '{"kind":"Status","code":404}' });
  expect(await ask({ path: '/api/v1/namespaces/shop/pods/x' })).toMatchObject({ status: 404 });
  expect(near.failures).toEqual(['agent_error']);
  expect(await ask({ path: '/nowhere' })).toMatchObject({ status: 404 });
  const tooLarge = Buffer.alloc(5 * 1024 * 1024);
  const put = { method: 'PUT', path: '/api/v1/namespaces/shop/configmaps/x', body: tooLarge };
  expect(await ask(put)).toMatchObject({ status: 413, text: expect.stringContaining('larger than') });
  far.connected.delete('edge');
  expect(await ask({ path: '/api' })).toMatchObject({ status: 502, text: 'agent edge is not connected' });
  expect([...near.failures, ...far.failures]).toEqual(['agent_error', 'agent_disconnected']);
});

test('a watch passes each event at once, ends with its client, and breaks off with its agent', async () => {
  const watch = { path: '/api/v1/namespaces/shop/pods?watch=true' };
  let asked: WireEvent | undefined;
  let stream = new FakeStream('edge');
  let handlers: FakeAgentEnd<LogStreamData> | undefined;
  far.onEvent = (_agent, event) => {
    asked = event;
    stream = new FakeStream('edge');
    handlers = stream.servedBy(far.live.streams.logs);
    answer(far, event, { resource: '', streamed: true });
  };
  const say = (text: string) =>
    handlers?.message(LogStreamData.fromPartial({ requestUuid: asked?.eventId ?? '', data: Buffer.from(text) }));
  const first = open(watch);
  const [response] = (await once(first, 'response')) as [IncomingMessage];
  let seen = '';
  response.on('data', (part) => {
    seen += part;
  });
  say('one\n');
  await until(() => seen === 'one\n');
  say('two\n');
  await until(() => seen === 'one\ntwo\n');
  // The client leaves: the agent's stream is cancelled.
  first.destroy();
  await until(() => stream.code === 1);

  const [second] = (await once(open(watch), 'response')) as [IncomingMessage];
  const broken = once(second, 'error');
  second.resume();
  say('three\n');
  handlers?.closed();
  expect(String((await broken)[0])).toContain('aborted');
});

test('a slow reader makes the agent wait: what is in flight is bounded', async () => {
  let stream = new FakeStream('edge');
  let handlers: FakeAgentEnd<LogStreamData> | undefined;
  let uuid = '';
  far.onEvent = (_agent, event) => {
    uuid = event.eventId;
    stream = new FakeStream('edge');
    handlers = stream.servedBy(far.live.streams.logs);
    answer(far, event, { resource: '', streamed: true });
  };
  const [response] = (await once(open({ path: '/api/v1/pods' }), 'response')) as [IncomingMessage];
  response.pause();
  const piece = Buffer.alloc(64 * 1024, 'x');
  let sent = 0;
  // The buffers of three sockets, and what Node keeps beside them.
  const most = 64 * 1024 * 1024;
  await until(() => {
    for (; !stream.isPaused && sent <= most; sent += piece.length) {
      handlers?.message(LogStreamData.fromPartial({ requestUuid: uuid, data: piece }));
    }
    return stream.isPaused && sent > 1024 * 1024;
  });
  expect(sent).toBeLessThan(most);
  let received = 0;
  response.on('data', (part: Buffer) => {
    received += part.length;
  });
  response.resume();
  await until(() => received === sent && !stream.isPaused);
});

test('a terminal is joined with the agent at another replica', async () => {
  let uuid = '';
  let agent = new FakeLiveStream<TerminalStreamData>('edge');
  let handlers: FakeAgentEnd<TerminalStreamData> | undefined;
  far.onEvent = (_agent, event) => {
    uuid = String(payloadOf(event).uuid);
    agent = new FakeLiveStream<TerminalStreamData>('edge');
    handlers = agent.servedBy(far.live.streams.terminal);
    handlers.message(TerminalStreamData.fromPartial({ requestUuid: uuid }));
  };
  const { authority, client } = callers;
  const viewer = new WebSocket(
    `wss://127.0.0.1:${near.proxy.port}/api/v1/namespaces/shop/pods/web/exec?command=sh&stdin=true&stdout=true`,
    ['v5.channel.k8s.io'],
    { ca: authority.certificate, cert: client.certificate, key: client.key },
  );
  clean.push(() => viewer.terminate());
  const shown: string[] = [];
  let closed: number | undefined;
  viewer.on('message', (message: Buffer) => shown.push(`${message[0]}${message.subarray(1)}`));
  viewer.on('close', (code) => {
    closed = code;
  });
  await once(viewer, 'open');
  expect(viewer.protocol).toBe('v5.channel.k8s.io');
  viewer.send(channelMessage(0, 'echo hello\n'));
  await until(() => agent.sent.map(({ data }) => String(data)).join('') === 'echo hello\n');
  handlers?.message(
    TerminalStreamData.fromPartial({ requestUuid: uuid, data: Buffer.from('hello'), streamType: 'stdout' }),
  );
  await until(() => shown.includes('1hello'));
  expect([near.live.terminals.get('edge'), far.live.terminals.get('edge')]).toEqual([undefined, 1]);
  handlers?.message(TerminalStreamData.fromPartial({ requestUuid: uuid, eof: true }));
  await until(() => closed === 1000);
  expect(shown.at(-1)).toContain('"Success"');

  // One that the replica of the agent refuses.
  far.connected.delete('edge');
  const refused = await ask({
    path: '/api/v1/namespaces/shop/pods/web/exec?command=sh',
    headers: {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'sec-websocket-version': '13',
    },
  });
  expect(refused).toMatchObject({ status: 502, text: expect.stringContaining('agent edge is not connected') });
});

test('streams that the agent opens at a replica that does not hold it reach the holder', async () => {
  let uuid = '';
  // The agent opens its stream at `near`.
  const stream = new FakeStream('edge');
  let handlers: FakeAgentEnd<LogStreamData> | undefined;
  far.onEvent = (_agent, event) => {
    uuid = event.eventId;
    handlers = stream.servedBy(near.live.streams.logs);
    handlers.message(LogStreamData.fromPartial({ requestUuid: uuid, data: Buffer.from('{"kind":') }));
    answer(far, event, { resource: '', streamed: true });
  };
  const [response] = (await once(open({ path: '/api/v1/pods', at: far }), 'response')) as [IncomingMessage];
  const text = textOf(response);
  await until(() => !stream.isPaused);
  handlers?.message(LogStreamData.fromPartial({ requestUuid: uuid, data: Buffer.from('"PodList"}') }));
  handlers?.message(LogStreamData.fromPartial({ requestUuid: uuid, eof: true }));
  expect(await text).toBe('{"kind":"PodList"}');
  await until(() => stream.code === 0);
  expect(stream.answers).toEqual([200]);

  const unknown = new FakeStream('edge');
  unknown
    .servedBy(near.live.streams.logs)
    .message(LogStreamData.fromPartial({ requestUuid: 'nobody', data: Buffer.from('text') }));
  await until(() => unknown.code === 5);
});

test('a log goes on at the next holder, without a line twice or lost', async () => {
  const at = (second: number) => `2026-11-21T10:00:0${second}Z line ${second}\n`;
  const asked: [string, Record<string, unknown>][] = [];
  const streams = new Map<string, { say(text: string, rest?: Partial<LogStreamData>): void; lose(): void }>();
  for (const replica of [near, far]) {
    replica.onEvent = (_agent, event) => {
      const { uuid, ...rest } = payloadOf(event);
      asked.push([replica.identity, rest]);
      const handlers = new FakeStream('edge').servedBy(replica.live.streams.logs);
      streams.set(replica.identity, {
        say: (text, more = {}) =>
          handlers.message(LogStreamData.fromPartial({ requestUuid: String(uuid), data: Buffer.from(text), ...more })),
        lose: () => handlers.closed(),
      });
    };
  }
  const [response] = await (async () => {
    const sent = open({ path: '/api/v1/namespaces/shop/pods/web/log?follow=true&container=main' });
    await until(() => streams.has('far'));
    streams.get('far')?.say(at(1));
    return (await once(sent, 'response')) as [IncomingMessage];
  })();
  let seen = '';
  response.on('data', (part) => {
    seen += part;
  });
  await until(() => seen === 'line 1\n');
  streams.get('far')?.say(at(2));
  await until(() => seen === 'line 1\nline 2\n');
  await settle(near);
  streams.get('far')?.lose();
  await until(() => streams.has('near'));
  streams.get('near')?.say(`${at(2)}${at(3)}`);
  streams.get('near')?.say('', { eof: true });
  await until(() => response.complete);
  expect(seen).toBe('line 1\nline 2\nline 3\n');
  expect(asked).toMatchObject([
    ['far', { container: 'main', follow: true, timestamps: true }],
    ['near', { container: 'main', follow: true, sinceTime: '2026-11-21T10:00:02Z' }],
  ]);
});

test('a request whose agent has just moved goes to the new holder, once', async () => {
  const third = await playReplica(held, 'third', callers);
  clean.push(() => third.stop());
  far.onEvent = () => expect.unreachable();
  third.onEvent = (_agent, event) => answer(third, event, { resource: '"third"' });
  // `near` hears of the move only after `far` has refused the request.
  third.connected.add('edge');
  held.delay('near');
  held.hold('edge', 'third');
  const answered = ask({ method: 'POST', path: '/api/v1/namespaces/shop/configmaps', body: '{}' });
  await until(async () => (await far.refusals()) === 1);
  held.delay(undefined);
  expect(await answered).toMatchObject({ status: 200, text: '"third"' });
});

test('when the replica of the agent dies, its requests end at once', async () => {
  const asked: WireEvent[] = [];
  far.onEvent = (_agent, event) => asked.push(event);
  const answered = ask({ path: '/api' });
  await until(() => asked.length === 1);
  await far.port.close();
  expect(await answered).toMatchObject({ status: 502, text: expect.stringContaining('ended before the answer') });
  // Its Lease stands for a while: nobody answers there.
  expect(await ask({ path: '/api' })).toMatchObject({ status: 502 });
  held.remove('far');
  expect(await ask({ path: '/api' })).toMatchObject({ status: 502, text: 'agent edge is not connected' });
});

test('a replica that has lost its Lease loses its connections', async () => {
  let seen = '';
  far.onEvent = (_agent, event) => {
    const handlers = new FakeStream('edge').servedBy(far.live.streams.logs);
    answer(far, event, { resource: '', streamed: true });
    handlers.message(LogStreamData.fromPartial({ requestUuid: event.eventId, data: Buffer.from('begun') }));
  };
  const [response] = (await once(open({ path: '/api/v1/pods?watch=1' }), 'response')) as [IncomingMessage];
  const broken = once(response, 'error');
  response.on('data', (part) => {
    seen += part;
  });
  await until(() => seen === 'begun');
  held.remove('far');
  await broken;
});

test('a replica is told that it was deposed by one that counts it no more', async () => {
  const [peer] = held.directoryOf('near').peers();
  if (peer === undefined) {
    expect.unreachable();
  }
  held.remove('far');
  await near.link.tellDeposed(peer, AbortSignal.timeout(10_000));
  expect([near.deposed, far.deposed]).toEqual([[], ['far']]);
});

test('nobody but a live replica gets a byte in or out', async () => {
  const [host = '', port = ''] = far.port.address.split(':');
  const stranger = await createPeerIdentity();
  const attempt = async (pair?: { certificate: string; key: string }) => {
    const socket: TLSSocket = connect({
      host,
      port: Number(port),
      rejectUnauthorized: false,
      ...(pair === undefined ? {} : { cert: pair.certificate, key: pair.key }),
    });
    let got = '';
    socket.on('data', (part) => {
      got += part;
    });
    socket.on('error', () => undefined);
    socket.write(`GET /news HTTP/1.1\r\nhost: x\r\n\r\n`);
    await once(socket, 'close');
    return got;
  };
  expect(await attempt()).toBe('');
  expect(await attempt(stranger)).toBe('');
  // One whose certificate the callers' authority has signed, too.
  expect(await attempt(callers.client)).toBe('');
});

test('a request is not sent to somebody who has taken the address of a replica', async () => {
  const impostor = await createPeerIdentity();
  held.hold('edge', undefined);
  held.add({ identity: 'far', address: far.port.address, fingerprint: impostor.fingerprint });
  held.hold('edge', 'far');
  far.onEvent = () => expect.unreachable();
  expect(await ask({ path: '/api' })).toMatchObject({ status: 502 });
});
