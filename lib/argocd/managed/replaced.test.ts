import { expect, test } from 'vitest';
import type { Application } from '../index.ts';
import { hubApplication, Lab, type LabCluster } from '../testing/lab.ts';

// A patch that names the UID of an object that another one has replaced is a conflict, which an API server calls invalid.

const onHub = { namespace: 'a', name: 'shop' };
const onCluster = { namespace: 'argocd', name: 'shop' };

/** Somebody replaces an object (kubectl replace --force), and the watch is two seconds late. */
function replace(cluster: LabCluster, ref: typeof onHub): void {
  const { metadata, spec } = cluster.objects.get(ref) as Application;
  const { uid: _, resourceVersion: __, creationTimestamp: ___, ...others } = metadata;
  cluster.lagMs = 2_000;
  cluster.objects.delete(ref, { propagation: 'Background' });
  cluster.objects.create({ metadata: others, spec });
}

async function fleet(metadata: object = {}) {
  const lab = new Lab();
  const principal = lab.principal();
  const agent = lab.agent();
  lab.join(principal, agent);
  lab.hub.objects.create(hubApplication(metadata));
  await lab.run(1_000);
  return { lab, agent };
}

test('a sync that is asked for while the copy was made anew a moment ago is carried out', async () => {
  const { lab, agent } = await fleet();
  replace(agent.cluster, onCluster);
  lab.hub.objects.patch(onHub, { operation: { sync: { revision: 'r1' } } });
  await lab.run(500);
  agent.cluster.lagMs = 0;
  await lab.run(120_000);
  expect(agent.copy()?.operation).toEqual({ sync: { revision: 'r1' } });
});

test('no error is shown for it', async () => {
  const { lab, agent } = await fleet();
  replace(agent.cluster, onCluster);
  lab.hub.objects.patch(onHub, { spec: { source: { path: 'p1' } } });
  await lab.run(1_500);
  expect(lab.hub.objects.get(onHub)?.status).toBeUndefined();
  expect(agent.copy()?.spec.source).toEqual({ path: 'p1' });
});

test('a report about an Application of the hub that was made anew a moment ago is not lost', async () => {
  const { lab, agent } = await fleet({ annotations: { 'argocd.argoproj.io/source-uid': 'stable' } });
  replace(lab.hub, onHub);
  agent.cluster.objects.patch(onCluster, { status: { health: { status: 'Healthy' } } });
  await lab.run(500);
  lab.hub.lagMs = 0;
  await lab.run(120_000);
  expect(lab.hub.objects.get(onHub)?.status?.health).toEqual({ status: 'Healthy' });
});
