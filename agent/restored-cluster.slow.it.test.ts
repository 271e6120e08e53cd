import { afterAll, beforeAll, expect, test } from 'vitest';
import { application, namespace, type Pair, pairApplications, startPair } from '../e2e/pair/index.ts';
import { type Cluster, saveStorage, startCluster } from '../e2e/testbed/index.ts';
import { until } from '../lib/base/testing.ts';
import { configMaps } from '../lib/kube/index.ts';

// The etcd of a managed cluster is restored from a snapshot while the agent runs. Its API server accepts the agent's watches from
// versions that it has not reached yet, and says nothing until it has.

let pair: Pair<Cluster>;
beforeAll(async () => {
  pair = await startPair<Cluster>({}, () => startCluster({ name: 'own' }));
});
afterAll(() => pair?.stop());

type Spec = { source: { targetRevision: string } };
type Status = { health?: { status: string } };

const source = (targetRevision: string) => ({ repoURL: 'https://example.com/repo.git', path: 'p', targetRevision });
const copy = () => pair.managed.client.get(pairApplications, { namespace, name: 'shop' });
const revision = async () => ((await copy())?.spec as Spec | undefined)?.source.targetRevision;
const version = async () => (await copy())?.metadata.resourceVersion;
const logs = () => ({ details: () => pair.agent.output.slice(-3_000) });

test('after a restore of its cluster the agent brings the copy up to date, and reports what becomes of it', async () => {
  const { hub, managed } = pair;
  const key = { namespace: pair.name, name: 'shop' };
  await hub.client.create(pairApplications, application({ ...key, spec: { source: source('v1') } }));
  await until('there is a copy', async () => (await revision()) === 'v1', logs());
  const restore = await saveStorage(managed);
  for (let i = 0; i < 300; i++) {
    await managed.client.create(configMaps, { metadata: { namespace: 'default', name: `filler-${i}` } });
  }
  await hub.client.mergePatch(pairApplications, key, { spec: { source: source('v2') } });
  await until('the copy has v2', async () => (await revision()) === 'v2', logs());
  const before = await version();
  await restore();
  await until('the copy has v2 again', async () => (await revision()) === 'v2', logs());
  expect(Number(await version()), 'the versions went back').toBeLessThan(Number(before));

  await managed.client.mergePatch(
    pairApplications,
    { namespace, name: 'shop' },
    { status: { health: { status: 'Degraded' } } },
  );
  const health = async () =>
    ((await hub.client.get(pairApplications, key))?.status as Status | undefined)?.health?.status;
  await until('the hub has its status', async () => (await health()) === 'Degraded', logs());

  await hub.client.mergePatch(pairApplications, key, { spec: { source: source('v3') } });
  await until('the copy has v3', async () => (await revision()) === 'v3', logs());
  const settled = await version();
  await managed.client.mergePatch(
    pairApplications,
    { namespace, name: 'shop' },
    { spec: { source: source('somebody') } },
  );
  await until('an edit there is reverted', async () => (await revision()) === 'v3', logs());
  expect(Number(await version()) - Number(settled), 'by one write, not by many').toBeLessThan(20);
});
