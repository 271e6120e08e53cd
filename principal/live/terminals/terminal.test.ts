import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { until } from '../../../lib/base/testing.ts';
import { channelMessage, exitStatus, parseResourcePath, resizeMessage, stdinClosed } from '../../../lib/live/index.ts';
import { createLogger } from '../../../lib/ops/index.ts';
import { grpcStatus, TerminalStreamData, type WireEvent } from '../../../lib/wire/index.ts';
import { FakeLiveStream } from '../testing/fake-stream.ts';
import { runTerminal } from './terminal.ts';
import { TerminalSessions } from './terminal-sessions.ts';
import { upgrade } from './upgrade.ts';

const clean: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of clean.splice(0).reverse()) {
    await step();
  }
});

/** A viewer over a real WebSocket, and an agent that the test plays. */
async function start(options: { idleMs?: number; query?: string; protocols?: string[]; isAway?: boolean } = {}) {
  const terminals = new TerminalSessions();
  const asked: Record<string, unknown>[] = [];
  const lines: string[] = [];
  const context = {
    terminals,
    send: (_agent: string, event: WireEvent) => {
      asked.push(JSON.parse(Buffer.from(event.data).toString()));
      return options.isAway !== true;
    },
    terminalIdleMs: options.idleMs ?? 0,
    logger: createLogger({ destination: { write: (line) => void lines.push(line) } }),
  };
  const path = parseResourcePath('/api/v1/namespaces/shop/pods/web/exec');
  if (path === undefined) {
    throw new Error('the path is none');
  }
  const server = createServer().listen(0, '127.0.0.1');
  server.on('upgrade', (request, socket, head) =>
    upgrade(request, socket, head, (webSocket) =>
      runTerminal(context, 'a', path, new URLSearchParams(options.query ?? ''), webSocket),
    ),
  );
  await once(server, 'listening');
  clean.push(() => server.close());
  const { port } = server.address() as AddressInfo;
  const viewer = new WebSocket(`ws://127.0.0.1:${port}`, options.protocols ?? ['v5.channel.k8s.io']);
  clean.push(() => viewer.terminate());
  const shown: string[] = [];
  let closeCode: number | undefined;
  viewer.on('message', (message: Buffer) => shown.push(`${message[0]}${message.subarray(1)}`));
  viewer.on('close', (code) => {
    closeCode = code;
  });
  await once(viewer, 'open');
  const uuid = () => String(asked[0]?.uuid);
  /** The agent opens a stream, by default the expected one. */
  const open = async (from = 'a', id?: string) => {
    await until(() => asked.length > 0);
    const requestUuid = id ?? uuid();
    const stream = new FakeLiveStream<TerminalStreamData>(from);
    const handlers = stream.servedBy((opened) => terminals.serve(opened));
    const say = (fields: Partial<TerminalStreamData>) =>
      handlers.message(TerminalStreamData.fromPartial({ requestUuid, ...fields }));
    say({});
    return { stream, handlers, say, print: (text: string) => say({ data: Buffer.from(text), streamType: 'stdout' }) };
  };
  return {
    terminals,
    asked,
    lines,
    viewer,
    shown,
    open,
    sees: (...expected: unknown[]) => until(() => expect(shown).toEqual(expected)),
    closes: () => until(() => expect(closeCode).toBe(1000)),
  };
}

const failure = (code: number) => expect.stringMatching(new RegExp(`^3.*"status":"Failure".*"code":${code}`));

test('input reaches the agent, output the viewer, and the exit code is reported', async () => {
  const { asked, open, viewer, sees, closes, terminals, lines } = await start({
    query: 'container=main&command=sh&command=-l&stdin=true&stdout=true&stderr=1&tty=false',
  });
  const { stream, print, say } = await open();
  expect(asked).toEqual([
    {
      uuid: expect.any(String),
      namespace: 'shop',
      podName: 'web',
      containerName: 'main',
      command: ['sh', '-l'],
      stdin: true,
      stdout: true,
      stderr: true,
      tty: false,
    },
  ]);
  viewer.send(resizeMessage({ rows: 40, cols: 120 }));
  viewer.send(channelMessage(0, 'x'.repeat(20_000)));
  viewer.send(stdinClosed);
  viewer.send(channelMessage(0, 'too late'));
  await until(() => stream.sent.length === 4);
  expect(stream.sent.map(({ data, ...rest }) => [data.length, rest])).toMatchObject([
    [0, { resize: true, rows: 40, cols: 120 }],
    [16_384, { streamType: 'stdin' }],
    [3_616, { streamType: 'stdin' }],
    [0, { eof: true }],
  ]);
  print('one');
  say({ data: Buffer.from('two'), streamType: 'stderr' });
  say({ data: Buffer.from(exitStatus(3)), streamType: 'error' });
  say({ eof: true });
  await sees('1one', '2two', `3${exitStatus(3)}`);
  await closes();
  expect([stream.code, stream.sent.length, terminals.counts.size]).toEqual([grpcStatus.ok, 4, 0]);
  expect(lines.join('')).not.toContain('one');
});

test('a request that names no stream gets all of them, as in the original', async () => {
  const { asked } = await start();
  await until(() => asked.length > 0);
  expect(asked[0]).toMatchObject({
    stdin: true,
    stdout: true,
    stderr: true,
    tty: true,
    command: [],
    containerName: '',
  });
});

