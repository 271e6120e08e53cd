import { expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { redisResponse } from '../../lib/live/index.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { dataOf, eventTypes, messageEvent, principalSource, targets, type WireEvent } from '../../lib/wire/index.ts';
import { RedisRequests } from './redis.ts';

const channel = 'app|managed-resources|edge_web|1.8.3';

function start(stored: Readonly<Record<string, string>> = {}, keyPrefix = '') {
  const listeners = new Map<string, () => void>();
  const followed: PromiseWithResolvers<void>[] = [];
  const ended: string[] = [];
  const failures: string[] = [];
  const requests = new RedisRequests({
    link: {
      get: async (key) => (stored[key] === undefined ? undefined : Buffer.from(stored[key])),
      subscribe: (name, listener) => {
        const state = Promise.withResolvers<void>();
        followed.push(state);
        listeners.set(name, listener);
        return { followed: state.promise, end: () => ended.push(name) };
      },
    },
    hasSameKeys: false,
    keyPrefix,
    metrics: { request: () => undefined, failed: (command) => failures.push(command) },
    logger: createLogger({ level: 'fatal' }),
  });
  const answers: WireEvent[] = [];
  const subscribe = (name: string, uuid = 'request') =>
    requests.handle(
      messageEvent(
        targets.redis,
        eventTypes.redisRequest,
        { uuid, connectionUuid: 'connection', body: { subscribe: { channel: name } } },
        { source: principalSource },
      ),
      { answer: (event: WireEvent) => answers.push(event) } as never,
    );
  const get = async (key: string) => {
    const body = { get: { key } };
    const request = { uuid: 'request', connectionUuid: 'connection', body };
    await requests.handle(messageEvent(targets.redis, eventTypes.redisRequest, request, { source: principalSource }), {
      answer: (event: WireEvent) => answers.push(event),
    } as never);
    return answers.map((event) => dataOf(event, redisResponse).body.get?.bytes?.toString()).at(-1);
  };
  return {
    get,
    requests,
    listeners,
    followed,
    ended,
    failures,
    subscribe,
    said: () => answers.map((event) => dataOf(event, redisResponse).body),
  };
}

test('the principal gets the confirmation of a subscription after Redis has confirmed it, not earlier', async () => {
  const { followed, subscribe, said, listeners } = start();
  const first = subscribe(channel, 'one');
  const second = subscribe(channel, 'two');
  await until(() => followed.length === 1);
  expect([...listeners.keys()]).toEqual(['app|managed-resources|web|1.8.3']);
  expect(said()).toEqual([]);
  followed[0]?.resolve();
  await Promise.all([first, second]);
  expect(said()).toEqual([{ subscribeResponse: { error: '' } }, { subscribeResponse: { error: '' } }]);
  listeners.get('app|managed-resources|web|1.8.3')?.();
  expect(said()[2]).toEqual({ pushFromSubscribe: { channelName: channel } });
});

test('a channel that Redis refuses is not followed, and can be asked for again', async () => {
  const { followed, subscribe, said, ended, failures } = start();
  const refused = subscribe(channel);
  followed[0]?.reject(new Error('NOPERM'));
  await refused;
  expect(said()).toEqual([{ subscribeResponse: { error: 'NOPERM' } }]);
  expect([ended.length, failures]).toEqual([1, ['subscribe']]);
  const again = subscribe(channel);
  followed[1]?.resolve();
  await again;
  expect(said()[1]).toEqual({ subscribeResponse: { error: '' } });
});

test('a new connection subscribes again, also when Redis had not confirmed yet', async () => {
  const { requests, followed, subscribe, ended } = start();
  const late = subscribe(channel);
  requests.disconnected();
  expect(ended).toHaveLength(1);
  const fresh = subscribe(channel);
  followed[0]?.reject(new Error('the connection was closed'));
  followed[1]?.resolve();
  await Promise.all([late, fresh]);
  const again = subscribe(channel);
  await again;
  expect(followed).toHaveLength(2);
});

test('a channel of anything but an Application is refused', async () => {
  const { subscribe, said, followed } = start();
  await subscribe('new-revoked-token');
  expect(said()).toEqual([
    { subscribeResponse: { error: expect.stringContaining('this key may not be read: new-revoked-token') } },
  ]);
  expect(followed).toEqual([]);
});

test("a value is under Argo CD's prefix, or without one if that Argo CD knows none; channels have none", async () => {
  const key = (name: string) => `app|resources-tree|${name}|1.8.3.gz`;
  const stored = { [`fleet:${key('web')}`]: 'new', [key('web')]: 'old', [key('shop')]: 'plain' };
  const { get, subscribe, followed, listeners } = start(stored, 'fleet:');
  expect(await get(key('edge_web'))).toBe('new');
  expect(await get(key('edge_shop'))).toBe('plain');
  expect(await get(key('edge_none'))).toBeUndefined();
  void subscribe(channel);
  await until(() => followed.length === 1);
  expect([...listeners.keys()]).toEqual(['app|managed-resources|web|1.8.3']);
});
