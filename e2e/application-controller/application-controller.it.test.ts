import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { application, namespace, pairApplications, prepareCluster } from '../pair/index.ts';
import { borrowCluster, type SharedCluster } from '../testbed/index.ts';
import { type DeedKind, PlayedApplicationController } from './index.ts';

let cluster: SharedCluster;
let argoCd: PlayedApplicationController;
let working: Promise<void>;
const stop = new AbortController();

beforeAll(async () => {
  cluster = await borrowCluster({ name: 'edge' });
  await prepareCluster(cluster.client);
  argoCd = new PlayedApplicationController({ client: cluster.client, namespace, revisionOf: () => 'abc' });
  working = argoCd.run(stop.signal);
});
afterAll(async () => {
  stop.abort();
  await working;
  await cluster?.stop();
});

const operation = { info: [{ name: 'id', value: '1' }], sync: { revision: 'HEAD' } };
const finalizers = ['resources-finalizer.argocd.argoproj.io', 'post-delete-finalizer.argocd.argoproj.io'];
const get = (name: string) => cluster.client.get(pairApplications, { namespace, name });
const patch = (name: string, change: object) =>
  cluster.client.mergePatch(pairApplications, { namespace, name }, change);
const create = (name: string, metadata: Record<string, unknown> = {}) =>
  cluster.client.create(pairApplications, application({ name, namespace, metadata }));
const rests = async (name: string) =>
  until('it to be compared', async () => expect((await get(name))?.status?.sync).toMatchObject({ revision: 'abc' }));
/** What was done with an Application, in order. */
const deeds = (name: string): DeedKind[] =>
  argoCd.deeds.filter((one) => one.application.metadata.name === name).map(({ kind }) => kind);

test('a sync is carried out once, and a comparison finds what it has deployed', async () => {
  await create('synced');
  await rests('synced');
  expect((await get('synced'))?.status?.sync).toMatchObject({ status: 'OutOfSync' });
  await patch('synced', { operation });
  await until(async () => expect((await get('synced'))?.status?.sync).toMatchObject({ status: 'Synced' }));
  const { resourceVersion } = (await get('synced'))?.metadata ?? {};
  expect(deeds('synced')).toEqual(['began', 'ended']);
  // What comes later has been looked at later.
  await create('later');
  await rests('later');
  expect((await get('synced'))?.metadata.resourceVersion).toBe(resourceVersion);
});

test('a sync that is held runs until it is terminated or released; refreshes are answered meanwhile', async () => {
  argoCd.hold();
  await create('held');
  const phaseIs = (phase: string) =>
    until(async () => expect((await get('held'))?.status?.operationState).toMatchObject({ phase }));
  await patch('held', { operation });
  await phaseIs('Running');
  await patch('held', { metadata: { annotations: { 'argocd.argoproj.io/refresh': 'hard' } } });
  await until('the answer', () => deeds('held').includes('refreshed'));
  await patch('held', { status: { operationState: { phase: 'Terminating' } } });
  await phaseIs('Failed');
  await patch('held', { operation });
  await phaseIs('Running');
  argoCd.release();
  await phaseIs('Succeeded');
  expect(deeds('held')).toEqual(['began', 'refreshed', 'terminated', 'began', 'ended']);
});

test('what is deleted ends its sync, then goes; a finalizer of others keeps it', async () => {
  argoCd.hold();
  await create('deleted', { finalizers: [...finalizers, 'example.com/other'] });
  await patch('deleted', { operation });
  await until('its sync', () => deeds('deleted').includes('began'));
  await cluster.client.delete(pairApplications, { namespace, name: 'deleted' });
  argoCd.release();
  await until(async () => expect((await get('deleted'))?.metadata.finalizers).toEqual(['example.com/other']));
  await patch('deleted', { metadata: { finalizers: null } });
  await until('its end', () => deeds('deleted').includes('gone'));
  expect(deeds('deleted')).toEqual(['began', 'ended', 'finalized', 'finalized', 'gone']);
});

test('what it is told to leave is left', async () => {
  await create('left', { annotations: { 'argocd.argoproj.io/skip-reconcile': 'true' } });
  await create('after');
  await rests('after');
  expect((await get('left'))?.status).toBeUndefined();
});
