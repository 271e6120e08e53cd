import { createHash, randomBytes } from 'node:crypto';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { playAgent, playPrincipal } from '../../e2e/peer/index.ts';
import { AuthRequest, AuthResponse } from '../../proto/gen/authapi/auth.ts';
import { Event } from '../../proto/gen/eventstreamapi/eventstream.ts';
import { VersionResponse } from '../../proto/gen/versionapi/version.ts';
import { TokenAuthority } from '../auth/index.ts';
import { until } from '../base/testing.ts';
import {
  agentSource,
  decodeEvent,
  encodeEvent,
  heartbeatEvent,
  type Session,
  type WireEvent,
  type WireServer,
} from './index.ts';
import { createSigningKey } from './testing/certificates.ts';

// Peers that speak gRPC over HTTP/1.1 and WebSocket like argocd-agent's, written by hand.

const tokens = TokenAuthority.fromPem(createSigningKey());
const heartbeat = heartbeatEvent({ source: agentSource });
const heartbeatBytes = Event.encode({ event: encodeEvent(heartbeat) }).finish();

let stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.reverse()) {
    await stop();
  }
  stops = [];
});

let server: WireServer;
let sessions: Session[];
let received: WireEvent[];
let closed: unknown[];

beforeEach(async () => {
  ({ server, sessions, received, closed } = await playPrincipal({
    webSocket: true,
    tokens,
    maxMessageBytes: 1_000_000,
    keepalive: { intervalMs: 50, timeoutMs: 1000 },
  }));
  stops.push(() => server.close());
});

function frame(payload: Uint8Array, flags = 0): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = flags;
  prefix.writeUInt32BE(payload.length, 1);
  return Buffer.concat([prefix, payload]);
}

/** WebSocket, from RFC 6455: frames of one piece, masked where a client sends. */
class RawWebSocket {
  readonly messages: Buffer[] = [];
  readonly pings: Buffer[] = [];
  closeCode: number | undefined;
  isGone = false;
  readonly #socket: Socket;
  readonly #isClient: boolean;
  #buffered: Buffer = Buffer.alloc(0);

  constructor(socket: Socket, isClient: boolean, head: Buffer) {
    this.#socket = socket;
    this.#isClient = isClient;
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.isGone = true;
    });
    stops.push(() => socket.destroy());
    this.#take(head);
  }

  send(payload: Buffer, opcode = 2): void {
    const length =
      payload.length < 126
        ? Buffer.from([payload.length])
        : Buffer.from([127, 0, 0, 0, 0, ...new Uint8Array(new Uint32Array([payload.length]).buffer).reverse()]);
    if (this.#isClient) {
      length[0] = (length[0] ?? 0) | 0x80;
    }
    const mask = this.#isClient ? randomBytes(4) : Buffer.alloc(0);
    const body = this.#isClient ? payload.map((byte, index) => byte ^ (mask[index % 4] ?? 0)) : payload;
    this.#socket.write(Buffer.concat([Buffer.from([0x80 | opcode]), length, mask, body]));
  }

  drop(): void {
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    this.#buffered = Buffer.concat([this.#buffered, chunk]);
    for (;;) {
      const bytes = this.#buffered;
      if (bytes.length < 2) {
        return;
      }
      const opcode = (bytes[0] ?? 0) & 0x0f;
      const isMasked = ((bytes[1] ?? 0) & 0x80) !== 0;
      let length = (bytes[1] ?? 0) & 0x7f;
      let at = 2;
      if (length === 126) {
        length = bytes.readUInt16BE(2);
        at = 4;
      } else if (length === 127) {
        length = Number(bytes.readBigUInt64BE(2));
        at = 10;
      }
      const mask = isMasked ? bytes.subarray(at, at + 4) : undefined;
      if (mask !== undefined) {
        at += 4;
      }
      if (bytes.length < at + length) {
        return;
      }
      expect(isMasked).toBe(!this.#isClient);
      const body = bytes.subarray(at, at + length);
      const payload = mask === undefined ? body : Buffer.from(body.map((byte, index) => byte ^ (mask[index % 4] ?? 0)));
      this.#buffered = bytes.subarray(at + length);
      if (opcode === 2) {
        this.messages.push(Buffer.from(payload));
      } else if (opcode === 8) {
        this.closeCode = payload.readUInt16BE(0);
        this.send(payload, 8);
      } else if (opcode === 9) {
        this.pings.push(payload);
        this.send(payload, 10);
      }
    }
  }
}

