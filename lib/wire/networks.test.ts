import { createServer as createHttpServer, request as httpRequest, type IncomingMessage } from 'node:http';
import { createServer as createHttpsServer, request as httpsRequest } from 'node:https';
import { type AddressInfo, connect, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { type PlayedAgent, type PlayedPrincipal, playAgent, playPrincipal } from '../../e2e/peer/index.ts';
import { authenticateWith, GoExpression, mtlsMethod, userpassMethod } from '../auth/index.ts';
import { until } from '../base/testing.ts';
import {
  agentSource,
  eventTypes,
  messageEvent,
  principalSource,
  targets,
  type WireClientOptions,
  type WireServerOptions,
} from './index.ts';
import { createTestCa, type TestCa, type TestCertificate } from './testing/certificates.ts';

// Between agent and principal: proxies of both kinds, and readers that are slow.

const mtls = mtlsMethod({ source: 'subject', pattern: new GoExpression('CN=([^,]+)') });
/** bcrypt of "secret", at the lowest cost. */
const users = userpassMethod({
  hashes: new Map([['cluster1', '$2b$04$6n5Shrp1Z.AwJhYWQ/OMDu2i6TcKiA0s/nSdt1dH3YmfZshcI8mjy']]),
  warnings: [],
});

let ca: TestCa;
let serverTls: TestCertificate;
let agentTls: TestCertificate;

beforeAll(async () => {
  ca = await createTestCa();
  // A name that is not a loopback address: Go's rules never send those through a proxy.
  serverTls = await ca.issue({ subject: 'CN=principal', names: ['hub.test', '127.0.0.1', '::1'], usage: 'server' });
  agentTls = await ca.issue({ subject: 'CN=cluster1' });
});

let stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.reverse()) {
    await stop();
  }
  stops = [];
});

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stops.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

async function startPrincipal(options: Partial<WireServerOptions> = {}) {
  const principal = await playPrincipal({
    tls: { ...serverTls, clientCa: ca.cert, requireClientCertificate: true },
    webSocket: true,
    authenticate: (request, peer) => authenticateWith(peer.encrypted ? mtls : users, request, peer),
    ...options,
  });
  stops.push(principal.close);
  return principal;
}

function startAgent(port: number, options: Partial<WireClientOptions> = {}) {
  const agent = playAgent(port, { tls: () => ({ ca: ca.cert, ...agentTls }), ...options });
  stops.push(agent.stop);
  return agent;
}

const userpass = { method: 'userpass', credentials: { clientid: 'cluster1', clientsecret: 'secret' } };
const event = (text: string, source: { source: string }) =>
  messageEvent(targets.resourceResync, eventTypes.requestResourceResync, { text }, source);

/** Sends an event each way. */
async function exchange(principal: PlayedPrincipal, agent: PlayedAgent) {
  await until(() => expect(agent.streams).toHaveLength(1));
  await until(() => expect(principal.sessions).toHaveLength(1));
  agent.streams[0]?.send(event('up'.repeat(50_000), { source: agentSource }));
  principal.sessions[0]?.stream.send(event('down'.repeat(50_000), { source: principalSource }));
  await until(() => expect(principal.received).toHaveLength(1));
  await until(() => expect(agent.received).toHaveLength(1));
  expect(String(principal.received[0]?.data)).toContain('upupup');
  expect(String(agent.received[0]?.data)).toContain('downdown');
}

const transports = ['grpc', 'websocket'] as const;

/** An HTTP proxy that resolves hub.test and records its requests. */
async function startForwardProxy(options: { material?: TestCertificate; refuseWith?: string } = {}) {
  const asked: { path: string; authorization: string | undefined }[] = [];
  const proxy = options.material === undefined ? createHttpServer() : createHttpsServer(options.material);
  proxy.on('connect', (request: IncomingMessage, client: Duplex) => {
    const path = request.url ?? '';
    asked.push({ path, authorization: request.headers['proxy-authorization'] });
    client.on('error', () => undefined);
    if (options.refuseWith !== undefined) {
      client.end(`HTTP/1.1 ${options.refuseWith}\r\n\r\n`);
      return;
    }
    const upstream = connect(Number(path.split(':')[1]), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      client.pipe(upstream).pipe(client);
    });
    upstream.on('error', () => client.destroy());
    client.on('close', () => upstream.destroy());
    stops.push(() => upstream.destroy());
  });
  return { port: await listen(proxy), asked };
}