test.each([
  ['no such shell', failure(500)],
  ['command terminated with exit code 7', `3${exitStatus(7)}`],
])('agents of the original report the end as plain text: %s', async (error, expected) => {
  const { open, sees, closes } = await start();
  const { say } = await open();
  say({ error });
  await sees(expected);
  await closes();
});

test('an end without an outcome is a success', async () => {
  const { open, sees, closes } = await start();
  const { say } = await open();
  say({ eof: true });
  await sees(expect.stringMatching(/^3.*Success/));
  await closes();
});

test('old viewers get plain text', async () => {
  const { open, sees, closes } = await start({ protocols: ['channel.k8s.io'] });
  const { say } = await open();
  say({ data: Buffer.from(exitStatus(3)), streamType: 'error' });
  say({ eof: true });
  await sees('3command terminated with non-zero exit code: 3');
  await closes();
});

test('no other agent finds the session, and no agent twice', async () => {
  const { open, sees } = await start();
  const [stranger, wrong] = [await open('b'), await open('a', 'another')];
  stranger.print('forged');
  wrong.print('forged');
  const right = await open();
  const again = await open();
  again.print('forged');
  right.print('true');
  right.handlers.message(TerminalStreamData.fromPartial({ requestUuid: 'another', data: Buffer.from('forged') }));
  expect([stranger, wrong, again, right].map(({ stream }) => stream.code)).toEqual(
    Array.from({ length: 4 }, () => grpcStatus.notFound),
  );
  // Its own stream was ended with the last one.
  await sees('1true', expect.stringContaining('the connection to agent a ended'));
});

test('a viewer that leaves ends it at the agent', async () => {
  const { open, viewer, terminals } = await start();
  const { stream } = await open();
  viewer.close();
  await until(() => stream.ended);
  expect(stream.sent.map(({ error }) => error)).toEqual(['the viewer has left']);
  expect(terminals.counts.size).toBe(0);
});

test('a viewer that breaks off ends it at the agent', async () => {
  const { open, viewer } = await start();
  const { stream } = await open();
  viewer.terminate();
  await until(() => stream.ended);
});

test('a viewer with another protocol is refused with the reason', async () => {
  const { open, viewer, sees, closes } = await start();
  const { stream } = await open();
  viewer.send(channelMessage(1, 'not mine to write'));
  await sees(failure(400));
  await closes();
  expect(stream.ended).toBe(true);
});

test.each([
  ['whose stream ends', (handlers: { closed(): void }) => handlers.closed()],
  ['that is not connected any more', (_: unknown, terminals: TerminalSessions) => terminals.disconnected('a')],
])('an agent %s ends it for the viewer', async (_what, leave) => {
  const { open, sees, closes, terminals } = await start();
  const { handlers } = await open();
  terminals.disconnected('b');
  leave(handlers, terminals);
  await sees(failure(502));
  await closes();
});

test('a terminal of an agent that is not connected is refused', async () => {
  const { sees, closes } = await start({ isAway: true });
  await sees(failure(502));
  await closes();
});

test('a principal that stops reports it', async () => {
  const { open, sees, closes, terminals } = await start();
  await open();
  terminals.stop();
  await sees(failure(503));
  await closes();
});

test('a terminal in which nothing happens is closed', async () => {
  const { open, sees, closes } = await start({ idleMs: 50 });
  const { stream } = await open();
  await sees(failure(504));
  await closes();
  expect(stream.ended).toBe(true);
});

test('a viewer that reads slowly makes the agent wait', async () => {
  const { open, viewer } = await start();
  const { stream, print } = await open();
  viewer.pause();
  while (!stream.isPaused) {
    print('x'.repeat(64 * 1024));
    await new Promise((resolve) => setImmediate(resolve));
  }
  viewer.resume();
  await until(() => !stream.isPaused);
});

test('an agent that reads slowly makes the viewer wait', async () => {
  const { open, viewer } = await start();
  const { stream } = await open();
  stream.hasRoom = false;
  const sent = 400;
  const message = channelMessage(0, 'x'.repeat(16 * 1024));
  for (let index = 0; index < sent; index++) {
    viewer.send(message);
  }
  await until(() => stream.sent.length > 0);
  // Output that was read before the agent's end still arrives, and then nothing.
  let before = -1;
  while (before !== stream.sent.length) {
    before = stream.sent.length;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(before).toBeLessThan(sent / 4);
  stream.hasRoom = true;
  stream.drained();
  await until(() => stream.sent.length === sent);
});

test('too many terminals of one agent are refused', async () => {
  const { terminals } = await start();
  const user = { opened: () => undefined, message: () => undefined, lost: () => undefined, stopped: () => undefined };
  await until(() => terminals.counts.get('a') === 1);
  const ends = Array.from({ length: 99 }, (_, index) => terminals.open('a', `${index}`, user));
  expect(() => terminals.open('a', 'one more', user)).toThrow('too many');
  terminals.open('b', 'elsewhere', user);
  ends[0]?.();
  ends[0]?.();
  terminals.open('a', 'one more', user);
  expect([...terminals.counts]).toEqual([
    ['a', 100],
    ['b', 1],
  ]);
});
