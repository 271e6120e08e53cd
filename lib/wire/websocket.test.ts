import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { type PlayedPrincipal, playAgent, playPrincipal } from '../../e2e/peer/index.ts';
import { until } from '../base/testing.ts';
import { agentSource, heartbeatEvent, type LiveStreamService, type WireServerOptions } from './index.ts';

// What a client may do over a WebSocket that is silent, slow or not wanted.

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

async function start(options: Partial<WireServerOptions> = {}): Promise<PlayedPrincipal> {
  const principal = await playPrincipal({ webSocket: true, ...options });
  stops.push(principal.close);
  return principal;
}

/** A WebSocket that its client opened by hand, with what the server has said on it. */
interface RawWebSocket {
  readonly socket: Socket;
  said(): string;
}

async function open(port: number, path: string, authorization = 'nonsense'): Promise<RawWebSocket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  stops.push(() => socket.destroy());
  const lines = [
    `GET ${path} HTTP/1.1`,
    'Host: principal',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
    'Sec-WebSocket-Protocol: grpc-ws',
    `Authorization: ${authorization}`,
  ];
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  await until(() => expect(text).toContain('101 Switching Protocols'));
  return { socket, said: () => text };
}

/** The header of a binary message of so many bytes; its mask changes nothing. */
function headOf(bytes: number): Buffer {
  const head = Buffer.alloc(14);
  head.writeUInt16BE(0x82ff, 0);
  head.writeBigUInt64BE(BigInt(bytes), 2);
  return head;
}

const pong = Buffer.from([0x8a, 0x80, 0, 0, 0, 0]);
const megabyte = 1024 * 1024;
const subscribePath = '/eventstreamapi.EventStream/Subscribe';

test('agents that have nothing to say keep their event streams, logs and terminals', async () => {
  const opened: string[] = [];
  const gone: string[] = [];
  const take = (kind: string) => () => {
    opened.push(kind);
    return { message: () => undefined, closed: () => void gone.push(kind) };
  };
  const live: LiveStreamService = { logs: take('logs'), terminal: take('terminal') };
  const timing = { intervalMs: 20, timeoutMs: 10_000 };
  const principal = await start({ keepalive: timing, timeouts: { messageMs: 100 }, live });
  const agent = playAgent(principal.port, { transport: 'websocket' });
  stops.push(agent.stop);
  const calls = await agent.calls;
  const silent = { message: () => undefined, closed: () => undefined };
  await Promise.all([calls.logs(silent), calls.terminal(silent)]);
  await until(() => expect(opened.sort()).toEqual(['logs', 'terminal']));
  const began = performance.now();
  await until(() => expect(performance.now() - began).toBeGreaterThan(1000));
  expect([agent.failures, principal.closed, gone]).toEqual([[], [], []]);
  agent.streams[0]?.send(heartbeatEvent({ source: agentSource }));
  await until(() => expect(principal.received).toHaveLength(1));
});

test('a message that its client never completes ends the stream, however many pongs come amid it', async () => {
  const principal = await start({ timeouts: { messageMs: 200 } });
  const { accessToken } = await principal.tokens.issue({ agent: 'one', mode: 'managed' });
  const { socket, said } = await open(principal.port, subscribePath, accessToken);
  await until(() => expect(principal.sessions).toHaveLength(1));
  const [beginning, fragment] = [Buffer.from([0x02, 0x81, 0, 0, 0, 0, 1]), Buffer.from([0x00, 0x81, 0, 0, 0, 0, 1])];
  socket.write(beginning);
  const sending = setInterval(() => socket.write(Buffer.concat([pong, fragment, pong])), 20);
  stops.push(() => clearInterval(sending));
  await until(() => expect(said()).toContain('a message is not complete after 0.2 s'));
});

test.each([
  ['that is refused before it is read', '/nobody/Nothing'],
  ['that has ended', subscribePath],
])('a client whose call %s cannot make the server gather a message', async (_, path) => {
  const principal = await start();
  const { accessToken } = await principal.tokens.issue({ agent: 'one', mode: 'managed' });
  const { socket, said } = await open(principal.port, path, accessToken);
  if (path === subscribePath) {
    await until(() => expect(principal.server.disconnect('one', 'that is all')).toBe(true));
  }
  await until(() => expect(said()).toContain('Grpc-Status: '));
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.write(headOf(60 * megabyte));
  let sent = 0;
  const send = () => {
    while (sent < 59 && !socket.destroyed) {
      sent++;
      if (!socket.write(Buffer.alloc(megabyte))) {
        socket.once('drain', send);
        return;
      }
    }
  };
  send();
  await closed;
  // What the operating system takes for either side is no memory of the server.
  expect(sent).toBeLessThan(20);
});

test('a message over the limit is refused before it is complete', async () => {
  const principal = await start({ maxMessageBytes: megabyte });
  const { accessToken } = await principal.tokens.issue({ agent: 'one', mode: 'managed' });
  const { socket, said } = await open(principal.port, subscribePath, accessToken);
  await until(() => expect(principal.sessions).toHaveLength(1));
  socket.write(headOf(60 * megabyte));
  socket.write(Buffer.alloc(2 * megabyte));
  await until(() => expect(said()).toContain('a message has more than the limit of 1048576 bytes'));
  await until(() => expect(principal.closed).toHaveLength(1));
});
