import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test, vi } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { freePort } from '../testbed/index.ts';
import type { ServiceEndpoint } from './services.ts';
import { ServiceNetwork } from './services.ts';

const address = '127.0.0.61';

/** A server that says a word to whoever comes. */
async function speaker(word: string, at: { host: string; port: number }): Promise<Server> {
  const server = createServer((socket) => socket.end(word)).listen(at);
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return server;
}

/** The ports that could not be opened, as often as it was tried. */
const refused: number[] = [];
const portOf = (server: Server) => (server.address() as AddressInfo).port;

/** A Service with one endpoint, which is reached where `place` says; asks its first port. */
async function serviceOf(
  port: number,
  place: { at: ServiceEndpoint },
  ...others: number[]
): Promise<() => Promise<string>> {
  const ports = [port, ...others].map((each) => ({ port: each }));
  const service = { metadata: { namespace: 'a', name: 'b', uid: 'c' }, spec: { ports } };
  const slice = { endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: true } }], ports: [{ port: 80 }] };
  const nothing = () => undefined;
  const network = new ServiceNetwork({
    client: { server: 'https://127.0.0.1:6443' } as never,
    services: { subscribe: () => nothing, get: () => service, list: () => [service] } as never,
    slices: { subscribe: () => nothing, byIndex: () => [slice] } as never,
    block: { take: () => address } as never,
    locate: () => place.at,
    changed: nothing,
    logger: {
      debug: nothing,
      info: nothing,
      warn: nothing,
      error: (fields: object) => void refused.push((fields as { port: number }).port),
    },
  });
  onTestFinished(() => network.close());
  network.update('a/b');
  return () => text(connect(port, address));
}

test('a container that is started again elsewhere is found, though the cluster is told nothing', async () => {
  const first = await speaker('first', { host: '127.0.0.1', port: 0 });
  const second = await speaker('second', { host: '127.0.0.1', port: 0 });
  const place = { at: { host: '127.0.0.1', port: portOf(first) } };
  const ask = await serviceOf(await freePort(), place);
  await until(async () => expect(await ask()).toBe('first'));
  first.close();
  place.at = { host: '127.0.0.1', port: portOf(second) };
  expect(await ask()).toBe('second');
});

test('a port that is taken is tried again', async () => {
  const pod = await speaker('pod', { host: '127.0.0.1', port: 0 });
  const port = await freePort();
  const other = await speaker('other', { host: address, port });
  const ask = await serviceOf(port, { at: { host: '127.0.0.1', port: portOf(pod) } });
  expect(await ask()).toBe('other');
  other.close();
  await until(async () => expect(await ask()).toBe('pod'));
});

test('several ports that cannot be opened ask together for one other try', async () => {
  const taken = [await freePort(), await freePort(), await freePort()] as const;
  for (const port of taken) {
    await speaker('other', { host: address, port });
  }
  const timers = vi.spyOn(globalThis, 'setTimeout');
  onTestFinished(() => timers.mockRestore());
  const [first, ...others] = taken;
  refused.length = 0;
  await serviceOf(first, { at: { host: '127.0.0.1', port: 1 } }, ...others);
  await until(() => expect(refused.toSorted()).toEqual([...taken].sort()));
  expect(timers.mock.calls.filter(([, ms]) => ms === 1_000)).toHaveLength(1);
});
