import { expect, test } from 'vitest';
import { borrowCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import { findCondition, secrets } from '../../lib/kube/index.ts';
import { managedClusters } from '../hub/index.ts';
import { useHub } from '../testing/hub.ts';

const hub = useHub(borrowCluster);
const clusterSet = 'cluster.open-cluster-management.io/clusterset';

const metadataOf = async (cluster: string) => (await hub.secret(`cluster-${cluster}`))?.metadata;
const labelled = (labels: Record<string, string | null>) =>
  hub.client.mergePatch(managedClusters, { name: hub.a }, { metadata: { labels } });
const claimed = (clusterClaims: { name: string; value: string }[]) =>
  hub.client.mergePatch(managedClusters, { name: hub.a }, { status: { clusterClaims } }, { subresource: 'status' });
const condition = async () => findCondition((await hub.addOn(hub.a))?.status?.conditions, 'ClusterLabelsCopied');

/** Waits until the Secret of the first cluster has exactly these of the labels that a ManagedCluster can give it. */
async function has(labels: Record<string, string>): Promise<void> {
  const own = /^(argocd|argocd-agent|app|apps|gitopscluster)\.|^placement-name$/;
  let seen: Record<string, string> = {};
  try {
    await until('the labels', async () => {
      const all = (await metadataOf(hub.a))?.labels ?? {};
      seen = Object.fromEntries(Object.entries(all).filter(([name]) => !own.test(name)));
      return JSON.stringify(Object.entries(seen).sort()) === JSON.stringify(Object.entries(labels).sort());
    });
  } catch {
    expect(seen).toEqual(labels);
  }
}

test('labels and claims of a ManagedCluster follow to its cluster Secret, and leave it', async () => {
  const { a, b, ns } = hub;
  const clusterLabels = {
    labels: ['env', 'tier', 'topology.kubernetes.io/*', 'a*'],
    claims: ['platform.open-cluster-management.io', 'kubeversion.*'],
  };
  await hub.enroll({}, { clusterLabels });
  const own = (await metadataOf(a))?.labels;
  await hub.idle();
  const before = await metadataOf(b);

  await labelled({ env: 'test', region: 'eu', 'topology.kubernetes.io/zone': 'eu-1' });
  await has({ env: 'test', 'topology.kubernetes.io/zone': 'eu-1' });
  await hub.idle();
  const writes = hub.controller.writes;
  await labelled({ env: 'prod', 'topology.kubernetes.io/zone': null });
  await has({ env: 'prod' });
  await labelled({ region: 'us' });
  await hub.idle();
  expect(hub.controller.writes, 'one write for the change, none for a label that is not selected').toBe(writes + 1);

  // Labels by which Argo CD and the controller recognise the Secret.
  const stolen = { 'argocd.argoproj.io/secret-type': 'repository', 'app.kubernetes.io/managed-by': 'me' };
  await labelled({ ...stolen, 'app.kubernetes.io/instance': 'somebodys-application' });
  await hub.idle();
  expect((await metadataOf(a))?.labels).toEqual({ ...own, env: 'prod' });

  // Labels of somebody else.
  const key = { namespace: ns, name: `cluster-${a}` };
  await hub.client.mergePatch(secrets, key, { metadata: { labels: { owner: 'me', tier: 'silver', env: 'mine' } } });
  await has({ env: 'prod', owner: 'me', tier: 'silver' });
  await labelled({ tier: 'silver' });
  await hub.idle();
  await labelled({ tier: 'gold', owner: 'them' });
  await until('the refusal', async () =>
    /label tier: somebody else .* tier=silver$/.test((await condition())?.message ?? ''),
  );
  await hub.client.mergePatch(secrets, key, { metadata: { labels: { tier: null } } });
  await has({ env: 'prod', owner: 'me', tier: 'gold' });
  await until('no refusal', async () => (await condition()) === undefined);

  await claimed([
    { name: 'kubeversion.open-cluster-management.io', value: 'v1.30.1+k3s1' },
    { name: 'platform.open-cluster-management.io', value: 'AWS' },
    { name: 'env', value: 'claimed' },
  ]);
  await has({ env: 'prod', owner: 'me', tier: 'gold', 'platform.open-cluster-management.io': 'AWS' });
  await until('the report', condition);
  expect(await condition()).toMatchObject({
    status: 'False',
    reason: 'NotCopied',
    message:
      'not copied to the cluster Secret: claim kubeversion.open-cluster-management.io: "v1.30.1+k3s1" is no label value',
  });
  await claimed([]);
  await has({ env: 'prod', owner: 'me', tier: 'gold' });
  await until('no report', async () => (await condition()) === undefined);

  // What the GitOpsCluster no longer selects leaves, also while nobody watches.
  await hub.stop();
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement', { clusterLabels: { labels: ['env'] } });
  await labelled({ env: null });
  hub.start();
  await has({ owner: 'me' });
  await hub.idle();
  expect(await metadataOf(b)).toMatchObject({ uid: before?.uid, resourceVersion: before?.resourceVersion });
  await hub.restart();
  await hub.idle();
  expect(hub.controller.writes).toBe(0);
});

test('without a setting the cluster set is copied, or what the controller says', async () => {
  const { ns } = hub;
  await labelled({ [clusterSet]: 'dev', env: 'prod' });
  await hub.enroll();
  await has({ [clusterSet]: 'dev' });
  const delivery = { agentImage: 'agent:1', pullPolicy: 'Always', argoCdImage: undefined, redisImage: undefined };
  await hub.stop();
  hub.start({ delivery: { ...delivery, clusterLabels: { labels: ['e*'], claims: [] } } });
  await has({ env: 'prod' });
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement', { clusterLabels: {} });
  await has({});
});

test('the API server refuses entries that can never be right', async () => {
  const make = (clusterLabels: object) => hub.fixture.gitOpsCluster(hub.ns, 'bad', 'placement', { clusterLabels });
  for (const entry of ['', '-env', 'env-', '*env', 'en*v', 'a/b/c', 'a/b/*', '/env', 'Example.com/env', 'a b', '**']) {
    for (const list of ['labels', 'claims']) {
      await expect(make({ [list]: [entry] }), entry).rejects.toThrow(
        new RegExp(
          `clusterLabels\\.${list}\\[0\\].*must be a label key such as env, or the beginning of one and a \\*`,
        ),
      );
    }
  }
  for (const entry of [
    'argocd.argoproj.io/secret-type',
    'argocd-agent.argoproj-labs.io/*',
    'app.kubernetes.io/instance',
    'placement-name',
    'apps.open-cluster-management.io/x',
  ]) {
    await expect(make({ labels: [entry] }), entry).rejects.toThrow(/labels of Argo CD, .* are reserved/);
  }
  await expect(make({ labels: Array(65).fill('env') })).rejects.toThrow(/at most 64/);
  await make({ labels: ['env', '*', 'env*', 'a.b/*', 'a.b/c*', 'a.b/C_d.e', clusterSet], claims: ['id.k8s.io', '0'] });
});
