import { gunzipSync, gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { eventTypes, messageEvent, targets } from '../../../lib/wire/index.ts';
import { AgentCache } from './agent-cache.ts';
import { checkValue } from './value-check.ts';

const key = 'app|managed-resources|edge_web|1.8.3.gz';
const mib = 1024 * 1024;
const signal = new AbortController().signal;

const check = (value: Buffer, name = key) =>
  checkValue(name, value, signal).then(
    (found) => (found ? 'was found' : 'passes'),
    (error: Error) => error.message,
  );
const list = (count: number, item: string) => Buffer.from(`[${Array.from({ length: count }, () => item).join(',')}]`);
const node = {
  version: 'v1',
  kind: 'Pod',
  namespace: 'shop',
  name: 'web-x',
  uid: 'u',
  parentRefs: [{ group: 'apps', kind: 'ReplicaSet', namespace: 'shop', name: 'web', uid: 'v' }],
  info: [{ name: 'Status Reason', value: 'Running' }],
  networkingInfo: { labels: { app: 'web', escaped: '"\\,[' } },
  images: ['a', 'b'],
  health: { status: 'Healthy' },
};

/** The cache of agent edge, of which every value is this one. */
function cacheWith(value: () => Buffer, isAutonomous = false) {
  const lines: object[] = [];
  const kept: string[] = [];
  const cache = new AgentCache({
    ask: async () => {
      const get = { bytes: value().toString('base64'), cacheHit: true, error: '' };
      const payload = { uuid: 'u', connectionUuid: 'c', body: { get } };
      return messageEvent(targets.redis, eventTypes.redisResponse, payload, { source: '' }, { eventId: 'u' });
    },
    isAutonomous: () => isAutonomous,
    link: {
      get: async () => undefined,
      set: async (name: string) => void kept.push(name),
      delete: async () => undefined,
      sizes: () => [],
      onReady: () => undefined,
    } as never,
    metrics: { request: () => undefined, failed: () => undefined },
    logger: { warn: (fields: object) => void lines.push(fields), debug: () => undefined } as never,
  });
  return { cache, lines, kept };
}

test.each<[string, Buffer]>([
  [
    'of a large Application',
    gzipSync(JSON.stringify(Array.from({ length: 10_000 }, (_, id) => ({ ...node, name: `web-${id}` })))),
  ],
  ['with long texts', gzipSync(JSON.stringify(['{"a":[1,2]},'.repeat(60_000), '\\'.repeat(1_000)]))],
  ['without anything', gzipSync('[]\n')],
])('a value %s passes', async (_, value) => {
  expect(await check(value)).toBe('passes');
});

test.each<[string, Buffer, string]>([
  ['of a bomb', gzipSync(Buffer.alloc(20 * mib, ' ')), 'more than 128 times'],
  ['of too many values', gzipSync(list(600_000, '{}')), 'more than 524288 JSON values'],
  ['nested too deep', gzipSync('['.repeat(2_000)), 'nested more than 1000 deep'],
  ['that is no gzip', Buffer.from('[]'), 'damaged'],
  ['that ends early', gzipSync('[]').subarray(0, 15), 'damaged'],
])('a value %s is refused', async (_, value, why) => {
  expect(await check(value)).toContain(why);
});

test('a value that is not compressed has the limit of values too', async () => {
  expect(await check(list(600_000, '{}'), 'app|resources-tree|edge_web|1.8.3')).toContain('JSON values');
});

test('a value of more than 64 MiB is refused, and never held', async () => {
  // Random bytes do not compress.
  const bytes = Buffer.from(Array.from({ length: mib }, () => 97 + Math.floor(Math.random() * 26)));
  const value = gzipSync(Buffer.concat(Array.from({ length: 70 }, () => bytes)), { level: 1 });
  const before = process.memoryUsage();
  let most = 0;
  const meter = setInterval(() => {
    const { arrayBuffers, external } = process.memoryUsage();
    most = Math.max(most, arrayBuffers + external - before.arrayBuffers - before.external);
  }, 5);
  expect(await check(value)).toContain(`more than ${64 * mib} bytes`);
  clearInterval(meter);
  expect(most).toBeLessThan(48 * mib);
});

test('what is refused is logged with agent and key, is not kept, and is an error to Argo CD', async () => {
  let value = gzipSync(list(600_000, '{}'));
  const { cache, lines, kept } = cacheWith(() => value);
  await expect(cache.get('edge', 'c', key, signal)).rejects.toThrow('more than 524288 JSON values');
  expect(lines).toMatchObject([{ agent: 'edge', key }]);
  expect(kept).toEqual([]);
  value = gzipSync('[{}]');
  expect(await cache.get('edge', 'c', key, signal)).toEqual(value);
  expect(kept).toHaveLength(1);
});

test('one value of an agent is unpacked and written anew at a time', async () => {
  const child = '{"group":"argoproj.io","version":"v1alpha1","kind":"Application","namespace":"argocd","name":';
  const children = Array.from({ length: 40_000 }, () => `${child}"${Math.random()}"}`);
  let value = gzipSync(`[${children.join(',')}]`);
  const { cache } = cacheWith(() => value, true);
  const ended: string[] = [];
  const get = (what: string) => cache.get('edge', 'c', key, signal).finally(() => ended.push(what));
  const large = get('large');
  value = gzipSync('[]');
  const [served] = await Promise.all([large, get('small')]);
  expect(gunzipSync(served ?? expect.unreachable('no value')).toString()).toContain('"namespace":"edge"');
  expect(ended).toEqual(['large', 'small']);
});
