import { once } from 'node:events';
import { connect } from 'node:net';
import { createClient } from '@redis/client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { freePort } from '../../../e2e/pair/index.ts';
import { type Redis, startRedis } from '../../../e2e/redis/index.ts';
import { liveMemory, until } from '../../../lib/base/testing.ts';
import { encodeCommand } from '../../../lib/live/index.ts';
import { createLogger } from '../../../lib/ops/index.ts';
import { applicationOf } from './keys.ts';
import { type RedisProxy, serveRedisProxy } from './proxy.ts';

const tree = 'app|resources-tree|edge_web|1.8.3.gz';
const channel = 'app|managed-resources|edge_web|1.8.3';
const clean: (() => unknown)[] = [];

let redis: Redis;
let proxy: RedisProxy;
let port: number;
const asked: string[] = [];
const agent = {
  values: new Map<string, Buffer>(),
  /** Answers wait for it. */
  slowly: Promise.resolve() as Promise<unknown>,
};

async function startProxy(...redisArgs: string[]) {
  port = await freePort();
  redis = await startRedis({ port, args: redisArgs });
  clean.push(() => redis.stop());
  proxy = await serveRedisProxy({
    host: '127.0.0.1',
    port: 0,
    tls: undefined,
    upstream: { host: '127.0.0.1', port, tls: () => undefined },
    cache: {
      get: async (name, _connection, key) => {
        asked.push(`${name} get ${key}`);
        await agent.slowly;
        return agent.values.get(key);
      },
      subscribe: async (name, connection, of) => {
        asked.push(`${name} subscribe ${of} ${connection.length}`);
        connectionUuid = connection;
        return true;
      },
      ping: async () => undefined,
    },
    agentOf: (key) => applicationOf(key)?.namespace || undefined,
    keyPrefix: 'fleet:',
    logger: createLogger({ level: 'fatal' }),
  });
  clean.push(() => proxy.close());
}
let connectionUuid = '';

beforeEach(() => {
  asked.length = 0;
  agent.values.clear();
  agent.slowly = Promise.resolve();
});
afterEach(async () => {
  for (const step of clean.splice(0).reverse()) {
    await step();
  }
});

async function client(options: { password?: string; RESP?: 2 | 3 } = {}) {
  const { password, RESP = 3 } = options;
  const made = createClient({
    RESP,
    socket: { host: '127.0.0.1', port: proxy.port, reconnectStrategy: false },
    ...(password === undefined ? {} : { password }),
  });
  made.on('error', () => undefined);
  clean.push(() => made.isOpen && made.destroy());
  await made.connect();
  return made;
}

test('values of agents come from them and all others from Redis, in the order of the commands', async () => {
  await startProxy();
  const one = await client();
  const { promise, resolve } = Promise.withResolvers<void>();
  agent.slowly = promise;
  agent.values.set(tree, Buffer.from('the tree'));
  const answers: unknown[] = [];
  const questions = [
    one.set('plain', 'x'.repeat(1_000_000)),
    one.get(tree),
    one.get('plain'),
    one.get('app|resources-tree|edge_none|1.8.3.gz'),
    one.get('mfst|a'),
    one.ping(),
    one.get(`fleet:${tree}`),
    one.set('fleet:mfst|a', 'y'),
    one.get('fleet:mfst|a'),
  ].map((question, index) => question.then((answer: unknown) => answers.push([index, String(answer).slice(0, 8)])));
  await until(() => asked.length === 1);
  expect(answers).toEqual([[0, 'OK']]);
  resolve();
  await Promise.all(questions);
  expect(answers).toEqual([
    [0, 'OK'],
    [1, 'the tree'],
    [2, 'xxxxxxxx'],
    [3, 'null'],
    [4, 'null'],
    [5, 'PONG'],
    [6, 'the tree'],
    [7, 'OK'],
    [8, 'y'],
  ]);
  expect(asked).toEqual([`edge get ${tree}`, 'edge get app|resources-tree|edge_none|1.8.3.gz', `edge get ${tree}`]);
});

test.each([2, 3] as const)('messages of an agent reach the client that follows its channel (RESP%d)', async (RESP) => {
  await startProxy();
  const reader = await client({ RESP });
  const heard: string[] = [];
  await reader.subscribe(channel, (_message, of) => heard.push(of));
  // One message stands for those before the agent has agreed.
  await until(() => heard.length === 1);
  expect(asked).toEqual([`edge subscribe ${channel} 36`]);
  proxy.news('other', connectionUuid, channel);
  proxy.news('edge', connectionUuid, 'app|managed-resources|edge_other|1.8.3');
  proxy.news('edge', 'nobody', channel);
  proxy.news('edge', connectionUuid, channel);
  await until(() => heard.length === 2);
  proxy.agentConnected('edge');
  await until(() => heard.length === 3);
  expect(heard).toEqual([channel, channel, channel]);
  await reader.unsubscribe(channel);
  proxy.news('edge', connectionUuid, channel);
  await reader.subscribe('other', () => undefined);
  expect(heard).toHaveLength(3);
});

test('messages of Redis itself reach its subscribers', async () => {
  await startProxy();
  const [reader, writer] = [await client(), await client()];
  const heard: string[] = [];
  await reader.subscribe('new-revoked-token', (message) => heard.push(message));
  await writer.publish('new-revoked-token', 'a token');
  await until(() => heard.length === 1);
  expect(heard).toEqual(['a token']);
});

