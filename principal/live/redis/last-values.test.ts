import { expect, test } from 'vitest';
import { until } from '../../../lib/base/testing.ts';
import { createLogger } from '../../../lib/ops/index.ts';
import { LastValues } from './last-values.ts';

const mebi = 1024 * 1024;

/** Values in a Redis of the test, which survives the principal. */
function start(redis = new Map<string, Buffer>()) {
  let ready: () => void = () => undefined;
  let loads = 0;
  const link = {
    get: async (key: string) => redis.get(key),
    set: async (key: string, value: Buffer) => void redis.set(key, value),
    delete: async (key: string) => void redis.delete(key),
    async *sizes(prefix: string): AsyncGenerator<[string, number]> {
      for (const [key, value] of [...redis]) {
        if (key.startsWith(prefix)) {
          yield [key, value.length];
        }
      }
      loads++;
    },
    onReady: (listener: () => void) => {
      ready = listener;
    },
  };
  const values = new LastValues(link, createLogger({ level: 'fatal' }));
  const bytesOf = (agent: string) =>
    [...redis].filter(([key]) => key.includes(`|${agent}|`)).reduce((sum, [, value]) => sum + value.length, 0);
  return { values, redis, bytesOf, ready: () => ready(), loads: () => loads };
}

test('a value is kept, and a newer one takes its place', async () => {
  const { values } = start();
  values.keep('a', 'key', Buffer.from('1'));
  values.keep('a', 'key', Buffer.from('2'));
  expect(String(await values.get('a', 'key'))).toBe('2');
  expect(await values.get('b', 'key')).toBeUndefined();
});

test('a value that is too large is not kept, and no older one stands for it', async () => {
  const { values } = start();
  values.keep('a', 'key', Buffer.alloc(8 * mebi));
  expect((await values.get('a', 'key'))?.length).toBe(8 * mebi);
  values.keep('a', 'key', Buffer.alloc(8 * mebi + 1));
  expect(await values.get('a', 'key')).toBeUndefined();
});

test('the values of one agent have a limit; its oldest make room, and those of others stay', async () => {
  const { values, bytesOf } = start();
  values.keep('b', 'key', Buffer.alloc(mebi));
  const value = Buffer.alloc(mebi);
  for (let n = 1; n <= 300; n++) {
    values.keep('a', `key${n}`, value);
    // This one is looked at all the time.
    values.keep('a', 'key1', value);
  }
  expect(bytesOf('a')).toBeGreaterThan(120 * mebi);
  expect(bytesOf('a')).toBeLessThanOrEqual(128 * mebi);
  expect(bytesOf('b')).toBe(mebi);
  expect(await values.get('a', 'key2')).toBeUndefined();
  expect(await values.get('a', 'key1')).toBeDefined();
  expect(await values.get('a', 'key300')).toBeDefined();
});

test('many small values cost their overhead', () => {
  const { values, redis } = start();
  for (let n = 1; n <= 135_000; n++) {
    values.keep('a', `key${n}`, Buffer.from('x'));
  }
  expect(redis.size).toBeLessThan(132_000);
});

test('values that an earlier process kept count, and those that Redis has lost do not', async () => {
  const before = start();
  const value = Buffer.alloc(mebi);
  for (let n = 1; n <= 100; n++) {
    before.values.keep('a', `old${n}`, value);
  }
  const after = start(before.redis);
  await until(() => after.loads() === 1);
  for (let n = 1; n <= 100; n++) {
    after.values.keep('a', `new${n}`, value);
  }
  expect(after.bytesOf('a')).toBeLessThanOrEqual(128 * mebi);
  after.redis.clear();
  after.ready();
  await until(() => after.loads() === 2);
  for (let n = 1; n <= 120; n++) {
    after.values.keep('a', `newest${n}`, value);
  }
  expect(after.redis.size).toBe(120);
});
