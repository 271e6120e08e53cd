import { once } from 'node:events';
import { type ClientHttp2Session, connect, constants } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, expect, test } from 'vitest';
import { noLog, playPrincipal } from '../../e2e/peer/index.ts';
import { Event } from '../../proto/gen/eventstreamapi/eventstream.ts';
import { TokenAuthority } from '../auth/index.ts';
import { until } from '../base/testing.ts';
import { agentSource, encodeEvent, heartbeatEvent, type WireServerOptions } from './index.ts';
import { createSigningKey, createTestCa } from './testing/certificates.ts';

const tokens = TokenAuthority.fromPem(createSigningKey());
let stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.reverse()) {
    await stop();
  }
  stops = [];
});

async function start(options: Partial<WireServerOptions> = {}) {
  const said: string[] = [];
  const take = (_: object, message: string) => said.push(message);
  const { server, sessions } = await playPrincipal({
    tokens,
    logger: { ...noLog, info: take, warn: take, error: take },
    ...options,
  });
  stops.push(() => server.close());
  const session = connect(`http://127.0.0.1:${server.port}`, { maxSessionMemory: 100 });
  session.on('error', () => undefined);
  stops.push(() => session.destroy());
  return { server, session, sessions, said };
}

async function subscribe(session: ClientHttp2Session, headers: Record<string, string> = {}) {
  const { accessToken } = await tokens.issue({ agent: 'one', mode: 'managed' });
  return call(session, '/eventstreamapi.EventStream/Subscribe', { authorization: accessToken, ...headers });
}

function call(session: ClientHttp2Session, path: string, headers: Record<string, string> = {}) {
  const stream = session.request(
    { ':method': 'POST', ':path': path, te: 'trailers', 'content-type': 'application/grpc', ...headers },
    { endStream: false },
  );
  stream.on('error', () => undefined);
  stream.resume();
  const status = new Promise<{ code: string; message: string }>((resolve) => {
    const take = (headers: Record<string, unknown>) => {
      if (headers['grpc-status'] !== undefined) {
        resolve({ code: String(headers['grpc-status']), message: String(headers['grpc-message'] ?? '') });
      }
    };
    stream.on('response', take);
    stream.on('trailers', take);
    stream.on('close', () => resolve({ code: 'none', message: '' }));
  });
  return { stream, status };
}

function frame(payload: Uint8Array, flag = 0, length = payload.length): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, payload]);
}

const heartbeat = Event.encode({ event: encodeEvent(heartbeatEvent({ source: agentSource })) }).finish();
const unavailable = '14';

test('streams that are reset at any moment do not harm the server', async () => {
  const { session, server } = await start();
  for (let round = 0; round < 200; round++) {
    const { stream } = await subscribe(session);
    if (round % 2 === 0) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    stream.close(constants.NGHTTP2_CANCEL);
    const plain = session.request({ ':path': '/', ':method': 'GET' });
    plain.on('error', () => undefined);
    plain.close(constants.NGHTTP2_CANCEL);
  }
  await until(() => expect(server.connectedAgents()).toEqual([]));
  const { status } = call(session, '/nobody/Nothing');
  expect((await status).code).toBe('12');
});

// Agents of the original hang on an event stream that ends with another status.
test.each([
  [
    'over the limit',
    {},
    frame(Buffer.alloc(0), 0, 5000),
    'a message has 5000 bytes, more than the limit of 1000 bytes',
  ],
  ['unpacked over the limit', { 'grpc-encoding': 'gzip' }, frame(gzipSync(Buffer.alloc(5000)), 1), 'unpacks to'],
  ['damaged', { 'grpc-encoding': 'gzip' }, frame(Buffer.from('nonsense'), 1), 'damaged'],
  ['compressed unannounced', {}, frame(gzipSync(heartbeat), 1), 'without grpc-encoding'],
  ['with unknown flags', {}, frame(heartbeat, 7), 'unknown flags'],
])('a message that is %s ends the event stream with "unavailable"', async (_, headers, bytes, text) => {
  const { session, sessions, said } = await start({ maxMessageBytes: 1000 });
  const { stream, status } = await subscribe(session, headers);
  await until(() => expect(sessions).toHaveLength(1));
  stream.write(frame(heartbeat));
  stream.write(bytes);
  expect(await status).toEqual({ code: unavailable, message: expect.stringContaining(text) });
  expect(said).toContainEqual(expect.stringMatching(new RegExp(`stream of an agent ends: .*${text}`)));
  expect(sessions[0]?.stream.ended).toBe(true);
});