test.each(transports)('%s through a forward proxy with CONNECT', async (transport) => {
  const principal = await startPrincipal();
  const proxy = await startForwardProxy();
  const agent = startAgent(principal.port, {
    transport,
    server: `hub.test:${principal.port}`,
    environment: { HTTPS_PROXY: `http://me:se%20cret@127.0.0.1:${proxy.port}` },
  });
  await exchange(principal, agent);
  expect(proxy.asked[0]).toEqual({
    path: `hub.test:${principal.port}`,
    authorization: `Basic ${Buffer.from('me:se cret').toString('base64')}`,
  });
});

test.each(transports)('%s in plaintext through a forward proxy', async (transport) => {
  const principal = await startPrincipal({ tls: 'plaintext' });
  const proxy = await startForwardProxy();
  // grpc-go takes the proxy of https for everything, Go's HTTP client that of the scheme.
  const name = transport === 'grpc' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const agent = startAgent(principal.port, {
    transport,
    tls: () => 'plaintext',
    credentials: () => userpass,
    server: `hub.test:${principal.port}`,
    environment: { [name]: `127.0.0.1:${proxy.port}` },
  });
  await exchange(principal, agent);
  expect(proxy.asked.length).toBeGreaterThan(0);
});

test('a refusing proxy and an absent proxy have different errors; no password is quoted', async () => {
  const proxy = await startForwardProxy({ refuseWith: '407 Proxy Authentication Required' });
  const refused = startAgent(1, {
    server: 'hub.test:443',
    environment: { HTTPS_PROXY: `http://me:secret@127.0.0.1:${proxy.port}` },
  });
  await until(() => expect(refused.failures.length).toBeGreaterThan(0));
  expect(refused.failures[0]).toMatchObject({
    code: 'unreachable',
    message: expect.stringMatching(/the proxy 127.0.0.1:\d+ refuses to connect to hub.test:443: 407 Proxy Auth/),
  });
  expect(refused.failures[0]?.message).not.toContain('secret');
  const absent = startAgent(1, { server: 'hub.test:443', environment: { HTTPS_PROXY: 'http://127.0.0.1:1' } });
  await until(() => expect(absent.failures.length).toBeGreaterThan(0));
  expect(absent.failures[0]?.message).toContain('the proxy 127.0.0.1:1 cannot be reached');
});

