import { expect, test } from 'vitest';
import { annotations, skipSyncLabel } from '../index.ts';
import { hubApplication, Lab, type LabCluster } from '../testing/lab.ts';

const ref = { namespace: 'a', name: 'shop' };
const copyRef = { namespace: 'argocd', name: 'shop' };

/** A hub and its agent in step. */
async function joined() {
  const lab = new Lab();
  lab.hub.objects.create(hubApplication());
  const principal = lab.principal();
  const agent = lab.agent();
  lab.join(principal, agent);
  await lab.run(5_000);
  return { lab, agent };
}

/** Returns a function that restores a cluster as it is now, which the caches learn from a list. */
function backUp(cluster: LabCluster): () => void {
  const { objects } = cluster;
  const backup = objects.cluster.snapshot();
  return () => {
    const relist = cluster.breakWatch();
    objects.cluster.restore(backup);
    relist();
  };
}

test('a report after the restore of a cluster is none of those before it, however equal the versions', async () => {
  const { lab, agent } = await joined();
  const { cluster } = agent;
  const report = async (revision: string) => {
    cluster.objects.patch(copyRef, { status: { sync: { status: 'Synced', revision } } });
    await lab.run(1_000);
    return cluster.objects.get(copyRef)?.metadata.resourceVersion;
  };
  const restore = backUp(cluster);
  const before = await report('r1');
  restore();
  expect(await report('r2')).toBe(before);
  await lab.run(5_000);
  expect(lab.hub.objects.get(ref)?.status).toMatchObject({ sync: { revision: 'r2' } });
});

test('a change after the restore of the hub is none of those before it, however equal the versions', async () => {
  const { lab, agent } = await joined();
  const edit = async (path: string) => {
    lab.hub.objects.patch(ref, { spec: { source: { path } } });
    const version = lab.hub.objects.get(ref)?.metadata.resourceVersion;
    await lab.run(1_000);
    return version;
  };
  const restore = backUp(lab.hub);
  const before = await edit('p1');
  restore();
  expect(await edit('p2')).toBe(before);
  expect(agent.copy()?.spec.source).toEqual({ path: 'p2' });
});

test('a copy gets back the labels that it lost by the restore of its cluster', async () => {
  const { lab, agent } = await joined();
  const restore = backUp(agent.cluster);
  lab.hub.objects.patch(ref, { metadata: { labels: { team: 'b' } } });
  await lab.run(1_000);
  expect(agent.copy()?.metadata.labels).toEqual({ team: 'b' });
  restore();
  await lab.run(5_000);
  expect(agent.copy()?.metadata.labels).toEqual({ team: 'b' });
});

test('a copy that is back by a restore is kept as the hub has it, though this process never made it', async () => {
  const lab = new Lab();
  lab.hub.objects.create(hubApplication());
  const principal = lab.principal();
  const first = lab.agent();
  const leave = lab.join(principal, first);
  await lab.run(5_000);
  const { cluster } = first;
  const restore = backUp(cluster);
  leave();
  first.stop.abort();
  cluster.objects.delete(copyRef, {});
  const agent = lab.agent({}, cluster);
  restore();
  lab.join(principal, agent);
  await lab.run(5_000);
  expect(agent.copy()).toBeDefined();
  cluster.objects.delete(copyRef, {});
  await lab.run(5_000);
  expect(agent.copy()).toBeDefined();
});

test('what a copy was before it became one is known after a restore to that time, too', async () => {
  const lab = new Lab();
  const agent = lab.agent();
  const own = { ...hubApplication({ namespace: 'argocd', labels: { own: 'yes' } }) };
  agent.cluster.objects.create(own);
  const before = agent.copy();
  lab.join(lab.principal(), agent);
  await lab.run(1_000);
  const restore = backUp(agent.cluster);
  lab.hub.objects.create(hubApplication());
  await lab.run(1_000);
  const record = agent.copy()?.metadata.annotations?.[annotations.takenOver];
  expect(record).toContain('own');
  restore();
  await lab.run(1_000);
  expect(agent.copy()?.metadata.annotations?.[annotations.takenOver]).toBe(record);
  lab.hub.objects.patch(ref, { metadata: { labels: { [skipSyncLabel]: 'true' } } });
  await lab.run(1_000);
  expect(agent.copy()?.metadata.labels).toEqual(before?.metadata.labels);
  expect(agent.copy()?.spec).toEqual(before?.spec);
});

test('a deletion that is asked for again is carried out again: the copy may be back', async () => {
  const lab = new Lab();
  const agent = lab.agent();
  const message = (type: 'create' | 'delete') => ({
    ...({ target: 'application', type, resourceId: 'shop', eventId: type } as const),
    object: hubApplication({ uid: 'of-the-hub' }),
  });
  agent.connect();
  agent.sync.receive(message('create'));
  await lab.run(1_000);
  const restore = backUp(agent.cluster);
  agent.sync.receive(message('delete'));
  await lab.run(1_000);
  expect(agent.copy()).toBeUndefined();
  restore();
  expect(agent.copy()).toBeDefined();
  // The acknowledgement was lost with the connection.
  agent.connect();
  agent.sync.receive(message('delete'));
  await lab.run(1_000);
  expect(agent.copy()).toBeUndefined();
  expect(agent.acknowledged.filter((name) => name.includes('delete'))).toHaveLength(2);
});
