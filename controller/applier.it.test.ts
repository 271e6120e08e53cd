import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../e2e/testbed/index.ts';
import { type ConfigMap, configMaps, isConflict } from '../lib/kube/index.ts';
import { Applier } from './applier.ts';
import { keys, managedBy } from './names.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ name: 'hub' });
});
afterAll(() => cluster?.stop());

const exact = { exact: ['data'] };
const ours = { [keys.managedBy]: managedBy };
const map = (name: string, data: Record<string, string>, labels: Record<string, string> = ours): ConfigMap => ({
  metadata: { namespace: 'default', name, labels },
  data,
});
const live = (name: string) => cluster.client.get(configMaps, { namespace: 'default', name });

test('what was created and is no longer wanted is taken out; what others added stays', async () => {
  const applier = new Applier(cluster.client);
  const { object } = await applier.ensure(configMaps, map('kept', { a: '1', b: '2' }), undefined, exact);
  await cluster.client.mergePatch(configMaps, object.metadata, { metadata: { labels: { theirs: 'yes' } } });
  // Twice: by the first of these the fields change hands.
  for (const data of [{ a: '1', c: '3' }, { c: '3' }]) {
    const seen = await live('kept');
    expect(await new Applier(cluster.client).ensure(configMaps, map('kept', data), seen, exact)).toMatchObject({
      changed: true,
    });
    expect((await live('kept'))?.data).toEqual(data);
  }
  expect((await live('kept'))?.metadata.labels).toEqual({ ...ours, theirs: 'yes' });
  const again = await new Applier(cluster.client).ensure(
    configMaps,
    map('kept', { c: '3' }),
    await live('kept'),
    exact,
  );
  expect(again.changed).toBe(false);
});

test('one of ours that the cache does not have yet is not overwritten, and found at the next look', async () => {
  await new Applier(cluster.client).ensure(configMaps, map('there', { password: 'first' }), undefined, exact);
  const applier = new Applier(cluster.client);
  const key = { namespace: 'default', name: 'there' };
  expect(await applier.current(configMaps, key, undefined)).toBeUndefined();
  const attempt = applier.ensure(configMaps, map('there', { password: 'second' }), undefined, exact);
  await expect(attempt).rejects.toSatisfy(isConflict);
  expect((await live('there'))?.data).toEqual({ password: 'first' });
  expect((await applier.current(configMaps, key, undefined))?.data).toEqual({ password: 'first' });
});

test('what is not ours is named, and left alone', async () => {
  await cluster.client.create(configMaps, map('foreign', { a: '1' }, {}));
  const attempt = new Applier(cluster.client).ensure(configMaps, map('foreign', { a: '2' }), undefined);
  await expect(attempt).rejects.toThrow(/ConfigMap default\/foreign exists and was not made by this controller/);
  expect((await live('foreign'))?.data).toEqual({ a: '1' });
});

test('guarded, a change is made to what was looked at and to nothing newer', async () => {
  const applier = new Applier(cluster.client);
  const { object: seen } = await applier.ensure(configMaps, map('guarded', { a: '1' }), undefined, exact);
  const change = (data: Record<string, string>) =>
    new Applier(cluster.client).ensure(configMaps, map('guarded', data), seen, { ...exact, guarded: true });
  expect((await change({ a: '2' })).object.data).toEqual({ a: '2' });
  await expect(change({ a: '3' })).rejects.toSatisfy(isConflict);
  expect((await live('guarded'))?.data).toEqual({ a: '2' });
});
