import { once } from 'node:events';
import { connect, createServer as createTcpServer, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { createAuthority, issueCertificate } from '../../lib/pki/index.ts';
import { serveRedisProxy } from './redis/proxy.ts';
import { serveProxy } from './testing/served-proxy.ts';

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

/** What a client of one of the proxies needs. */
interface Served {
  close(): Promise<void>;
  readonly port: number;
  readonly ca: string;
  readonly client?: { readonly cert: string; readonly key: string };
}

async function servedResources(): Promise<Served> {
  const nothing = { ask: () => undefined, expect: () => undefined } as never;
  const { proxy, authority, client } = await serveProxy({
    exchange: nothing,
    bodies: nothing,
    send: () => false,
    isConnected: () => false,
    connected: async () => undefined,
  });
  const close = () => proxy.close();
  return { close, port: proxy.port, ca: authority.certificate, client: { cert: client.certificate, key: client.key } };
}

async function servedRedis(): Promise<Served> {
  const upstream = createTcpServer((socket) => stops.push(() => socket.destroy()));
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  stops.push(() => upstream.close());
  const authority = await createAuthority({ commonName: 'ca' });
  const server = await issueCertificate({ authority, commonName: 'proxy', hosts: ['127.0.0.1'], usages: ['server'] });
  const proxy = await serveRedisProxy({
    host: '127.0.0.1',
    port: 0,
    tls: { cert: server.certificate, key: server.key },
    upstream: { host: '127.0.0.1', port: (upstream.address() as { port: number }).port, tls: () => undefined },
    cache: { get: async () => undefined, subscribe: async () => true, ping: async () => undefined },
    agentOf: () => undefined,
    keyPrefix: '',
    logger: createLogger({ level: 'fatal' }),
  });
  return { close: () => proxy.close(), port: proxy.port, ca: authority.certificate };
}

test.each([
  ['resource', servedResources],
  ['Redis', servedRedis],
])('strangers that begin no TLS handshake do not take the connections of the %s proxy', async (_, serve) => {
  const { close, port, ca, client } = await serve();
  stops.push(close);
  const closed = new Set<number>();
  const stranger = async (index: number): Promise<Socket> => {
    const socket = connect(port, '127.0.0.1');
    stops.push(() => socket.destroy());
    socket.on('error', () => undefined);
    socket.on('close', () => closed.add(index));
    socket.resume();
    await once(socket, 'connect');
    return socket;
  };
  const secure = connectTls({ host: '127.0.0.1', port, ca, ...client });
  stops.push(() => secure.destroy());
  await once(secure, 'secureConnect');
  let isClosed = false;
  secure.on('close', () => {
    isClosed = true;
  });
  for (let index = 0; index < 1_003; index++) {
    await stranger(index);
  }
  await until(() => expect([...closed]).toEqual([0, 1, 2]));
  const another = connectTls({ host: '127.0.0.1', port, ca, ...client });
  stops.push(() => another.destroy());
  await once(another, 'secureConnect');
  await until(() => expect([...closed]).toEqual([0, 1, 2, 3]));
  expect(isClosed).toBe(false);
});

test.each([
  ['resource', servedResources],
  ['Redis', servedRedis],
])('a stranger that begins no TLS handshake does not hold up the end of the %s proxy', async (_, serve) => {
  const { close, port, ca, client } = await serve();
  const stranger = connect(port, '127.0.0.1');
  stops.push(() => stranger.destroy());
  stranger.resume();
  await once(stranger, 'connect');
  // The stranger is accepted when a later one is: connections come in order.
  const later = connectTls({ host: '127.0.0.1', port, ca, ...client });
  stops.push(() => later.destroy());
  await once(later, 'secureConnect');
  let hasEnded = false;
  void close().then(() => {
    hasEnded = true;
  });
  // Less than a handshake may take.
  await until('the proxy to end', () => hasEnded, { timeoutMs: 4_000 });
});
