import { gzipSync } from 'node:zlib';
import { createClient } from '@redis/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { freePort, type Pair, startPair } from '../pair/index.ts';
import { type Redis, startRedis } from '../redis/index.ts';

// The cache of an agent's Argo CD, as the hub's argocd-server reads it, with a real Redis on both sides.

const tree = (instance: string) => `app|resources-tree|${instance}|1.8.3.gz`;
const channel = (instance: string) => `app|managed-resources|${instance}|1.8.3`;
/** Compressed as Argo CD's are, with bytes that Redis has for itself. */
const value = gzipSync(Buffer.from([0x22, 0, 255, 13, 10, 0x22]), { level: 0 });

let pair: Pair;
let hubRedis: Redis;
let localRedis: Redis;
let proxyPort: number;
const clients: ReturnType<typeof createClient>[] = [];

beforeAll(async () => {
  const [hub, local, proxy] = await Promise.all([freePort(), freePort(), freePort()]);
  proxyPort = proxy;
  [hubRedis, localRedis] = await Promise.all([startRedis({ port: hub }), startRedis({ port: local })]);
  pair = await startPair({
    principal: { redisProxy: proxy, redis: hub },
    agent: { redis: local },
  });
  await Promise.all([pair.principal.says(/Redis proxy serves/), pair.agent.says(/connected to Redis/)]);
});
afterAll(async () => {
  for (const client of clients) {
    if (client.isOpen) {
      client.destroy();
    }
  }
  await pair?.stop();
  await Promise.all([hubRedis?.stop(), localRedis?.stop()]);
});

async function client(port: number) {
  const made = createClient({ RESP: 3, socket: { host: '127.0.0.1', port, reconnectStrategy: false } });
  made.on('error', () => undefined);
  clients.push(made as never);
  await made.connect();
  return made;
}

test("an Application's tree comes from its cluster, news of it too, and the last one stands while the agent is away", async () => {
  const local = await client(localRedis.port);
  const server = await client(proxyPort);
  await local.set(tree('web'), value);
  await server.set('mfst|a', 'a manifest');
  const treeOf = async (name: string) => {
    const found = await server.withTypeMapping({ 36: Buffer }).get(tree(`${pair.name}_${name}`));
    return found === null ? undefined : Buffer.from(found as never);
  };
  // What a busy agent does not answer in time looks empty, and Argo CD asks again.
  await until('the tree is here', async () => (await treeOf('web'))?.equals(value));
  expect(await server.get('mfst|a')).toBe('a manifest');
  expect(await (await client(hubRedis.port)).get('mfst|a')).toBe('a manifest');
  await until('there is no other', async () => ((await treeOf('nothing')) === undefined ? true : undefined));

  const follower = await client(proxyPort);
  let news = 0;
  await follower.subscribe(channel(`${pair.name}_web`), () => news++);
  await local.publish(channel('web'), '');
  await until('the news is here', async () => (news >= 1 ? true : undefined));

  const before = pair.principal.output.length;
  await pair.agent.stop('SIGKILL');
  await pair.principal.says(/An agent is disconnected/, { after: before });
  expect(await treeOf('web')).toEqual(value);
  expect(await treeOf('never-seen')).toBeDefined();

  pair.agent.start();
  await until('what happened meanwhile is news', async () => (news >= 2 ? true : undefined));
  await local.publish(channel('web'), '');
  await until('news come again', async () => (news >= 3 ? true : undefined));
});