test('a message that ends early ends the event stream with "unavailable"', async () => {
  const { session } = await start();
  const { stream, status } = await subscribe(session);
  stream.end(frame(heartbeat, 0, 1000));
  expect((await status).code).toBe(unavailable);
});

test('an event stream that its client ends before it is accepted does not stay', async () => {
  const { session, server } = await start();
  const { stream, status } = await subscribe(session);
  stream.end();
  expect((await status).code).toBe('0');
  await until(() => expect(server.connectedAgents()).toEqual([]));
});

test('what strangers send is bounded in size and time', async () => {
  const { session } = await start({ timeouts: { requestMs: 100, idleMs: 60_000 } });
  const large = call(session, '/authapi.Authentication/Authenticate');
  large.stream.write(frame(Buffer.alloc(0), 0, 100_000));
  expect(await large.status).toEqual({ code: '8', message: expect.stringContaining('more than the limit of 65536') });
  const slow = call(session, '/authapi.Authentication/Authenticate');
  expect(await slow.status).toEqual({ code: '4', message: expect.stringContaining('did not come within 100 ms') });
});

test('a client that goes on sending after its call has ended is cut off', async () => {
  const { session } = await start();
  const { stream, status } = call(session, '/authapi.Authentication/Authenticate');
  stream.write(frame(Buffer.alloc(0), 0, 100_000));
  await status;
  await until(() => expect(stream.closed).toBe(true));
});

test.each([false, true])(
  'a connection without a call is closed, one with a call stays (WebSocket: %s)',
  async (webSocket) => {
    const { session, server } = await start({ webSocket, timeouts: { requestMs: 1000, idleMs: 100 } });
    await subscribe(session);
    const silent = connectTcp(server.port, '127.0.0.1');
    stops.push(() => silent.destroy());
    silent.resume();
    await once(silent, 'close');
    const greeted = connect(`http://127.0.0.1:${server.port}`);
    await once(greeted, 'close');
    if (webSocket) {
      const slow = connectTcp(server.port, '127.0.0.1', () =>
        slow.write('POST /versionapi.Version/Version HTTP/1.1\r\nA: '),
      );
      stops.push(() => slow.destroy());
      slow.resume();
      await once(slow, 'close');
    }
    expect(server.connectedAgents()).toEqual(['one']);
  },
);

test('an agent that sends without end is made to wait, and its end is still detected', async () => {
  let closed = 0;
  let events = 0;
  const { server, session } = await start({
    subscribe: ({ stream }) => ({
      event: () => {
        events++;
        stream.pause('full');
      },
      closed: () => closed++,
    }),
  });
  const flood = async (client: ClientHttp2Session) => {
    const { stream } = await subscribe(client);
    const message = frame(heartbeat);
    const many = Buffer.concat(Array.from({ length: 1000 }, () => message));
    for (let sent = 0; sent < 16 * 1024 * 1024; sent += many.length) {
      stream.write(many);
    }
    await until(() => expect(events).toBeGreaterThan(0));
    return stream;
  };
  const stream = await flood(session);
  // Data that is not read stays with the sender, except for the flow-control window; other calls go on.
  for (let round = 0; round < 10; round++) {
    expect((await call(session, '/nobody/Nothing').status).code).toBe('12');
  }
  expect(session.socket.bytesWritten).toBeLessThan(3 * 1024 * 1024);
  expect(events * heartbeat.length).toBeLessThan(1024 * 1024);
  expect(closed).toBe(0);
  stream.close(constants.NGHTTP2_CANCEL);
  await until(() => expect(closed).toBe(1));

  events = 0;
  const other = connect(`http://127.0.0.1:${server.port}`);
  other.on('error', () => undefined);
  await flood(other);
  other.destroy();
  await until(() => expect(closed).toBe(2));
  expect(server.connectedAgents()).toEqual([]);
});

