import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { until } from '../../../lib/base/testing.ts';
import { LogStreamData, type WireEvent } from '../../../lib/wire/index.ts';
import { Bodies } from '../agent-bodies.ts';
import { FakeStream } from '../testing/fake-stream.ts';
import { type LogRefusal, streamLog } from './logs.ts';

const clean: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of clean.splice(0).reverse()) {
    await step();
  }
});
const pod = { group: '', version: 'v1', namespace: 'shop', resource: 'pods', name: 'web', subresource: 'log' };
const at = (second: string, text: string) => `2026-11-21T10:00:${second}Z ${text}\n`;

/** A client that reads a log over HTTP from an agent that the test plays. */
async function start(query: string, options: { isAway?: boolean } = {}) {
  const bodies = new Bodies();
  const asked: Record<string, unknown>[] = [];
  const arrival = Promise.withResolvers<void>();
  const outcome = Promise.withResolvers<LogRefusal | undefined>();
  outcome.promise.catch(() => undefined);
  const server = createServer((_request, response) => {
    const left = new AbortController();
    response.on('close', () => left.abort(new Error('left')));
    const context = {
      bodies,
      send: (_agent: string, event: WireEvent) => {
        asked.push(JSON.parse(Buffer.from(event.data).toString()));
        return options.isAway !== true;
      },
      connected: () => arrival.promise,
    };
    streamLog(context, 'a', pod, new URLSearchParams(query), response, left.signal).then((refusal) => {
      if (refusal !== undefined) {
        response.writeHead(refusal.status).end(refusal.text);
      }
      outcome.resolve(refusal);
    }, outcome.reject);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  clean.push(
    () => server.close(),
    () => server.closeAllConnections(),
  );
  const sent = httpRequest({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
  sent.on('error', () => undefined);
  const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
  sent.end();
  let text = '';
  let isBroken = false;
  let isOver = false;
  void answered.then(([response]) => {
    response.on('data', (chunk: Buffer) => {
      text += chunk;
    });
    response.on('error', () => {
      isBroken = true;
    });
    response.on('close', () => {
      isOver = true;
    });
  });
  /** The agent takes up the last request that it was sent. */
  const open = async (number: number) => {
    await until(() => asked.length === number);
    const uuid = String(asked[number - 1]?.uuid);
    const stream = new FakeStream('a');
    const handlers = stream.servedBy((opened) => bodies.serve(opened));
    const say = (message: Partial<LogStreamData>) =>
      handlers.message(LogStreamData.fromPartial({ requestUuid: uuid, ...message }));
    say({});
    return { stream, handlers, say, lines: (...lines: string[]) => say({ data: Buffer.from(lines.join('')) }) };
  };
  return {
    asked,
    arrival,
    outcome: outcome.promise,
    open,
    sent,
    answered,
    seen: (wanted: string) => until(() => text === wanted),
    over: () => until(() => isOver),
    isBroken: () => isBroken,
  };
}

test('a log is asked for as the client asks, and ends where it ends', async () => {
  const { asked, open, seen, over, answered } = await start(
    'container=main&follow=TRUE&tailLines=5&sinceSeconds=60&previous=false&limitBytes=x&pretty=true',
  );
  const { lines, say } = await open(1);
  expect(asked[0]).toEqual({
    uuid: expect.any(String),
    namespace: 'shop',
    podName: 'web',
    container: 'main',
    follow: true,
    tailLines: 5,
    sinceSeconds: 60,
    timestamps: true,
  });
  lines(at('01', 'a'));
  expect((await answered)[0].headers['content-type']).toBe('text/plain; charset=utf-8');
  await seen('a\n');
  lines(at('02', 'b'));
  say({ eof: true });
  await over();
  await seen('a\nb\n');
});

test('a log that breaks off is taken up again when the agent is back, without a repetition', async () => {
  const { asked, open, seen, over, arrival, isBroken } = await start(
    'follow=true&timestamps=true&tailLines=5&sinceSeconds=60',
  );
  const first = await open(1);
  first.lines(at('01', 'a'), at('02.25', 'b'), '2026-11-21T10:00:02.5Z bro');
  await seen(at('01', 'a') + at('02.25', 'b'));
  first.handlers.closed();
  arrival.resolve();
  const second = await open(2);
  expect(asked[1]).toEqual({
    uuid: expect.not.stringMatching(String(asked[0]?.uuid)),
    namespace: 'shop',
    podName: 'web',
    follow: true,
    sinceTime: '2026-11-21T10:00:02Z',
    timestamps: true,
  });
  second.lines(at('02.25', 'b'), at('02.5', 'broken'));
  second.say({ eof: true });
  await over();
  await seen(at('01', 'a') + at('02.25', 'b') + at('02.5', 'broken'));
  expect(isBroken()).toBe(false);
});

test.each([
  ['pods "web" not found', 404],
  ['pods "web" is forbidden: no', 403],
  ['boom', 500],
  [JSON.stringify({ kind: 'Status', code: 400, message: 'a container name must be specified' }), 400],
])('a missing log is explained: %s', async (error, status) => {
  const { open, outcome } = await start('');
  const { say } = await open(1);
  say({ error, eof: true });
  expect(await outcome).toMatchObject({ status, text: expect.stringContaining('Status') });
});

test('a long error of an agent is not parsed, and is shortened', async () => {
  const { open, outcome } = await start('');
  const { say, stream } = await open(1);
  say({ error: JSON.stringify({ kind: 'Status', code: 400, message: 'x'.repeat(100_000) }), eof: true });
  const refusal = await outcome;
  expect(refusal?.status).toBe(500);
  expect(refusal?.text.length).toBeLessThan(2_000);
  expect(stream.message?.length).toBeLessThan(2_000);
});

test('an error amid a log shows as a broken answer', async () => {
  const { open, seen, over, isBroken } = await start('');
  const { lines, say } = await open(1);
  lines(at('01', 'a'));
  await seen('a\n');
  say({ error: 'boom' });
  await over();
  expect(isBroken()).toBe(true);
});

test('a client that leaves ends it at the agent', async () => {
  const { open, seen, sent, outcome } = await start('follow=true');
  const { lines, stream } = await open(1);
  lines(at('01', 'a'));
  await seen('a\n');
  sent.destroy();
  await expect(outcome).rejects.toThrow('left');
  expect(stream.ended).toBe(true);
});

test('a client that reads slowly makes the agent wait', async () => {
  const { open, answered } = await start('follow=true');
  const { lines, stream } = await open(1);
  lines(at('01', 'a'));
  const [response] = await answered;
  response.pause();
  while (!stream.isPaused) {
    lines(at('02', 'x'.repeat(100_000)));
    await new Promise((resolve) => setImmediate(resolve));
  }
  response.resume();
  await until(() => !stream.isPaused);
});

test('an agent that breaks off again and again without a line is left alone', async () => {
  const { outcome, arrival, asked } = await start('', { isAway: true });
  arrival.resolve();
  expect(await outcome).toMatchObject({ status: 504 });
  expect(asked).toHaveLength(5);
});
