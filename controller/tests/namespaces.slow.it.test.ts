import { expect, test } from 'vitest';
import { startCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import { isNotFound, type KubeClient, namespaces } from '../../lib/kube/index.ts';
import { managedClusters } from '../hub/index.ts';
import { useHub } from '../testing/hub.ts';

const hub = useHub(startCluster);

/** A client that counts the writes of others' methods, and those that fail because something does not exist. */
function counting(client: KubeClient) {
  const counts = { writes: 0, notFound: 0 };
  const writes = new Set<PropertyKey>(['apply', 'create', 'patch', 'mergePatch', 'replace']);
  const counted = new Proxy(client, {
    get: (target, property) => {
      const value = Reflect.get(target, property, target);
      if (typeof value !== 'function') {
        return value;
      }
      return async (...args: unknown[]) => {
        counts.writes += writes.has(property) ? 1 : 0;
        try {
          return await value.apply(target, args);
        } catch (error) {
          counts.notFound += writes.has(property) && isNotFound(error) ? 1 : 0;
          throw error;
        }
      };
    },
  });
  return { client: counted, counts };
}

test('clusters that are accepted before their namespaces exist get everything at once, without a write in vain', async () => {
  const clusters = Array.from({ length: 50 }, (_, index) => `early-${index}`);
  await Promise.all(clusters.map((name) => hub.fixture.put(managedClusters, { metadata: { name } })));
  await hub.fixture.placement(hub.ns, 'placement', clusters);
  await hub.fixture.gitOpsCluster(hub.ns, 'fleet', 'placement');
  const { client, counts } = counting(hub.client);
  hub.start({ client });
  await hub.fixture.conditionIs(
    [hub.ns, 'fleet'],
    'PlacementEvaluated',
    'True',
    /early-\d+ is skipped: its namespace early-\d+ does not exist yet; .*; 47 more are skipped/,
  );
  await hub.idle();
  await Promise.all(clusters.map((name) => hub.client.create(namespaces, { metadata: { name } })));
  for (const cluster of clusters) {
    await hub.enrolled(cluster);
  }
  await hub.fixture.conditionIs([hub.ns, 'fleet'], 'PlacementEvaluated', 'True', /^Evaluated 50 managed clusters$/);
  await hub.idle();
  console.info(`${counts.writes} writes, ${counts.notFound} of them answered with 404`);
  expect(counts.notFound).toBe(0);
  for (const name of clusters) {
    await hub.client.delete(managedClusters, { name });
  }
  await until('no ManagedCluster', async () => (await hub.client.list(managedClusters)).length <= 2);
});
