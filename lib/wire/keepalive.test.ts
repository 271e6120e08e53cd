import { createServer as createHttp2Server } from 'node:http2';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type PlayedPrincipal, playAgent, playPrincipal } from '../../e2e/peer/index.ts';
import { until } from '../base/testing.ts';
import { clientKeepalive, factorAfter } from './client/client-keepalive.ts';
import { connectGrpc } from './grpc/client/client.ts';
import { callUnary } from './grpc/client/client-call.ts';
import { webSocketTransport } from './grpc/client/websocket-client.ts';
import type { GrpcError } from './grpc/status.ts';
import { paths } from './methods.ts';

// A network that goes silent without a sign.

/** A proxy that can stop passing anything on while keeping every connection open. */
async function startProxy(port: number) {
  const sockets: Socket[] = [];
  let isSilent = false;
  const proxy = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    sockets.push(client, upstream);
    client.pipe(upstream);
    upstream.pipe(client);
    for (const socket of [client, upstream]) {
      socket.on('error', () => undefined);
    }
    // Neither side receives anything from the other one.
    client.on('close', () => isSilent || upstream.destroy());
    upstream.on('close', () => isSilent || client.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return {
    port: (proxy.address() as AddressInfo).port,
    goSilent() {
      isSilent = true;
      for (const socket of sockets) {
        socket.unpipe();
      }
    },
    stop() {
      for (const socket of sockets) {
        socket.destroy();
      }
      proxy.close();
    },
  };
}

describe('a connection that goes silent', () => {
  let principal: PlayedPrincipal;
  let proxy: Awaited<ReturnType<typeof startProxy>>;
  const abort = { controller: new AbortController() };

  beforeEach(async () => {
    abort.controller = new AbortController();
    principal = await playPrincipal({ keepalive: { intervalMs: 30, timeoutMs: 300 }, webSocket: true });
    proxy = await startProxy(principal.port);
  });

  afterEach(async () => {
    abort.controller.abort();
    proxy.stop();
    await principal.close();
  });

  test.each(['grpc', 'websocket'] as const)('is noticed by the principal (%s)', async (transport) => {
    const agent = playAgent(proxy.port, { transport, backoff: { initialMs: 10, maxMs: 10 } });
    await until(() => expect(principal.sessions).toHaveLength(1));
    proxy.goSilent();
    await until(() => expect(principal.closed).toHaveLength(1));
    await agent.stop();
  });

  test.each([
    ['by regular pings', { intervalMs: 30, timeoutMs: 300 }],
    ['by a ping when what we sent finds no echo', { intervalMs: 30, timeoutMs: 300, onSuspicionEveryMs: 60_000 }],
  ])('is noticed by the agent: %s', async (_, keepalive) => {
    const { signal } = abort.controller;
    const transport = await connectGrpc({
      host: '127.0.0.1',
      port: proxy.port,
      tls: 'plaintext',
      timeoutMs: 3000,
      maxMessageBytes: 1000,
      compression: false,
      keepalive,
      signal,
    });
    await callUnary(transport.call(paths.version), Buffer.alloc(0), signal);
    proxy.goSilent();
    const lost = callUnary(transport.call(paths.version), Buffer.alloc(0), signal);
    await expect(lost).rejects.toMatchObject({ isConnectionLoss: true });
    await transport.closed;
    expect(transport.failure?.message).toContain('does not answer any more');
  });

  test('is noticed by the agent over WebSocket', async () => {
    const { signal } = abort.controller;
    const transport = webSocketTransport({
      host: '127.0.0.1',
      port: proxy.port,
      tls: 'plaintext',
      timeoutMs: 3000,
      maxMessageBytes: 1000,
      compression: false,
      keepalive: { intervalMs: 30, timeoutMs: 300 },
      signal,
    });
    await callUnary(transport.call(paths.version), Buffer.alloc(0), signal);
    // A call that the principal has not got all of yet.
    const call = transport.call(paths.authenticate);
    const { promise: opened, resolve: open } = Promise.withResolvers<void>();
    const { promise: ended, resolve: end } = Promise.withResolvers<GrpcError | undefined>();
    call.listen({ opened: open, message: () => undefined, end });
    await opened;
    proxy.goSilent();
    expect(await ended).toMatchObject({ isConnectionLoss: true });
    expect(transport.failure?.message).toContain('does not answer any more');
    transport.destroy();
  });
});

test.each([
  ['grpc', 0, 1, { onSuspicionEveryMs: 305_000 }],
  ['websocket', 0, 1, { intervalMs: 15_000 }],
  ['grpc', 50_000, 1, { intervalMs: 50_000, timeoutMs: 10_000 }],
  ['grpc', 1000, 1, { intervalMs: 10_000, timeoutMs: 10_000 }],
  ['grpc', 50_000, 4, { intervalMs: 200_000, timeoutMs: 10_000 }],
  ['websocket', 30_000, 1, { intervalMs: 30_000, timeoutMs: 10_000 }],
] as const)('an agent over %s with interval %d and factor %d', (transport, intervalMs, factor, expected) => {
  const timing = clientKeepalive(transport, { intervalMs, factor });
  expect(timing).toMatchObject(expected);
  // With an interval every silence is probed; by itself HTTP/2 is probed on suspicion only.
  expect(timing.onSuspicionEveryMs === undefined).toBe(intervalMs > 0 || transport === 'websocket');
});

test('pings get rarer with every complaint of the principal', async () => {
  const principal = createHttp2Server();
  principal.on('stream', (stream) => {
    stream.on('error', () => undefined);
    stream.session?.goaway(0xb, 0, Buffer.from('too_many_pings'));
    stream.session?.destroy();
  });
  await new Promise<void>((resolve) => principal.listen(0, '127.0.0.1', resolve));
  const transport = await connectGrpc({
    host: '127.0.0.1',
    port: (principal.address() as AddressInfo).port,
    tls: 'plaintext',
    timeoutMs: 3000,
    maxMessageBytes: 1000,
    compression: false,
    keepalive: { intervalMs: 10_000, timeoutMs: 3000 },
    signal: new AbortController().signal,
  });
  await callUnary(transport.call(paths.version), Buffer.alloc(0), new AbortController().signal).catch(() => undefined);
  await transport.closed;
  expect(factorAfter(transport.failure, 1)).toBe(2);
  expect(factorAfter(transport.failure, 2)).toBe(4);
  expect(factorAfter(new Error('something else'), 2)).toBe(2);
  expect(factorAfter(undefined, 2)).toBe(2);
  principal.close();
});

test('an agent learns that it pings too often for the principal', async () => {
  const principal = createHttp2Server();
  principal.on('stream', (stream) => {
    stream.on('error', () => undefined);
    stream.session?.goaway(0xb, 0, Buffer.from('too_many_pings'));
    stream.session?.destroy();
  });
  await new Promise<void>((resolve) => principal.listen(0, '127.0.0.1', resolve));
  const agent = playAgent((principal.address() as AddressInfo).port, { backoff: { initialMs: 10, maxMs: 10 } });
  await until(() => expect(agent.failures.length).toBeGreaterThan(0));
  expect(agent.failures[0]).toMatchObject({
    message: expect.stringContaining('ping too often'),
    hint: expect.stringContaining('--keepalive-min-interval'),
  });
  await agent.stop();
  principal.close();
});
