import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { until } from '../../../lib/base/testing.ts';
import { ApiError, type KubeClient } from '../../../lib/kube/index.ts';
import { channelMessage, exitStatus, readInput } from '../../../lib/live/index.ts';
import { createLogger } from '../../../lib/ops/index.ts';
import {
  type ClientLiveStream,
  eventTypes,
  type GrpcError,
  type LiveStreamHandlers,
  messageEvent,
  TerminalStreamData,
  targets,
} from '../../../lib/wire/index.ts';
import { Terminals } from './terminals.ts';

const clean: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of clean.splice(0).reverse()) {
    await step();
  }
});

/** The stream to the principal, which the test plays. */
class Principal implements ClientLiveStream<TerminalStreamData> {
  readonly sent: TerminalStreamData[] = [];
  handlers: LiveStreamHandlers<TerminalStreamData> | undefined;
  ended = false;
  isPaused = false;
  hasRoom = true;
  drained: () => void = () => undefined;

  send(message: TerminalStreamData) {
    if (!this.ended) {
      this.sent.push(message);
    }
    return this.hasRoom && !this.ended;
  }
  onDrain(listener: () => void) {
    this.drained = listener;
  }
  pause() {
    this.isPaused = true;
  }
  resume() {
    this.isPaused = false;
  }
  halfClose() {
    this.close();
  }
  cancel() {
    this.close();
  }
  close(error?: GrpcError) {
    if (this.ended) {
      return;
    }
    this.ended = true;
    this.handlers?.closed(error);
  }
  say(fields: Partial<TerminalStreamData>) {
    this.handlers?.message(TerminalStreamData.fromPartial({ requestUuid: 'u', ...fields }));
  }
  type(text: string) {
    this.say({ data: Buffer.from(text), streamType: 'stdin' });
  }
  /** The viewer's output and the end of the terminal. */
  get shown() {
    const texts = this.sent
      .filter(({ data }) => data.length > 0)
      .map(({ streamType, data }) => `${streamType} ${data}`);
    return [...texts, ...(this.sent.at(-1)?.eof ? ['eof'] : [])];
  }
}

interface Options {
  idleMs?: number;
  request?: object;
  protocol?: string;
  isManaged?: boolean;
  isEnabled?: boolean;
  refuse?: Error;
  /** The API server does not agree before this. */
  held?: Promise<void>;
}

/** An agent between a principal and an API server that the test plays. */
async function start(options: Options = {}) {
  const { protocol = 'v5.channel.k8s.io' } = options;
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: () => protocol });
  await once(server, 'listening');
  clean.push(() => server.close());
  const heard: unknown[] = [];
  let kubelet: WebSocket | undefined;
  let isOver = false;
  server.on('connection', (webSocket) => {
    kubelet = webSocket;
    webSocket.on('message', (message: Buffer) => heard.push(readInput(message)));
    webSocket.on('error', () => undefined);
    webSocket.on('close', () => {
      isOver = true;
    });
  });
  const paths: string[] = [];
  const client = {
    request: async (path: string) => {
      paths.push(path);
      return {
        body: { text: async () => JSON.stringify({ kind: 'Pod', metadata: { name: 'web', namespace: 'shop' } }) },
      };
    },
    webSocket: async (path: string, { protocols, signal }: { protocols: string[]; signal: AbortSignal }) => {
      paths.push(path);
      await options.held;
      signal.throwIfAborted();
      if (options.refuse !== undefined) {
        throw options.refuse;
      }
      const webSocket = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, protocols);
      webSocket.on('error', () => undefined);
      clean.push(() => webSocket.terminate());
      await once(webSocket, 'open');
      webSocket.pause();
      return webSocket;
    },
  } as unknown as KubeClient;
  const lines: string[] = [];
  const counts = { open: 0 };
  const terminals = new Terminals({
    client,
    managed: { verdictOn: async () => ({ isManaged: options.isManaged ?? true }) },
    access: 'managed',
    isEnabled: options.isEnabled ?? true,
    idleMs: options.idleMs ?? 0,
    metrics: { opened: () => counts.open++, closed: () => counts.open-- },
    logger: createLogger({ destination: { write: (line) => void lines.push(line) } }),
  });
  const principal = new Principal();
  const aborted = new AbortController();
  const payload = { uuid: 'u', namespace: 'shop', podName: 'web', containerName: 'main', command: ['sh'] };
  const all = { tty: true, stdin: true, stdout: true, stderr: true };
  const event = messageEvent(
    targets.terminal,
    eventTypes.terminalRequest,
    { ...payload, ...all, ...options.request },
    { source: '' },
  );
  const handled = terminals.handle(event, {
    live: {
      logs: () => Promise.reject(new Error('not asked for')),
      terminal: async (handlers) => {
        principal.handlers = handlers;
        return principal;
      },
    },
    signal: aborted.signal,
    abandon: () => undefined,
    answer: () => undefined,
  });
  return {
    principal,
    paths,
    heard,
    lines,
    counts,
    handled,
    aborted,
    joined: () => until('the kubelet to be called', () => kubelet),
    print: (to: 1 | 2 | 3, text: string) => kubelet?.send(channelMessage(to, text)),
    hears: (...expected: unknown[]) => until(() => expect(heard).toEqual(expected)),
    over: () => until(() => isOver),
  };
}

const input = (text: string) => ({ kind: 'stdin', data: Buffer.from(text) });
const size = (rows: number, cols: number) => ({ kind: 'resize', size: { rows, cols } });
const failure = (code: number) => expect.stringMatching(new RegExp(`^error .*"status":"Failure".*"code":${code}`));

