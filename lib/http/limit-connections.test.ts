import { once } from 'node:events';
import { connect, createServer, Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { until } from '../base/testing.ts';
import { boundedServer, limitConnections, RefusalLog } from './index.ts';

const httpLimits = { requestsUnderWay: 2, headersMs: 30_000, requestMs: 30_000, idleMs: 30_000, stallMs: 30_000 };

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

async function serve(caps: { connections: number; connectionsPerNetwork: number }) {
  const lines: object[] = [];
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  limitConnections(server, caps, new RefusalLog('tests', { warn: (fields, line) => lines.push({ ...fields, line }) }));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  stops.push(() => server.close());
  const { port } = server.address() as { port: number };
  const client = (from: string) => clientOf(port, from);
  return { open, lines, client };
}

/** @param from an address of the loopback network */
async function clientOf(port: number, from: string) {
  const socket = Object.assign(connect({ port, host: '127.0.0.1', localAddress: from }), { hasEnded: false });
  stops.push(() => socket.destroy());
  socket.on('error', () => undefined);
  socket.on('close', () => {
    socket.hasEnded = true;
  });
  socket.resume();
  await once(socket, 'connect');
  return socket;
}

test('an address has no more connections than it may, others have theirs', async () => {
  const { open, lines, client } = await serve({ connections: 10, connectionsPerNetwork: 3 });
  const first = [await client('127.0.0.2'), await client('127.0.0.2'), await client('127.0.0.2')];
  const refused = await client('127.0.0.2');
  await until(() => refused.hasEnded);
  const other = await client('127.0.0.3');
  await until(() => open.size === 4);
  expect([...first, other].map(({ hasEnded }) => hasEnded)).toEqual([false, false, false, false]);
  expect(lines).toEqual([
    {
      from: '127.0.0.2',
      refused: 1,
      connections: 3,
      line: 'The server for tests ends a connection: there are too many from its address',
    },
  ]);
  first[0]?.destroy();
  await until(() => open.size === 3);
  const again = await client('127.0.0.2');
  await until(() => open.size === 4);
  expect(again.hasEnded).toBe(false);
});

test('the address with most connections makes room for the others, with its oldest', async () => {
  const { open, client } = await serve({ connections: 4, connectionsPerNetwork: 4 });
  const crowd: Awaited<ReturnType<typeof client>>[] = [];
  for (let index = 0; index < 4; index++) {
    crowd.push(await client('127.0.0.2'));
  }
  const others = [await client('127.0.0.3'), await client('127.0.0.4')];
  await until(() => expect(crowd.map(({ hasEnded }) => hasEnded)).toEqual([true, true, false, false]));
  // It would have more than the others then.
  const more = await client('127.0.0.2');
  await until(() => more.hasEnded);
  expect([others.map(({ hasEnded }) => hasEnded), open.size]).toEqual([[false, false], 4]);
});

test('when each address has one, the connection that has been idle for longest makes room', async () => {
  const bounded = boundedServer(
    {
      what: 'tests',
      limits: { ...httpLimits, connections: 3, connectionsPerNetwork: 3 },
      logger: { warn: () => undefined },
    },
    (request, response) => request.url === '/quick' && response.end('well'),
  );
  const port = await bounded.listen({ port: 0, host: '127.0.0.1' });
  stops.push(() => bounded.close());
  const open = (from: string) => clientOf(port, from);
  const ask = async (socket: Awaited<ReturnType<typeof open>>, path: string) => {
    const answered = path === '/quick' && once(socket, 'data');
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
    await answered;
  };
  const [busy, idle, later] = [await open('127.0.0.2'), await open('127.0.0.3'), await open('127.0.0.4')];
  await ask(busy, '/slow');
  await ask(idle, '/quick');
  await ask(later, '/quick');
  const newcomer = await open('127.0.0.5');
  await ask(newcomer, '/quick');
  expect([busy, idle, later].map(({ hasEnded }) => hasEnded)).toEqual([false, true, false]);
});

test('refusals are said at once, and then once a minute with their number', () => {
  let now = 5;
  const lines: object[] = [];
  const log = new RefusalLog('tests', { warn: (fields) => lines.push(fields) }, { now: () => now });
  for (let index = 0; index < 100; index++) {
    log.add('there are too many', '10.0.0.1');
  }
  log.add('another reason', '10.0.0.2');
  now += 60_000;
  log.add('there are too many', '10.0.0.3');
  expect(lines).toEqual([
    { from: '10.0.0.1', refused: 1 },
    { from: '10.0.0.2', refused: 1 },
    { from: '10.0.0.3', refused: 100 },
  ]);
});

test('of many that come at the same moment a few begin in each turn of the event loop', async () => {
  const begun = new Set<Socket>();
  const server = createServer((socket) => begun.add(socket));
  limitConnections(
    server,
    { connections: 100, connectionsPerNetwork: 100 },
    new RefusalLog('tests', { warn: () => undefined }),
  );
  const sockets = Array.from({ length: 64 }, () => new Socket());
  for (const socket of sockets) {
    server.emit('connection', socket);
  }
  expect(begun.size).toBe(8);
  sockets.at(-1)?.destroy();
  await until(() => begun.size === 63);
  expect(begun).not.toContain(sockets.at(-1));
});
