import { connect } from 'node:net';
import { createClient } from '@redis/client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { freePort, type Redis, startRedis } from '../../../e2e/pair/index.ts';
import { until } from '../../../lib/base/testing.ts';
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

test('what agents have comes from them, everything else from Redis, in the order of the questions', async () => {
  await startProxy();
  const one = await client();
  // Redis has to be asked for the first of these.
  expect(await one.get('app|resources-tree|edge_first|1.8.3.gz')).toBeNull();
  asked.length = 0;
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
  ].map((question, index) => question.then((answer: unknown) => answers.push([index, String(answer).slice(0, 8)])));
  await until(() => asked.length === 2 && answers.length > 0);
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
  ]);
});

test.each([2, 3] as const)('news of an agent come to who follows its channel (RESP%d)', async (RESP) => {
  await startProxy();
  const reader = await client({ RESP });
  const heard: string[] = [];
  await reader.subscribe(channel, (_message, of) => heard.push(of));
  expect(asked).toEqual([`edge subscribe ${channel} 36`]);
  proxy.news('other', connectionUuid, channel);
  proxy.news('edge', connectionUuid, 'app|managed-resources|edge_other|1.8.3');
  proxy.news('edge', 'nobody', channel);
  proxy.news('edge', connectionUuid, channel);
  await until(() => heard.length === 1);
  proxy.agentConnected('edge');
  await until(() => heard.length === 2);
  expect(heard).toEqual([channel, channel]);
});

test('channels of Redis itself are followed as ever', async () => {
  await startProxy();
  const [reader, writer] = [await client(), await client()];
  const heard: string[] = [];
  await reader.subscribe('new-revoked-token', (message) => heard.push(message));
  await writer.publish('new-revoked-token', 'a token');
  await until(() => heard.length === 1);
  expect(heard).toEqual(['a token']);
});

test('who has not logged in to Redis gets nothing of the agents either', async () => {
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

test('what is not the protocol of Redis ends the connection, and no other', async () => {
  await startProxy();
  const other = await client();
  const raw = connect({ host: '127.0.0.1', port: proxy.port });
  const ended = new Promise((resolve) => raw.on('close', resolve));
  raw.on('error', () => undefined);
  raw.write('GET / HTTP/1.1\r\n\r\n');
  await ended;
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