/** Opens a WebSocket the way argocd-agent's agents do; resolves with the head of the response. */
async function upgrade(path: string, headers: Record<string, string> = {}) {
  const socket = connect(server.port, '127.0.0.1');
  stops.push(() => socket.destroy());
  const lines = Object.entries({
    Host: `127.0.0.1:${server.port}`,
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': randomBytes(16).toString('base64'),
    'Sec-WebSocket-Protocol': 'grpc-ws',
    'Content-Type': 'application/grpc',
    'Grpc-Accept-Encoding': 'gzip',
    Te: 'trailers',
    'User-Agent': 'argocd-agent/v0.0.1 grpc-go/1.83.0',
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`);
  const [head, rest] = await new Promise<[string, Buffer]>((resolve, reject) => {
    let seen = Buffer.alloc(0);
    const take = (chunk: Buffer) => {
      seen = Buffer.concat([seen, chunk]);
      const end = seen.indexOf('\r\n\r\n');
      if (end < 0) {
        return;
      }
      socket.off('data', take);
      resolve([seen.subarray(0, end).toString(), seen.subarray(end + 4)]);
    };
    socket.on('data', take);
    socket.on('error', reject);
    socket.on('close', () => resolve([seen.toString(), Buffer.alloc(0)]));
  });
  return { head, open: () => new RawWebSocket(socket, true, rest) };
}

const halfClose = Buffer.from([0x80, 0, 0, 0, 0]);
const authRequest = AuthRequest.encode(
  AuthRequest.fromPartial({ method: 'mtls', mode: 'managed', version: '1', agentNamespace: 'argocd' }),
).finish();

/** The content of a metadata frame. */
function metadata(message: Buffer | undefined): string[] {
  if (message === undefined) {
    throw new Error('no message');
  }
  expect(message[0]).toBe(0x80);
  expect(message.readUInt32BE(1)).toBe(message.length - 5);
  return message.subarray(5).toString().split('\r\n');
}

async function subscribe(headers: Record<string, string> = {}) {
  const { accessToken } = await tokens.issue({ agent: 'one', mode: 'managed' });
  const { open } = await upgrade('/eventstreamapi.EventStream/Subscribe', { Authorization: accessToken, ...headers });
  return open();
}

test('a unary call over WebSocket', async () => {
  const { head, open } = await upgrade('/authapi.Authentication/Authenticate');
  expect(head).toMatch(/^HTTP\/1.1 101 /);
  expect(head).not.toMatch(/sec-websocket-protocol|sec-websocket-extensions/i);
  const webSocket = open();
  webSocket.send(frame(authRequest));
  webSocket.send(halfClose);
  await until(() => expect(webSocket.closeCode).toBe(1000));
  expect(webSocket.messages).toHaveLength(3);
  const [headers, answer = Buffer.alloc(5), trailers] = webSocket.messages;
  expect(metadata(headers)).toContain('Content-Type: application/grpc');
  expect(AuthResponse.decode(answer.subarray(5))).toMatchObject({ version: '1.0.0', principalNamespace: 'argocd' });
  expect(metadata(trailers)).toEqual(['Grpc-Status: 0', '']);
  await until(() => expect(webSocket.isGone).toBe(true));
});

test('an event stream over WebSocket, pings included', async () => {
  const webSocket = await subscribe();
  await until(() => expect(sessions).toHaveLength(1));
  await until(() => expect(webSocket.messages).toHaveLength(1));
  expect(metadata(webSocket.messages[0])).toContain('Content-Type: application/grpc');
  webSocket.send(frame(heartbeatBytes));
  await until(() => expect(received).toEqual([heartbeat]));
  sessions[0]?.stream.send(heartbeat);
  await until(() => expect(webSocket.messages).toHaveLength(2));
  const [, message] = webSocket.messages;
  expect(decodeEvent(Event.decode(message?.subarray(5) ?? Buffer.alloc(0)).event)).toEqual(heartbeat);
  await until(() => expect(webSocket.pings.length).toBeGreaterThan(1));
  webSocket.send(halfClose);
  await until(() => expect(webSocket.closeCode).toBe(1000));
  expect(metadata(webSocket.messages[2])).toEqual(['Grpc-Status: 0', '']);
  expect(closed).toHaveLength(1);
});

test('events may come over a one-way stream beside the event stream', async () => {
  const { accessToken } = await tokens.issue({ agent: 'one', mode: 'managed' });
  const push = async () => (await upgrade('/eventstreamapi.EventStream/Push', { Authorization: accessToken })).open();
  const early = await push();
  await until(() => expect(metadata(early.messages.at(-1))).toContain('Grpc-Status: 14'));
  await subscribe();
  await until(() => expect(sessions).toHaveLength(1));
  const webSocket = await push();
  webSocket.send(frame(heartbeatBytes));
  await until(() => expect(received).toEqual([heartbeat]));
  webSocket.send(halfClose);
  await until(() => expect(metadata(webSocket.messages.at(-1))).toContain('Grpc-Status: 0'));
});

test('a refused call is trailers only', async () => {
  const { open } = await upgrade('/eventstreamapi.EventStream/Subscribe', { Authorization: 'nonsense' });
  const webSocket = open();
  await until(() => expect(webSocket.closeCode).toBe(1000));
  expect(webSocket.messages).toHaveLength(1);
  expect(metadata(webSocket.messages[0])).toEqual([
    'Content-Type: application/grpc',
    'Grpc-Status: 16',
    'Grpc-Message: invalid authentication data',
    '',
  ]);
});

test.each([
  ['a frame that is longer than its header', Buffer.concat([frame(heartbeatBytes), Buffer.from('x')])],
  ['half a frame', frame(heartbeatBytes).subarray(0, 20)],
  ['less than a prefix', Buffer.from([0, 0])],
  ['metadata', frame(Buffer.from('A: b\r\n'), 0x80)],
  ['unknown flags', frame(heartbeatBytes, 2)],
  ['a message over the limit', frame(Buffer.alloc(1_000_001))],
  ['a message far over the limit', frame(Buffer.alloc(1_100_000))],
])('invalid gRPC ends the stream with "unavailable": %s', async (_, bytes) => {
  const webSocket = await subscribe();
  await until(() => expect(sessions).toHaveLength(1));
  webSocket.send(bytes);
  await until(() => expect(metadata(webSocket.messages.at(-1))).toContain('Grpc-Status: 14'));
  await until(() => expect(closed).toHaveLength(1));
  expect(server.connectedAgents()).toEqual([]);
});

test('strangers may send little over WebSocket', async () => {
  const { open } = await upgrade('/authapi.Authentication/Authenticate');
  const webSocket = open();
  webSocket.send(frame(Buffer.alloc(100_000)));
  await until(() => expect(metadata(webSocket.messages.at(-1))).toContain('Grpc-Status: 8'));
  await until(() => expect(webSocket.isGone).toBe(true));
});

test('a WebSocket that breaks ends the session', async () => {
  const webSocket = await subscribe();
  await until(() => expect(sessions).toHaveLength(1));
  webSocket.drop();
  await until(() => expect(closed).toHaveLength(1));
});

test('what is asked for otherwise is not there', async () => {
  expect((await upgrade('/versionapi.Version/Version', { 'Sec-WebSocket-Protocol': 'grpc-ws, other' })).head).toMatch(
    /^HTTP\/1.1 404 /,
  );
  expect((await upgrade('/versionapi.Version/Version', { 'Sec-WebSocket-Version': '1' })).head).toMatch(
    /^HTTP\/1.1 4\d\d /,
  );
  expect((await post('/', { 'content-type': 'text/plain' })).status).toBe(404);
  const socket = connect(server.port, '127.0.0.1', () => socket.write('nonsense\r\n\r\n'));
  const answer = await new Promise<string>((resolve) => socket.once('data', (chunk) => resolve(String(chunk))));
  expect(answer).toMatch(/^HTTP\/1.1 400 /);
});

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly trailers: NodeJS.Dict<string>;
}

function post(path: string, headers: Record<string, string>, body?: Uint8Array): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: '127.0.0.1', port: server.port, method: 'POST', path, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks),
          trailers: response.trailers,
        }),
      );
    });
    request.on('error', reject);
    request.end(body);
  });
}

test('a unary call over HTTP/1.1 has a chunked answer with trailers', async () => {
  const headers = { 'content-type': 'application/grpc', te: 'trailers' };
  const answer = await post('/authapi.Authentication/Authenticate', headers, frame(authRequest));
  expect(answer).toMatchObject({ status: 200, trailers: { 'grpc-status': '0' } });
  expect(answer.headers).toMatchObject({ 'content-type': 'application/grpc', 'transfer-encoding': 'chunked' });
  expect(AuthResponse.decode(answer.body.subarray(5)).principalNamespace).toBe('argocd');
  const refused = await post('/eventstreamapi.EventStream/Subscribe', headers, frame(heartbeatBytes));
  expect(refused).toMatchObject({
    status: 200,
    trailers: { 'grpc-status': '16', 'grpc-message': 'invalid authentication data' },
  });
});

test('a unary call as gRPC-Web, which no agent speaks, gets 404', async () => {
  const headers = { 'content-type': 'application/grpc-web+proto' };
  const answer = await post('/versionapi.Version/Version', headers, frame(Buffer.alloc(0)));
  expect(answer.status).toBe(404);
});

test('an event stream over HTTP/1.1, both ways at once', async () => {
  const { accessToken } = await tokens.issue({ agent: 'one', mode: 'managed' });
  const request = httpRequest({
    host: '127.0.0.1',
    port: server.port,
    method: 'POST',
    path: '/eventstreamapi.EventStream/Subscribe',
    headers: { 'content-type': 'application/grpc', te: 'trailers', authorization: accessToken },
  });
  request.on('error', () => undefined);
  request.flushHeaders();
  const chunks: Buffer[] = [];
  const ended = new Promise<NodeJS.Dict<string>>((resolve) => {
    request.on('response', (response) => {
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve(response.trailers));
    });
  });
  await until(() => expect(sessions).toHaveLength(1));
  for (let round = 1; round <= 3; round++) {
    request.write(frame(heartbeatBytes));
    await until(() => expect(received).toHaveLength(round));
    sessions[0]?.stream.send(heartbeat);
    await until(() => expect(Buffer.concat(chunks)).toHaveLength(round * frame(heartbeatBytes).length));
  }
  request.end();
  expect(await ended).toEqual({ 'grpc-status': '0' });
  expect(closed).toHaveLength(1);
});

test('a stream over HTTP/1.1 that the client drops is over', async () => {
  const { accessToken } = await tokens.issue({ agent: 'one', mode: 'managed' });
  const headers = { 'content-type': 'application/grpc', authorization: accessToken };
  const path = '/eventstreamapi.EventStream/Subscribe';
  const request = httpRequest({ host: '127.0.0.1', port: server.port, method: 'POST', path, headers });
  request.on('error', () => undefined);
  request.flushHeaders();
  await until(() => expect(sessions).toHaveLength(1));
  request.destroy();
  await until(() => expect(closed).toHaveLength(1));
});

/** A principal that takes WebSockets as the originals do; `answer` plays a call. */
async function startRawPrincipal(answer: (path: string, webSocket: RawWebSocket, headers: string) => void) {
  const heads: string[] = [];
  const listener = createServer((socket) => {
    let seen = Buffer.alloc(0);
    const take = (chunk: Buffer) => {
      seen = Buffer.concat([seen, chunk]);
      const end = seen.indexOf('\r\n\r\n');
      if (end < 0) {
        return;
      }
      socket.off('data', take);
      const head = seen.subarray(0, end).toString();
      heads.push(head);
      const key = /sec-websocket-key: (.*)/i.exec(head)?.[1]?.trim();
      const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      );
      const path = head.split(' ')[1] ?? '';
      answer(path, new RawWebSocket(socket, false, seen.subarray(end + 4)), head);
    };
    socket.on('data', take);
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  stops.push(() => listener.close());
  return { port: (listener.address() as AddressInfo).port, heads };
}

const close = Buffer.from([0x03, 0xe8]);
const head = frame(Buffer.from('Content-Type: application/grpc\r\nTrailer: Grpc-Status\r\n'), 0x80);
const ok = frame(Buffer.from('Grpc-Message: \r\nGrpc-Status: 0\r\n'), 0x80);

test('our agent at a principal that speaks WebSocket as the originals do', async () => {
  const calls = new Map<string, RawWebSocket>();
  let versions = 0;
  const principal = await startRawPrincipal((path, webSocket) => {
    calls.set(path, webSocket);
    void until(() => expect(webSocket.messages.at(-1)).toEqual(halfClose)).then(
      async () => {
        if (path.endsWith('/Authenticate') && versions === 0) {
          webSocket.send(frame(Buffer.from('Grpc-Status: 9\r\nGrpc-Message: version mismatch\r\n'), 0x80));
        } else if (path.endsWith('/Authenticate')) {
          const pair = await tokens.issue({ agent: 'one', mode: 'managed' });
          const answer = AuthResponse.encode({ ...pair, version: '9', principalNamespace: 'argocd' }).finish();
          for (const message of [head, frame(answer), ok]) {
            webSocket.send(message);
          }
        } else {
          versions++;
          const answer = VersionResponse.encode({ version: 'argocd-agent-9' }).finish();
          for (const message of [head, frame(answer), ok]) {
            webSocket.send(message);
          }
        }
        webSocket.send(close, 8);
      },
      () => undefined,
    );
  });
  const agent = playAgent(principal.port, { transport: 'websocket', version: '1' });
  const { streams, received: events, failures } = agent;
  stops.push(agent.stop);
  await until(() => expect(streams).toHaveLength(1));
  const request = principal.heads.at(-1) ?? '';
  expect(request).toMatch(/^GET \/eventstreamapi.EventStream\/Subscribe HTTP\/1.1/);
  expect(request).toMatch(/^host: 127.0.0.1:\d+\r?$/im);
  for (const line of ['sec-websocket-protocol: grpc-ws', 'content-type: application/grpc', 'te: trailers']) {
    expect(request.toLowerCase().split('\r\n')).toContain(line);
  }
  expect(request).toMatch(/^user-agent: argocd-agent\//im);
  expect(request).toMatch(/^authorization: ey/im);
  expect(request).not.toMatch(/sec-websocket-extensions/i);
  const call = calls.get('/eventstreamapi.EventStream/Subscribe');
  streams[0]?.send(heartbeat);
  await until(() => expect(call?.messages).toEqual([frame(heartbeatBytes)]));
  call?.send(head);
  call?.send(frame(heartbeatBytes));
  await until(() => expect(events).toEqual([heartbeat]));
  call?.send(frame(Buffer.from('Grpc-Status: 14\r\nGrpc-Message: gone %C3%BC\r\n'), 0x80));
  await until(() => expect(failures[0]?.message).toContain('gone ü'));
});
