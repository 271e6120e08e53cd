import { expect, test } from 'vitest';
import { wellKnown } from '../../lib/base/index.ts';
import { Informer, type InformerHandler, type KubeClient, type Lease, leases } from '../../lib/kube/index.ts';
import { agentLeaseName } from '../sessions/connection-records.ts';
import { HoldStore } from './hold-store.ts';

const lease = (holderIdentity: string, resourceVersion: string): Lease => ({
  metadata: {
    namespace: 'ns',
    name: agentLeaseName('a'),
    uid: 'u',
    resourceVersion,
    labels: { [wellKnown.agentNameLabel]: 'a' },
  },
  spec: { holderIdentity },
});

/** A store whose cache has what it is told to. */
function setUp() {
  let cached: Lease | undefined;
  const informer = new Informer<Lease>({ client: {} as KubeClient, type: leases });
  let updated: InformerHandler<Lease>['updated'];
  informer.get = () => cached;
  informer.subscribe = (handler) => {
    updated = handler.updated;
    return () => undefined;
  };
  const client = { replace: async () => lease('written', '1001') } as unknown as KubeClient;
  const store = new HoldStore({ client, namespace: 'ns', informer, seen: () => undefined, wrote: () => undefined });
  store.follow();
  const show = (now: Lease, gap?: 'restore') => {
    const old = cached;
    cached = now;
    if (old !== undefined) {
      updated?.(old, now, gap);
    }
  };
  return { store, show };
}

test('what was written counts until the cache has it', async () => {
  const { store, show } = setUp();
  show(lease('seen', '1000'));
  await store.write('a', lease('written', '1000'));
  expect(store.newest('a')?.spec?.holderIdentity).toBe('written');
  show(lease('later', '1002'));
  expect(store.newest('a')?.spec?.holderIdentity).toBe('later');
});

test('what was written before the API server was restored from a backup does not count', async () => {
  const { store, show } = setUp();
  show(lease('seen', '1000'));
  await store.write('a', lease('written', '1000'));
  show(lease('restored', '500'));
  expect(store.newest('a')?.spec?.holderIdentity).toBe('restored');
});

test('nor when what the restore brought is newer than what the cache had', async () => {
  const { store, show } = setUp();
  show(lease('seen', '900'));
  await store.write('a', lease('written', '900'));
  show(lease('restored', '950'), 'restore');
  expect(store.newest('a')?.spec?.holderIdentity).toBe('restored');
});