test('events may come over a second stream only beside the event stream', async () => {
  let events = 0;
  const { server, session, sessions } = await start({
    subscribe: (opened) => {
      sessions.push(opened);
      return { event: () => events++, closed: () => undefined };
    },
  });
  const { accessToken: authorization } = await tokens.issue({ agent: 'one', mode: 'managed' });
  const push = (client: ClientHttp2Session) => {
    const opened = call(client, '/eventstreamapi.EventStream/Push', { authorization });
    opened.stream.write(frame(heartbeat));
    return opened;
  };
  expect((await push(session).status).code).toBe(unavailable);
  await subscribe(session);
  await until(() => expect(sessions).toHaveLength(1));
  const other = connect(`http://127.0.0.1:${server.port}`);
  stops.push(() => other.destroy());
  expect((await push(other).status).code).toBe(unavailable);
  expect(events).toBe(0);

  const first = push(session);
  await until(() => expect(events).toBe(1));
  const second = push(session);
  expect((await first.status).code).toBe(unavailable);
  await until(() => expect(events).toBe(2));
  server.disconnect('one', 'gone');
  expect(await second.status).toEqual({ code: unavailable, message: 'the event stream has ended' });
});

test.each([false, true])(
  'there is room for so many connections, and agents keep theirs (WebSocket: %s)',
  async (webSocket) => {
    const refusals: string[] = [];
    const { server, session } = await start({
      webSocket,
      limits: { maxConnections: 4 },
      refused: (reason) => refusals.push(reason),
    });
    await subscribe(session);
    await until(() => expect(server.connectedAgents()).toEqual(['one']));
    const others = Array.from({ length: 6 }, () => connectTcp(server.port, '127.0.0.1'));
    for (const socket of others) {
      socket.on('error', () => undefined);
      stops.push(() => socket.destroy());
    }
    await until(() =>
      expect(refusals).toEqual(['too-many-connections', 'too-many-connections', 'too-many-connections']),
    );
    expect(server.connectedAgents()).toEqual(['one']);
    for (const socket of others) {
      socket.destroy();
    }
    await until(async () => {
      const late = connect(`http://127.0.0.1:${server.port}`);
      late.on('error', () => undefined);
      const { status } = call(late, '/nobody/Nothing');
      expect((await status).code).toBe('12');
      late.destroy();
    });
  },
);