/** A reverse proxy that ends TLS and speaks nothing but HTTP/1.1, as old load balancers do. */
async function startReverseProxy(upstreamPort: number, options: { tls: boolean }) {
  const proxy = createHttpsServer({ ...serverTls, ALPNProtocols: ['http/1.1'] });
  const target = (request: IncomingMessage) => ({
    host: '127.0.0.1',
    port: upstreamPort,
    method: request.method ?? '',
    path: request.url ?? '',
    headers: { ...request.headers, 'x-forwarded-for': '10.0.0.1' },
    ...(options.tls ? { ca: ca.cert, ...agentTls } : {}),
  });
  const start = options.tls ? httpsRequest : httpRequest;
  proxy.on('upgrade', (request: IncomingMessage, client: Duplex, head: Buffer) => {
    const upstream = start(target(request));
    client.on('error', () => upstream.destroy());
    upstream.on('error', () => client.destroy());
    upstream.on('upgrade', (response: IncomingMessage, socket: Socket, rest: Buffer) => {
      const lines = response.rawHeaders.flatMap((text, index, all) =>
        index % 2 ? [] : [`${text}: ${all[index + 1]}`],
      );
      client.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`);
      client.write(rest);
      socket.write(head);
      socket.on('error', () => client.destroy());
      socket.on('close', () => client.destroy());
      client.on('close', () => socket.destroy());
      client.pipe(socket).pipe(client);
    });
    upstream.end();
  });
  stops.push(() => proxy.closeAllConnections());
  return listen(proxy);
}

test.each([true, false])('WebSocket through a reverse proxy of HTTP/1.1 (TLS behind it: %s)', async (tls) => {
  const principal = await startPrincipal(tls ? {} : { tls: 'plaintext' });
  const port = await startReverseProxy(principal.port, { tls });
  const agent = startAgent(port, {
    transport: 'websocket',
    compression: true,
    ...(tls ? {} : { credentials: () => userpass }),
  });
  await exchange(principal, agent);
});

test('HTTP/2 does not pass a proxy of HTTP/1.1, and the agent explains why', async () => {
  const principal = await startPrincipal();
  const agent = startAgent(await startReverseProxy(principal.port, { tls: true }));
  await until(() => expect(agent.failures.length).toBeGreaterThan(0));
  expect(agent.failures[0]).toMatchObject({
    code: 'protocol',
    hint: expect.stringContaining('--enable-websocket'),
  });
});

test('a principal without WebSocket: the agent explains why', async () => {
  const principal = await startPrincipal({ webSocket: false });
  const agent = startAgent(principal.port, { transport: 'websocket' });
  await until(() => expect(agent.failures.length).toBeGreaterThan(0));
  expect(agent.failures[0]).toMatchObject({ code: 'protocol', hint: expect.stringContaining('--enable-websocket') });
});

// A side that does not read makes the other one wait before large buffers have built up.
test.each(transports)(
  '%s: a slow reader holds the sender back, in both directions',
  async (transport) => {
    const principal = await startPrincipal({ keepalive: { intervalMs: 50, timeoutMs: 1000 } });
    const agent = startAgent(principal.port, { transport });
    await until(() => expect(agent.streams).toHaveLength(1));
    const [stream] = agent.streams;
    const session = principal.sessions[0];
    if (stream === undefined || session === undefined) {
      throw new Error('no stream');
    }
    const directions = [
      { sender: stream, reader: session.stream, got: principal.received, source: { source: agentSource } },
      { sender: session.stream, reader: stream, got: agent.received, source: { source: principalSource } },
    ];
    for (const { sender, reader, got, source } of directions) {
      reader.pause('full');
      const chunk = event('x'.repeat(100_000), source);
      const count = 400;
      let sent = 0;
      let isWritable = true;
      const fill = () => {
        isWritable = true;
        while (isWritable && sent < count) {
          isWritable = sender.send(chunk);
          sent++;
        }
      };
      sender.onDrain(fill);
      fill();
      // Until nothing moves: buffers hold only a small part of the data.
      let before = -1;
      let quietSince = 0;
      await until(() => {
        if (sent !== before || isWritable) {
          quietSince = performance.now();
        }
        before = sent;
        // Long enough for a pause, and shorter than what keeps the connection alive bears.
        expect(performance.now() - quietSince).toBeGreaterThan(500);
      });
      expect(sent).toBeLessThan(count / 2);
      expect(got.length).toBeLessThan(count / 2);
      reader.resume('full');
      await until(() => expect(got).toHaveLength(count));
    }
    expect(principal.closed).toEqual([]);
  },
  120_000,
);

test.each(transports)('%s to a principal at an IPv6 address', { tags: 'ipv6' }, async (transport) => {
  const principal = await startPrincipal({ address: '::1' });
  const agent = startAgent(0, { transport, server: `[::1]:${principal.port}` });
  await until(() => expect(agent.streams).toHaveLength(1));
  expect(principal.sessions[0]?.peer.address).toMatch(/^\[::1\]:\d+$/);
});

test('a principal that listens on all addresses takes agents over IPv4 and IPv6', { tags: 'ipv6' }, async () => {
  const principal = await startPrincipal({ address: '::' });
  for (const host of ['127.0.0.1', '[::1]']) {
    const agent = startAgent(0, { server: `${host}:${principal.port}` });
    await until(() => expect(agent.streams).toHaveLength(1));
    // As people write it, also on a listener for both.
    expect(principal.sessions.at(-1)?.peer.address).toContain(`${host}:`);
  }
});
