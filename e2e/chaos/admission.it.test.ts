import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { type ArgoObject, application, namespace, pairApplications, prepareCluster } from '../pair/index.ts';
import { borrowCluster, type SharedCluster } from '../testbed/index.ts';
import { isRefused, type RefusedWrites, refuse, refuseNothing } from './admission.ts';

// What a cluster refuses for a while, and that all else goes on.

let cluster: SharedCluster;
beforeAll(async () => {
  cluster = await borrowCluster({ name: 'refusing' });
  await prepareCluster(cluster.client);
});
afterAll(() => cluster?.stop());

let count = 0;
const writes: Readonly<Record<RefusedWrites | 'label', (now: ArgoObject | undefined) => Record<string, unknown>>> = {
  statuses: () => ({ status: { health: { status: `s${count++}` } } }),
  operations: (now) => ({ operation: now?.operation === undefined ? { sync: {} } : null }),
  copies: () => ({ spec: { source: { path: `p${count++}` } } }),
  label: () => ({ metadata: { labels: { count: String(count++) } } }),
};

test.each(['statuses', 'operations', 'copies'] as const)(
  'a cluster refuses %s, and nothing else, until that ends',
  async (what) => {
    const { client } = cluster;
    const isDenied = async (kind: RefusedWrites | 'label') => {
      const key = { namespace, name: what };
      try {
        await client.mergePatch(pairApplications, key, writes[kind](await client.get(pairApplications, key)));
        return false;
      } catch (error) {
        expect(isRefused(error)).toBe(true);
        return true;
      }
    };
    await client.create(pairApplications, application({ name: what, namespace }));
    const admit = await refuse(client, what, [namespace]);
    await until('it is refused', () => isDenied(what));
    for (const other of ['statuses', 'operations', 'copies', 'label'] as const) {
      expect(await isDenied(other), other).toBe(other === what);
    }
    await admit();
    await until('it is admitted', async () => !(await isDenied(what)));
    await refuse(client, what, ['elsewhere']);
    expect(await isDenied(what)).toBe(false);
    await refuseNothing(client);
    await client.delete(pairApplications, { namespace, name: what });
  },
);