test('strangers that hold connections make room for others, agents never do', async () => {
  const refusals: string[] = [];
  const { server, session } = await start({
    limits: { maxUnauthenticated: 3 },
    refused: (reason) => refusals.push(reason),
  });
  await subscribe(session);
  await until(() => expect(server.connectedAgents()).toEqual(['one']));
  const gone: number[] = [];
  for (let number = 0; number < 4; number++) {
    const socket = connectTcp(server.port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.on('close', () => gone.push(number));
    socket.resume();
    stops.push(() => socket.destroy());
    await once(socket, 'connect');
  }
  // The newest is refused as long as the others are new.
  await until(() => expect(refusals).toEqual(['too-many-strangers']));
  await until(() => expect(gone).toEqual([3]));
  expect(server.connectedAgents()).toEqual(['one']);
});

test('strangers of one address make room for another address at once, and who has a certificate is no stranger', async () => {
  const ca = await createTestCa();
  const own = await ca.issue({ subject: 'CN=principal', names: ['127.0.0.1'], usage: 'server' });
  const agent = await ca.issue({ subject: 'CN=cluster1' });
  const refused: string[] = [];
  const principal = await playPrincipal({
    tls: { ...own, clientCa: ca.cert, requireClientCertificate: true },
    limits: { maxUnauthenticated: 4 },
    refused: (_reason, { address }) => refused.push(address.slice(0, address.lastIndexOf(':'))),
  });
  stops.push(() => principal.close());
  const flood = async () => {
    for (let count = 0; count < 6; count++) {
      const socket = connectTcp({ port: principal.port, host: '127.0.0.1', localAddress: '127.0.0.2' });
      socket.on('error', () => undefined);
      stops.push(() => socket.destroy());
      await once(socket, 'connect');
    }
  };
  await flood();
  const session = connect(`https://127.0.0.1:${principal.port}`, { ca: ca.cert, ...agent });
  stops.push(() => session.destroy());
  session.on('error', () => undefined);
  await once(session, 'remoteSettings');
  await flood();
  await flood();
  // The flood's own address refuses itself: two of the first, one for the agent's sake, and all of the others but the one in its place.
  await until(() => expect(refused).toHaveLength(14));
  expect([new Set(refused), session.destroyed]).toEqual([new Set(['127.0.0.2']), false]);
});

test('connections above the rate of an address wait their turn', async () => {
  // Before the bucket was made: how full it is again when they come depends on how busy this machine is.
  const began = performance.now();
  const { server } = await start({ limits: { connectionsPerSecond: 20, burst: 2 } });
  const times = await Promise.all(
    Array.from({ length: 5 }, async () => {
      const client = connect(`http://127.0.0.1:${server.port}`);
      stops.push(() => client.destroy());
      expect((await call(client, '/nobody/Nothing').status).code).toBe('12');
      return performance.now() - began;
    }),
  );
  // With the client of `start` they are six, and two need not wait: the last one has its turn after four times 50 ms.
  expect(Math.max(...times)).toBeGreaterThan(190);
});

test.each([
  ['too often, by the configured interval', 60_000, 4],
  // On a busy machine some of a flood come slowly.
  ['in a flood, with nothing configured', undefined, 100],
])('a client that pings %s is cut off as by grpc-go', async (_, minPingIntervalMs, most) => {
  const { session, said } = await start(minPingIntervalMs === undefined ? {} : { minPingIntervalMs });
  await subscribe(session);
  await until(() => expect(said).toContain('An agent is connected'));
  const goaway = once(session, 'goaway');
  let isCutOff = false;
  session.once('goaway', () => {
    isCutOff = true;
  });
  const ping = () => new Promise<void>((resolve) => session.ping(() => resolve()));
  // The first one after the server has sent something is free, the second is the first to be measured, the third strike counts.
  for (let count = 0; !isCutOff && count < most; count++) {
    await ping();
  }
  const [code, , data] = await goaway;
  expect(code).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  expect(String(data)).toBe('too_many_pings');
  expect(said).toContain('A client pings too often and is cut off');
});

test('a client whose pings come all at once is cut off once', async () => {
  const { session, said } = await start({ minPingIntervalMs: 60_000 });
  await subscribe(session);
  await until(() => expect(said).toContain('An agent is connected'));
  const closed = new Promise((resolve) => session.once('close', resolve));
  for (let count = 0; count < 8; count++) {
    session.ping(() => undefined);
  }
  await closed;
  expect(said.filter((text) => text === 'A client pings too often and is cut off')).toHaveLength(1);
});

test('pings are free while the server sends data, and while they are rare enough', async () => {
  const { session, sessions, said } = await start({ minPingIntervalMs: 20 });
  await subscribe(session);
  await until(() => expect(sessions).toHaveLength(1));
  const ping = () => new Promise<void>((resolve) => session.ping(() => resolve()));
  for (let count = 0; count < 10; count++) {
    sessions[0]?.stream.send(heartbeatEvent({ source: agentSource }));
    await ping();
  }
  // The next data that the server sends forgives two early pings.
  for (let round = 0; round < 4; round++) {
    sessions[0]?.stream.send(heartbeatEvent({ source: agentSource }));
    for (let count = 0; count < 3; count++) {
      await ping();
    }
  }
  sessions[0]?.stream.send(heartbeatEvent({ source: agentSource }));
  for (let count = 0; count < 5; count++) {
    const began = performance.now();
    await until(() => expect(performance.now() - began).toBeGreaterThan(25));
    await ping();
  }
  expect(said).not.toContain('A client pings too often and is cut off');
  expect(session.closed).toBe(false);
});

test('a request with endless headers is reset and does no harm', async () => {
  const { session, server } = await start();
  const headers = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`x-${index}`, 'y'.repeat(4000)]));
  const { status } = call(session, '/nobody/Nothing', headers);
  expect(['none', '8', '13', '14']).toContain((await status).code);
  const other = connect(`http://127.0.0.1:${server.port}`);
  stops.push(() => other.destroy());
  expect((await call(other, '/nobody/Nothing').status).code).toBe('12');
});

/** A header of HPACK: a literal that is not indexed, up to 16 KiB long. */
function literal(name: string, value: string): Buffer {
  const length = (text: string) =>
    text.length < 127 ? [text.length] : [127, ((text.length - 127) & 0x7f) | 0x80, (text.length - 127) >> 7];
  return Buffer.concat([
    Buffer.from([0, ...length(name)]),
    Buffer.from(name),
    Buffer.from(length(value)),
    Buffer.from(value),
  ]);
}