test('a client that has not authenticated to Redis gets nothing of the agents either', async () => {
  await startProxy('--requirepass', 'secret');
  agent.values.set(tree, Buffer.from('the tree'));
  const raw = connect({ host: '127.0.0.1', port: proxy.port });
  let text = '';
  raw.on('data', (chunk) => {
    text += chunk;
  });
  raw.write(`*2\r\n$3\r\nget\r\n$${tree.length}\r\n${tree}\r\n`);
  raw.write(`*2\r\n$9\r\nsubscribe\r\n$${channel.length}\r\n${channel}\r\n`);
  await until(() => text.match(/NOAUTH/g)?.length === 2);
  expect(asked).toEqual([]);
  raw.destroy();
  const known = await client({ password: 'secret' });
  expect(await known.get(tree)).toBe('the tree');
});

/** A connection without a Redis client. */
async function rawConnection() {
  const socket = connect({ host: '127.0.0.1', port: proxy.port });
  let text = '';
  let isClosed = false;
  socket.on('data', (chunk) => {
    text += chunk;
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    isClosed = true;
  });
  clean.push(() => socket.destroy());
  await once(socket, 'connect');
  return {
    socket,
    send: (...commands: string[][]) => socket.write(Buffer.concat(commands.map(encodeCommand))),
    text: () => text,
    isClosed: () => isClosed,
  };
}

test('a reply to an earlier command is not taken for the consent of Redis', async () => {
  await startProxy('--requirepass', 'secret');
  agent.values.set(tree, Buffer.from('the tree'));
  for (const first of ['SUBSCRIBE', 'PSUBSCRIBE', 'SSUBSCRIBE', 'UNSUBSCRIBE']) {
    const raw = await rawConnection();
    raw.send([first, 'x'], ['RESET'], ['GET', tree], ['GET', tree], ['SUBSCRIBE', channel], ['NOSUCH']);
    await until(() => raw.text().includes('NOSUCH'));
    expect(raw.text().match(/NOAUTH/g)).toHaveLength(4);
    expect(raw.text()).not.toContain('the tree');
  }
  expect(asked).toEqual([]);
});

test('a refused command stays refused with more after a NUL, which Redis may ignore', async () => {
  await startProxy();
  const raw = await rawConnection();
  raw.send(['RESET\0a'], ['monitor\0'], ['CLIENT', 'reply\0b', 'OFF'], ['NOSUCH']);
  await until(() => raw.text().includes('NOSUCH'));
  expect(raw.text().match(/is not served by the Redis proxy/g)).toHaveLength(3);
});

test("a client that has not authenticated has Redis' limits, and others have not", async () => {
  await startProxy('--requirepass', 'secret');
  for (const header of ['*2\r\n$3\r\nGET\r\n$16385\r\n', '*11\r\n']) {
    const raw = await rawConnection();
    raw.socket.write(header);
    await until(() => raw.isClosed());
    expect(raw.text()).toMatch(/^-ERR Protocol error: .* are allowed\r\n$/);
  }
  const raw = await rawConnection();
  // In one packet: the limit is that at the time when the command is read.
  raw.send(['AUTH', 'secret'], ['SET', 'x', 'y'.repeat(1_000_000)], ['STRLEN', 'x']);
  await until(() => raw.text() === '+OK\r\n+OK\r\n:1000000\r\n');
});

test('a client that does not read gets one message for each channel, however many there were', async () => {
  await startProxy();
  const raw = await rawConnection();
  raw.send(['SUBSCRIBE', channel]);
  await until(() => raw.text().includes('message'));
  raw.socket.pause();
  const live = () => {
    const { heap, external } = liveMemory();
    return heap + external;
  };
  const before = live();
  for (let n = 0; n < 500_000; n++) {
    proxy.news('edge', connectionUuid, channel);
  }
  // Half a million messages have 40 MB, and take 250 MB in queues.
  const grown = live() - before;
  expect(grown, `${grown} bytes`).toBeLessThan(20_000_000);
  const had = raw.text().length;
  raw.socket.resume();
  raw.send(['PING', 'last']);
  await until(() => raw.text().includes('last'));
  expect(raw.text().length - had).toBeLessThan(8_000_000);
  await until('the last of them, a moment later', () => raw.text().slice(had).includes(channel));
});

test('a tree has a bounded number of parts', async () => {
  await startProxy();
  const one = await client();
  agent.values.set('app|resources-tree|edge_web|999|1.8.3.gz', Buffer.from('a part'));
  expect(await one.get('app|resources-tree|edge_web|999|1.8.3.gz')).toBe('a part');
  await expect(one.get('app|resources-tree|edge_web|1000|1.8.3.gz')).rejects.toThrow(/part 1000 of a resource tree/);
  await expect(one.get('app|resources-tree|edge_web|x|1.8.3.gz')).rejects.toThrow(/part x of a resource tree/);
  expect(asked).toHaveLength(1);
});

test('bytes that are not the protocol of Redis end their connection, and no other', async () => {
  await startProxy();
  const other = await client();
  const raw = await rawConnection();
  raw.socket.write('GET / HTTP/1.1\r\n\r\n');
  await until(() => raw.isClosed());
  expect(raw.text()).toMatch(/^-ERR Protocol error: /);
  expect(await other.ping()).toBe('PONG');
});

test('a restart of Redis ends the connections, and clients come again', async () => {
  await startProxy();
  const first = await client();
  await redis.stop();
  await until(() => !first.isOpen);
  redis = await startRedis({ port });
  clean.push(() => redis.stop());
  expect(await (await client()).ping()).toBe('PONG');
});
