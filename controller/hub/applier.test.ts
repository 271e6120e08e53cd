import { afterEach, expect, test, vi } from 'vitest';
import { type ConfigMap, configMaps, type KubeClient } from '../../lib/kube/index.ts';
import { Applier } from './applier.ts';

afterEach(() => vi.restoreAllMocks());

const map = (value: string, resourceVersion: string): ConfigMap => ({
  metadata: { namespace: 'ns', name: 'x', uid: 'u', resourceVersion },
  data: { value },
});

/** An applier whose API server has `live.object`. */
function setUp() {
  const live = { object: map('2', '1001') as ConfigMap | undefined, gets: 0 };
  const client = {
    get: async () => {
      live.gets++;
      return structuredClone(live.object);
    },
  } as unknown as KubeClient;
  const applier = new Applier(client);
  const current = async (cached: ConfigMap | undefined) =>
    (await applier.current(configMaps, { namespace: 'ns', name: 'x' }, cached))?.data?.value;
  const pass = (ms: number) => {
    const later = performance.now() + ms;
    vi.spyOn(performance, 'now').mockImplementation(() => later);
  };
  return { applier, live, current, pass };
}

test('what was just written counts more than the cache, without a request', async () => {
  const { applier, live, current } = setUp();
  applier.wrote(configMaps, map('2', '1001'));
  expect(await current(map('1', '1000'))).toBe('2');
  expect(live.gets).toBe(0);
});

test('what the cache does not get for long is read: the API server may have been restored from a backup', async () => {
  const { applier, live, current, pass } = setUp();
  applier.wrote(configMaps, map('2', '1001'));
  live.object = map('1', '500');
  pass(60_001);
  expect(await current(map('1', '500'))).toBe('1');
  expect(await current(map('1', '500'))).toBe('1');
  expect(live.gets, 'then the cache is believed again').toBe(1);
});

test('a cache that is behind for long is not believed', async () => {
  const { applier, live, current, pass } = setUp();
  applier.wrote(configMaps, map('2', '1001'));
  pass(60_001);
  expect(await current(map('1', '1000'))).toBe('2');
  expect(await current(map('1', '1000'))).toBe('2');
  expect(live.gets, 'one request a minute').toBe(1);
});