/** A frame of HTTP/2. */
function http2Frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

const maxFrameBytes = 16 * 1024;
const frameTypes = { headers: 1, reset: 3, settings: 4, continuation: 9 } as const;
const [endStream, endHeaders] = [1, 4];

/** The frames that ask for a call with these headers beside gRPC's own. */
function requestWith(headers: readonly (readonly [string, string])[]): Buffer {
  const own = [
    [':method', 'POST'],
    [':path', '/nobody/Nothing'],
    [':scheme', 'http'],
    [':authority', 'principal'],
    ['content-type', 'application/grpc'],
  ] as const;
  const block = Buffer.concat([...own, ...headers].map(([name, value]) => literal(name, value)));
  const frames: Buffer[] = [];
  for (let at = 0; at < block.length; at += maxFrameBytes) {
    const type = at === 0 ? frameTypes.headers : frameTypes.continuation;
    const flags = at + maxFrameBytes >= block.length ? endHeaders : 0;
    frames.push(http2Frame(type, flags, 1, block.subarray(at, at + maxFrameBytes)));
  }
  return Buffer.concat(frames);
}

const headersOf = (count: number, bytes: number) =>
  Array.from({ length: count }, (_, index) => [`x-${index}`, 'y'.repeat(bytes)] as const);

test.each([
  ['too large', headersOf(40, 1000), true],
  ['too many', headersOf(60, 10), true],
  ['usual', headersOf(20, 100), false],
])('headers that are %s are judged before the client has acknowledged any limit', async (_, headers, isReset) => {
  const { server } = await start();
  const socket = connectTcp(server.port, '127.0.0.1');
  stops.push(() => socket.destroy());
  let answer = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    answer = Buffer.concat([answer, chunk]);
  });
  const settings = http2Frame(frameTypes.settings, 0, 0, Buffer.alloc(0));
  socket.write(Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), settings, requestWith(headers)]));
  const reset = http2Frame(frameTypes.reset, 0, 1, Buffer.from([0, 0, 0, constants.NGHTTP2_ENHANCE_YOUR_CALM]));
  const status = Buffer.from([frameTypes.headers, endStream | endHeaders, 0, 0, 0, 1]);
  await until(() => expect([reset, status].some((frame) => answer.includes(frame))).toBe(true));
  expect(answer.includes(reset)).toBe(isReset);
});

test('unrequested live data is refused in a way that lets agents go on', async () => {
  const { session } = await start();
  for (const path of [
    '/principal.apis.logstreamapi.LogStreamService/StreamLogs',
    '/terminalstreamapi.TerminalStreamService/StreamTerminal',
  ]) {
    expect((await call(session, path).status).code).toBe('16');
    const { accessToken: authorization } = await tokens.issue({ agent: 'one', mode: 'managed' });
    expect(await call(session, path, { authorization }).status).toEqual({
      code: '12',
      message: 'live logs and terminals are not served here',
    });
  }
  expect((await call(session, '/replicationapi.Replication/Subscribe').status).code).toBe('12');
});

test('an unauthenticated client may have few open calls, an agent many', async () => {
  const { session } = await start();
  const held = Array.from({ length: 12 }, () => call(session, '/authapi.Authentication/Authenticate'));
  await until(() => expect(held.filter(({ stream }) => stream.closed)).toHaveLength(4));
  expect(held.slice(8).map(({ stream }) => stream.rstCode)).toEqual(Array(4).fill(constants.NGHTTP2_REFUSED_STREAM));
  for (const { stream } of held) {
    stream.close();
  }
  const events = await subscribe(session);
  await until(() => expect(session.remoteSettings.maxConcurrentStreams).toBe(1_000));
  const { accessToken: authorization } = await tokens.issue({ agent: 'one', mode: 'managed' });
  const pings = Array.from({ length: 100 }, () => call(session, '/eventstreamapi.EventStream/Ping', { authorization }));
  expect(new Set(await Promise.all(pings.map(async ({ status }) => (await status).code)))).toEqual(new Set(['12']));
  expect(events.stream.closed).toBe(false);
});
