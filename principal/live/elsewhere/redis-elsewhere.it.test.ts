import { createClient } from '@redis/client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { freePort } from '../../../e2e/pair/index.ts';
import { type Redis, startRedis } from '../../../e2e/redis/index.ts';
import { until } from '../../../lib/base/testing.ts';
import { createLogger } from '../../../lib/ops/index.ts';
import { eventTypes, messageEvent, targets, type WireEvent } from '../../../lib/wire/index.ts';
import { applicationOf } from '../redis/keys.ts';
import type { RedisProxy } from '../redis/proxy.ts';
import { HeldAgents, makeCallers, type PlayedReplica, playReplica } from '../testing/replicas.ts';

// Argo CD's server is connected to the Redis proxy of `near`; the agent `edge` is held by another replica.

const tree = 'app|resources-tree|edge_web|1.8.3';
const channel = 'app|managed-resources|edge_web|1.8.3';
const clean: (() => unknown)[] = [];

let redis: Redis;
let redisPort: number;
let held: HeldAgents;
let near: PlayedReplica;
let far: PlayedReplica;
let third: PlayedReplica;
let proxy: RedisProxy;
/** What agents were asked: the replica that asked, the command, and the client's connection. */
const asked: { at: string; command: string; connection: string }[] = [];
const values = new Map<string, Buffer>();

interface Command {
  readonly uuid: string;
  readonly connectionUuid: string;
  readonly body: {
    readonly get?: { readonly key: string };
    readonly subscribe?: { readonly channel: string };
    readonly ping?: object;
  };
}

function answer(at: PlayedReplica, event: WireEvent): void {
  const { connectionUuid, body } = JSON.parse(Buffer.from(event.data).toString()) as Command;
  const name = Object.keys(body)[0] ?? '';
  asked.push({ at: at.identity, command: name, connection: connectionUuid });
  const value = values.get(body.get?.key ?? '');
  const answers: Record<string, object> = {
    get: { get: { bytes: value?.toString('base64') ?? '', cacheHit: value !== undefined, error: '' } },
    subscribe: { subscribeResponse: { error: '' } },
    ping: { pong: {} },
  };
  tell(at, { uuid: event.eventId, connectionUuid, body: answers[name] ?? {} }, event.eventId);
}

function tell(at: PlayedReplica, payload: object, eventId = 'news'): void {
  at.live.answered('edge', messageEvent(targets.redis, eventTypes.redisResponse, payload, { source: '' }, { eventId }));
}

/** The agent says that a channel has a message. */
const news = (at: PlayedReplica, connectionUuid: string) =>
  tell(at, { uuid: 'news', connectionUuid, body: { pushFromSubscribe: { channelName: channel } } });

function settle(replica: PlayedReplica): void {
  for (const other of [near, far, third]) {
    if (other.connected.delete('edge')) {
      other.live.disconnected('edge');
    }
  }
  replica.connected.add('edge');
  held.hold('edge', replica.identity);
  replica.live.connected('edge');
}

beforeEach(async () => {
  asked.length = 0;
  values.clear();
  redisPort = await freePort();
  redis = await startRedis({ port: redisPort });
  clean.push(() => redis.stop());
  held = new HeldAgents();
  const callers = await makeCallers();
  const played = await Promise.all(['near', 'far', 'third'].map((name) => playReplica(held, name, callers)));
  for (const replica of played) {
    clean.push(() => replica.stop());
    replica.onEvent = (_agent, event) => answer(replica, event);
  }
  [near, far, third] = played as [PlayedReplica, PlayedReplica, PlayedReplica];
  const kept = new Map<string, Buffer>();
  proxy = await near.live.serveRedis({
    host: '127.0.0.1',
    port: 0,
    tls: undefined,
    upstream: { host: '127.0.0.1', port: redisPort, tls: () => undefined },
    link: {
      get: async (key: string) => kept.get(key),
      set: async (key: string, value: Uint8Array) => void kept.set(key, Buffer.from(value)),
      delete: async (key: string) => void kept.delete(key),
      sizes: async function* () {
        // None is kept at the start.
      },
      onReady: () => undefined,
    } as never,
    agentOf: (key) => applicationOf(key)?.namespace || undefined,
    keyPrefix: '',
    metrics: { request: () => undefined, failed: () => undefined },
    logger: createLogger({ level: 'fatal' }),
  });
  clean.push(() => proxy.close());
  settle(far);
});
afterEach(async () => {
  for (const step of clean.splice(0).reverse()) {
    await step();
  }
});

async function client() {
  const made = createClient({ socket: { host: '127.0.0.1', port: proxy.port, reconnectStrategy: false } });
  made.on('error', () => undefined);
  clean.push(() => made.isOpen && made.destroy());
  await made.connect();
  return made;
}

test('a value comes from the agent at another replica; while that is away it is the last one', async () => {
  const reader = await client();
  values.set(tree, Buffer.from('x'.repeat(2_000_000)));
  expect((await reader.get(tree))?.length).toBe(2_000_000);
  expect(asked).toMatchObject([{ at: 'far', command: 'get' }]);
  values.set(tree, Buffer.from('the tree'));
  expect(await reader.get(tree)).toBe('the tree');
  expect(await reader.get('app|resources-tree|edge_none|1.8.3')).toBeNull();

  settle(third);
  values.set(tree, Buffer.from('of the third'));
  expect(await reader.get(tree)).toBe('of the third');
  await third.port.close();
  expect(await reader.get(tree)).toBe('of the third');
});

test('messages on a channel come from whichever replica has the agent, and from none twice', async () => {
  const reader = await client();
  const heard: string[] = [];
  await reader.subscribe(channel, (_message, of) => heard.push(of));
  // One message stands for those before the agent has agreed.
  await until(() => heard.length === 1);
  const connection = asked[0]?.connection ?? '';
  expect(asked).toMatchObject([{ at: 'far', command: 'subscribe' }]);
  news(far, connection);
  await until(() => heard.length === 2);
  news(far, 'nobody');

  // The agent comes back to the same replica: it has forgotten the subscription.
  far.live.disconnected('edge');
  far.live.connected('edge');
  await until(() => heard.length === 3);
  expect(asked.filter(({ at }) => at === 'far')).toHaveLength(2);

  // It moves to another one, then to this one.
  settle(third);
  await until(() => heard.length === 4);
  news(third, connection);
  await until(() => heard.length === 5);
  settle(near);
  await until(() => heard.length === 6);
  news(near, connection);
  await until(() => heard.length === 7);
  expect(asked.every((one) => one.connection === connection)).toBe(true);
});

test('when the replica of the agent dies, its next holder is asked for the channel', async () => {
  const reader = await client();
  const heard: string[] = [];
  await reader.subscribe(channel, (_message, of) => heard.push(of));
  await until(() => heard.length === 1);
  await far.port.close();
  held.remove('far');
  settle(third);
  await until(() => heard.length >= 2);
  expect(asked.at(-1)).toMatchObject({ at: 'third', command: 'subscribe' });
});
