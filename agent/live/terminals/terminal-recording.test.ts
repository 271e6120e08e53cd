import { expect, test } from 'vitest';
import type { WebSocket } from 'ws';
import { messageBytes, recordedLines } from '../../../e2e/recordings/index.ts';
import { readInput } from '../../../lib/live/index.ts';
import { type ClientLiveStream, type LiveStreamHandlers, TerminalStreamData } from '../../../lib/wire/index.ts';
import { TerminalSession } from './terminal-session.ts';

test('recorded input of an original principal reaches the container', async () => {
  const messages = recordedLines('terminal')
    .filter(
      ({ rpc, dir, bytes }) => rpc.endsWith('/StreamTerminal') && dir === 'principal->agent' && bytes !== undefined,
    )
    .map((line) => TerminalStreamData.decode(messageBytes(line)));
  expect(messages.length).toBeGreaterThan(4);
  const [{ requestUuid: uuid = '' } = {}] = messages;
  let principal: LiveStreamHandlers<TerminalStreamData> | undefined;
  const stream: ClientLiveStream<TerminalStreamData> = {
    send: () => true,
    onDrain: () => undefined,
    pause: () => undefined,
    resume: () => undefined,
    ended: false,
    halfClose: () => undefined,
    cancel: () => undefined,
  };
  const live = {
    logs: () => Promise.reject(new Error('not asked for')),
    terminal: async (handlers: LiveStreamHandlers<TerminalStreamData>) => {
      principal = handlers;
      return stream;
    },
  };
  const { signal } = new AbortController();
  const session = await TerminalSession.open(live, { uuid, isTty: true, idleMs: 0, signal });
  const heard: Buffer[] = [];
  const exec = {
    on: () => undefined,
    send: (message: Buffer) => heard.push(message),
    resume: () => undefined,
    close: () => undefined,
    bufferedAmount: 0,
    protocol: 'v5.channel.k8s.io',
  } as unknown as WebSocket;
  const running = session.run(exec);
  for (const message of messages) {
    principal?.message(message);
  }
  principal?.closed();
  await running;
  expect(heard.map(readInput)).toEqual([
    // The size that terminals begin with, and the one that the viewer has.
    { kind: 'resize', size: { rows: 24, cols: 80 } },
    { kind: 'resize', size: { rows: 24, cols: 80 } },
    ...['pwd\n', 'whoami\n', 'ls\n', '\x04'].map((text) => ({ kind: 'stdin', data: Buffer.from(text) })),
    // A viewer that closes its input, which that principal takes for input.
    { kind: 'stdin', data: Buffer.from([255, 0]) },
  ]);
});
