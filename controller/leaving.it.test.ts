import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startCluster } from '../e2e/testbed/index.ts';
import { secrets } from '../lib/kube/index.ts';
import { gitOpsClusters, manifestWorks, placementDecisions, placements } from './resources.ts';
import { eventually } from './testing/fixture.ts';
import { useHub } from './testing/hub.ts';

const hub = useHub(startCluster);

test('a cluster that does not answer holds nobody up and can be forced', async () => {
  const { ns, a, b } = hub;
  await hub.enroll();
  await hub.holdWorks(a);
  await hub.fixture.clusterAvailable(a, 'Unknown');
  await hub.client.delete(gitOpsClusters, { namespace: ns, name: 'fleet' });
  await eventually('the other cluster to be left', async () => (await hub.addOn(b)) === undefined);
  await hub.fixture.conditionIs(
    [ns, 'fleet'],
    'RemovedClustersCleanedUp',
    'False',
    new RegExp(`cluster ${a} must remove ManifestWork argocd-agent-addon-agent \\(the cluster does not report\\)`),
  );
  expect(await hub.secret(`cluster-${a}`)).toBeDefined();
  const annotations = { 'apps.open-cluster-management.io/force-detach': 'true' };
  await hub.client.mergePatch(gitOpsClusters, { namespace: ns, name: 'fleet' }, { metadata: { annotations } });
  await eventually(
    'gone',
    async () => (await hub.client.get(gitOpsClusters, { namespace: ns, name: 'fleet' })) === undefined,
  );
  expect(await hub.secret(`cluster-${a}`)).toBeUndefined();
  for (const part of ['agent', 'argocd', 'crds']) await hub.releaseWork(a, part);
});

test('a cluster that leaves is cleaned up in order, and can come back', async () => {
  const { ns, a, b } = hub;
  await hub.enroll();
  await hub.holdWorks(a);
  const isGoing = async (part: string) => (await hub.work(a, part))?.metadata.deletionTimestamp !== undefined;
  await hub.fixture.placement(ns, 'placement', [b]);
  await hub.client.mergePatch(
    placementDecisions,
    { namespace: ns, name: 'placement-decision-2' },
    { status: { decisions: [] } },
    { subresource: 'status' },
  );
  await eventually('the agent to go', () => isGoing('agent'));
  expect((await hub.addOn(a))?.metadata.annotations).toMatchObject({
    'apps.open-cluster-management.io/detaching': 'true',
  });
  await hub.fixture.conditionIs(
    [ns, 'fleet'],
    'RemovedClustersCleanedUp',
    'False',
    /Cleaning up 1 removed cluster.*argocd-agent-addon-agent/,
  );
  expect(await isGoing('argocd')).toBe(false);
  await hub.releaseWork(a, 'agent');
  await eventually('Argo CD to go', () => isGoing('argocd'));
  expect(await isGoing('crds')).toBe(false);
  expect(await hub.secret(`cluster-${a}`)).toBeDefined();
  await hub.releaseWork(a, 'argocd');
  await eventually('the CRDs work to go', () => isGoing('crds'));
  await hub.releaseWork(a, 'crds');
  await eventually('nothing left', async () => {
    const left = await Promise.all([
      hub.addOn(a),
      hub.secret(`cluster-${a}`),
      hub.secret(`argocd-cluster-client-${a}`),
      hub.secret(`argocd-agent-addon-${a}`),
    ]);
    return left.every((one) => one === undefined);
  });
  await hub.fixture.conditionIs(
    [ns, 'fleet'],
    'RemovedClustersCleanedUp',
    'True',
    /^Cleaned up 1 removed cluster\(s\)$/,
  );
  expect(await hub.work(b, 'agent')).toBeDefined();
  await hub.fixture.placement(ns, 'placement', [a, b]);
  await hub.enrolled(a);
});

test('nobody leaves because a Placement cannot be read', async () => {
  const { ns, a, b } = hub;
  await hub.enroll();
  await hub.client.delete(placements, { namespace: ns, name: 'placement' });
  for (const name of ['placement-decision-1', 'placement-decision-2']) {
    await hub.client.delete(placementDecisions, { namespace: ns, name });
  }
  await hub.fixture.conditionIs([ns, 'fleet'], 'PlacementEvaluated', 'False', /does not exist/);
  await hub.restart();
  await delay(500); // longer than the time after which an unselected cluster would be left
  await hub.idle();
  for (const cluster of [a, b]) expect((await hub.work(cluster, 'agent'))?.metadata.deletionTimestamp).toBeUndefined();
});

test('of two GitOpsClusters that select a cluster the older has it, and hands it over when it goes', async () => {
  const { ns, a, b } = hub;
  await hub.fixture.placement(ns, 'first', [a]);
  await hub.fixture.gitOpsCluster(ns, 'older', 'first');
  await delay(1_100); // creation times count in seconds
  const other = `${ns}-other`;
  await hub.fixture.namespace(other);
  await hub.fixture.placement(other, 'second', [a, b]);
  await hub.fixture.gitOpsCluster(other, 'younger', 'second', { principalServerAddress: 'other.example.com' });
  hub.start();
  await hub.fixture.conditionIs([ns, 'older'], 'Ready', 'True');
  await hub.fixture.conditionIs([other, 'younger'], 'Ready', 'True');
  await hub.fixture.conditionIs(
    [other, 'younger'],
    'PlacementEvaluated',
    'True',
    new RegExp(`${a} already belongs to the older GitOpsCluster ${ns}/older`),
  );
  const serverOf = async (cluster: string) => {
    const params = (await hub.work(cluster, 'agent'))?.spec.workload.manifests.find(
      ({ metadata }) => metadata.name === 'argocd-agent-params',
    );
    return (params as { data?: Record<string, string> } | undefined)?.data?.['agent.server.address'];
  };
  expect(await serverOf(a)).toBe('principal.example.com');
  expect(await serverOf(b)).toBe('other.example.com');
  expect(await hub.secret(`cluster-${a}`, other)).toBeUndefined();
  await hub.client.delete(gitOpsClusters, { namespace: ns, name: 'older' });
  await eventually('the other server', async () => (await serverOf(a)) === 'other.example.com');
  await eventually(
    'the older one gone',
    async () => (await hub.client.get(gitOpsClusters, { namespace: ns, name: 'older' })) === undefined,
  );
  await eventually(
    'the Secret to move',
    async () =>
      (await hub.secret(`cluster-${a}`, other)) !== undefined && (await hub.secret(`cluster-${a}`)) === undefined,
  );
});

test('deleting a GitOpsCluster takes everything along', async () => {
  const { ns, a, b } = hub;
  await hub.enroll();
  await hub.client.delete(gitOpsClusters, { namespace: ns, name: 'fleet' });
  await eventually(
    'gone',
    async () => (await hub.client.get(gitOpsClusters, { namespace: ns, name: 'fleet' })) === undefined,
  );
  expect(await hub.client.list(manifestWorks, { namespace: a })).toEqual([]);
  expect(await hub.addOn(b)).toBeUndefined();
  await eventually('Secrets gone', async () => (await hub.client.list(secrets, { namespace: ns })).length === 0);
});