test('a command is executed, and input before its start is not lost', async () => {
  const held = Promise.withResolvers<void>();
  const { principal, joined, print, paths, handled, hears, heard, counts, lines } = await start({ held: held.promise });
  await until(() => paths.length === 2);
  principal.type('early ');
  principal.say({ resize: true, rows: 30, cols: 90 });
  principal.type('bird');
  held.resolve();
  await joined();
  expect(paths).toEqual([
    '/api/v1/namespaces/shop/pods/web',
    '/api/v1/namespaces/shop/pods/web/exec?container=main&command=sh&stdin=true&stdout=true&tty=true',
  ]);
  await hears(size(30, 90), input('early '), input('bird'));
  heard.length = 0;
  principal.say({ resize: true, rows: 40, cols: 120 });
  principal.type('late');
  principal.say({ data: Buffer.from('no input'), streamType: 'stdout' });
  principal.say({ eof: true });
  principal.type('too late');
  await hears(size(40, 120), input('late'), { kind: 'closed' });
  expect(counts.open).toBe(1);
  print(1, 'shown');
  print(2, 'wrong');
  print(3, exitStatus(3));
  (await joined()).close(1000);
  await handled;
  expect(principal.shown).toEqual(['stdout shown', 'stderr wrong', `error ${exitStatus(3)}`, 'eof']);
  expect(principal.sent[0]).toEqual(TerminalStreamData.fromPartial({ requestUuid: 'u' }));
  expect([counts.open, lines.join('').match(/shown|early|"sh"/)]).toEqual([0, null]);
});

test('kubelets without a message for the end of input do not get one', async () => {
  const { principal, joined, over, heard } = await start({ protocol: 'v4.channel.k8s.io', request: { tty: false } });
  await joined();
  principal.say({ eof: true });
  principal.say({ resize: true, rows: 1, cols: 1 });
  principal.type('x');
  principal.say({ error: 'over' });
  await over();
  expect(heard).toEqual([]);
});

test.each([
  [1000, /^error .*Success/],
  [1011, /^error .*"code":502/],
])('a command without a reported outcome, with the connection closed by %d', async (code, expected) => {
  const { principal, joined, handled } = await start();
  (await joined()).close(code);
  await handled;
  expect(principal.shown).toEqual([expect.stringMatching(expected), 'eof']);
});

test.each([
  ['a pod of no Application', { isManaged: false }, 403],
  ['an agent that serves none', { isEnabled: false }, 501],
  ['a name that leads elsewhere', { request: { podName: '../x' } }, 400],
  ['what the API server refuses', { refuse: new ApiError({ status: 403, message: 'no pods/exec' }) }, 403],
  ['what fails', { refuse: new Error('broken') }, 500],
])('%s gets a refusal', async (_what, options, code) => {
  const { principal, handled } = await start(options);
  await handled;
  expect(principal.shown).toEqual([failure(code), 'eof']);
});

test.each([
  ['whose stream ends', (principal: Principal) => principal.close()],
  ['who leaves', (principal: Principal) => principal.say({ error: 'the viewer has left' })],
  ['who is lost with the connection', (_: unknown, aborted: AbortController) => aborted.abort(new Error('gone'))],
])('a viewer %s ends the command', async (_what, leave) => {
  const { principal, joined, over, handled, aborted, counts } = await start();
  await joined();
  leave(principal, aborted);
  await over();
  await handled;
  expect([principal.ended, counts.open]).toEqual([true, 0]);
});

test('the command is not started for a viewer who has left before', async () => {
  const held = Promise.withResolvers<void>();
  const { principal, paths, handled, lines } = await start({ held: held.promise });
  await until(() => paths.length === 2);
  principal.close();
  held.resolve();
  await handled;
  expect([principal.shown, lines.join('').match(/"level":"(warn|error)"/)]).toEqual([[], null]);
});

test('a terminal in which nothing happens is closed', async () => {
  const { principal, over, handled } = await start({ idleMs: 500 });
  await handled;
  expect(principal.shown).toEqual([failure(504), 'eof']);
  await over();
});

test('a viewer that reads slowly makes the command wait', async () => {
  const { principal, joined } = await start();
  const kubelet = await joined();
  principal.hasRoom = false;
  while (kubelet.bufferedAmount < 4 * 1024 * 1024) {
    kubelet.send(channelMessage(1, 'x'.repeat(256 * 1024)));
    await new Promise((resolve) => setImmediate(resolve));
  }
  const bytes = () => principal.sent.reduce((sum, { data }) => sum + data.length, 0);
  const before = bytes();
  principal.hasRoom = true;
  principal.drained();
  await until(() => bytes() > before + 4 * 1024 * 1024);
  expect(Math.max(...principal.sent.map(({ data }) => data.length))).toBe(64 * 1024);
});

test('a command that reads slowly makes the viewer wait', async () => {
  const { principal, joined } = await start();
  const kubelet = await joined();
  kubelet.pause();
  while (!principal.isPaused) {
    principal.type('x'.repeat(64 * 1024));
    await new Promise((resolve) => setImmediate(resolve));
  }
  kubelet.resume();
  await until(() => !principal.isPaused);
});

test('early input is bounded', async () => {
  const held = Promise.withResolvers<void>();
  const { principal, paths, joined } = await start({ held: held.promise });
  await until(() => paths.length === 2);
  for (let part = 0; part < 5 && !principal.isPaused; part++) {
    principal.type('x'.repeat(64 * 1024));
  }
  expect(principal.isPaused).toBe(true);
  held.resolve();
  await joined();
  await until(() => !principal.isPaused);
});
