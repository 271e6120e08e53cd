import { expect, test } from 'vitest';
import { borrowCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import type { FleetReporter } from '../../lib/ops/index.ts';
import { managedClusters } from '../hub/index.ts';
import { useHub, workNames } from '../testing/hub.ts';

const hub = useHub(borrowCluster);

test('who follows the fleet learns which cluster is enrolled, fails, recovers and leaves', async () => {
  const { ns, a, b } = hub;
  let aheadMs = 0;
  const seen: Record<string, unknown>[] = [];
  const report: FleetReporter['report'] = (type, subject, data) => void seen.push({ type, subject, ...data });
  await hub.enroll({ clock: () => new Date(Date.now() + aheadMs), fleetEvents: { report } });
  const about = (cluster: string) => ({
    subject: `clusters/${cluster}`,
    cluster,
    gitOpsCluster: `${ns}/fleet`,
  });
  const isReported = (type: string, cluster: string) =>
    until(`${type} of ${cluster}`, async () => seen.find((one) => one.type === type && one.cluster === cluster), {
      details: () => JSON.stringify(seen),
    });
  for (const cluster of [a, b]) {
    for (const name of workNames) {
      await hub.fixture.reportWork(cluster, name);
    }
    expect(await isReported('cluster-enrolled', cluster)).toEqual({ type: 'cluster-enrolled', ...about(cluster) });
    await hub.fixture.agentConnected(ns, cluster);
  }
  await hub.fixture.conditionIs([ns, 'fleet'], 'ClustersReady', 'True');

  await hub.fixture.agentConnected(ns, b, false);
  await hub.fixture.conditionIs([ns, 'fleet'], 'ClustersReady', 'False');
  aheadMs = 11 * 60_000;
  await hub.client.mergePatch(managedClusters, { name: b }, { metadata: { labels: { looked: 'at' } } });
  expect(await isReported('cluster-failing', b)).toMatchObject({ ...about(b), step: 'AgentConnected' });
  await hub.fixture.agentConnected(ns, b);
  expect(await isReported('cluster-recovered', b)).toMatchObject({ ...about(b), step: 'AgentConnected' });

  await hub.unselect(b);
  await hub.fixture.endCleanUp(b);
  expect(await isReported('cluster-left', b)).toEqual({ type: 'cluster-left', ...about(b) });
  expect(seen.map(({ type, cluster }) => `${type} ${cluster}`)).toEqual([
    `cluster-enrolled ${a}`,
    `cluster-enrolled ${b}`,
    `cluster-failing ${b}`,
    `cluster-recovered ${b}`,
    `cluster-left ${b}`,
  ]);
});
