import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Network } from '../../e2e/network/index.ts';
import {
  application,
  namespace,
  pairApplications,
  startApiWay,
  startTwoHubs,
  type TwoHubs,
} from '../../e2e/pair/index.ts';
import { borrowCluster, type SharedCluster } from '../../e2e/testbed/index.ts';
import { annotations } from '../../lib/argocd/index.ts';
import { until } from '../../lib/base/testing.ts';
import { configMaps, leases } from '../../lib/kube/index.ts';

// A Lease in a third cluster says who is active. The active hub is cut off from that cluster, and from nothing else: it stops
// before the other one becomes active, and follows it when it can see the Lease again.

let hubs: TwoHubs;
let third: SharedCluster;
let proxy: Network;
const lease = { namespace: 'default', name: 'argocd-agent-active-hub' };

beforeAll(async () => {
  third = await borrowCluster();
  const api = await startApiWay(third);
  proxy = api.way;
  const common = ['--ha-lease-namespace=default', '--ha-lease-duration=4s', '--ha-lease-renew-deadline=2s'];
  hubs = await startTwoHubs({
    principalArgs: common,
    firstArgs: [`--ha-lease-kubeconfig=${api.kubeconfig}`],
    secondArgs: [`--ha-lease-kubeconfig=${third.kubeconfig}`],
  });
  hubs.first.principal.start();
  await hubs.first.principal.says(/principal serves agents/);
  hubs.second.principal.start();
  hubs.agent.start();
});
afterAll(async () => {
  await hubs?.stop();
  await proxy?.close();
  await third?.stop();
});

const logs = () => ({
  details: () =>
    [hubs.first.principal, hubs.second.principal, hubs.agent].map(({ output }) => output.slice(-3_000)).join('\n---\n'),
});
// As if a hub had died before it could annotate an object.
const unmarked = { metadata: { annotations: { [annotations.onBothHubs]: null } } };
const stateOf = async (hub: TwoHubs['first']) => (await hub.admin.status()).state;
const holder = async () => (await third.client.get(leases, lease))?.spec?.holderIdentity ?? '';
const copies = async () =>
  (await hubs.managed.client.list(pairApplications, { namespace })).map(
    ({ metadata: { name, uid } }) => `${name} ${uid}`,
  );

test('the active hub is cut off from the Lease: it stops before the other one is promoted', async () => {
  await hubs.first.cluster.client.create(pairApplications, application({ name: 'web', namespace: hubs.agentName }));
  await until('a copy is there', async () => (await copies()).length === 1, logs());
  await until('the standby follows', async () => (await stateOf(hubs.second)) === 'replicating', logs());
  const before = await copies();
  const former = await holder();
  expect((await hubs.first.admin.status()).fencing).toMatch(/held by this hub/);

  proxy.refuse();
  expect(await hubs.second.admin.promote(true)).toBe('active');
  expect(await stateOf(hubs.first), 'no two are active').not.toBe('active');
  expect(await holder()).not.toBe(former);

  await hubs.second.principal.says(/An agent is connected/);
  expect(await copies()).toEqual(before);
});

test('it follows the other one when it sees the Lease again', async () => {
  proxy.heal();
  await until('the former active hub follows', async () => (await stateOf(hubs.first)) === 'replicating', logs());
  await hubs.second.cluster.client.create(pairApplications, application({ name: 'shop', namespace: hubs.agentName }));
  await until(
    'it gets what is made on the other one',
    async () =>
      (await hubs.first.cluster.client.get(pairApplications, { namespace: hubs.agentName, name: 'shop' })) !==
      undefined,
    logs(),
  );
  expect(await stateOf(hubs.second)).toBe('active');
});

test('a restart does not make it active while the other one is', async () => {
  await hubs.first.principal.stop('SIGKILL');
  const after = hubs.first.principal.output.length;
  hubs.first.principal.start();
  await hubs.first.principal.says(/the other hub is active, or was last: this principal follows it/, { after });
  await until('it follows', async () => (await stateOf(hubs.first)) === 'replicating', logs());
});

test('a restart does not make it active while the other one, which has newer data, is away', async () => {
  const last = async () =>
    (await third.client.get(leases, lease))?.metadata.annotations?.[annotations.lastActiveHub] ?? '';
  const before = await last();
  expect(await holder()).toMatch(before);
  await Promise.all([hubs.first.principal.stop('SIGTERM'), hubs.second.principal.stop('SIGTERM')]);
  await until('the Lease is free', async () => (await holder()) === '');
  const after = hubs.first.principal.output.length;
  hubs.first.principal.start();
  await hubs.first.principal.says(/the other hub is active, or was last: this principal follows it/, { after });
  expect((await hubs.first.admin.status()).fencing).toMatch(`the hub ${before} was active last`);

  // An operator may take what there is.
  expect(await hubs.first.admin.promote(true)).toBe('active');
  expect(await last()).not.toBe(before);
});

test('what is deleted while it waits for the Lease is gone on the other hub, too, when that follows', async () => {
  const shop = { namespace: hubs.agentName, name: 'shop' };
  await hubs.second.cluster.client.mergePatch(pairApplications, shop, unmarked);
  proxy.refuse();
  await until('it has lost the Lease', async () => (await stateOf(hubs.first)) !== 'active', logs());
  await hubs.first.cluster.client.delete(pairApplications, shop);
  proxy.heal();
  await until('it is active again', async () => (await stateOf(hubs.first)) === 'active', logs());
  hubs.second.principal.start();
  await until('the other one follows', async () => (await stateOf(hubs.second)) === 'replicating', logs());
  expect(await hubs.second.cluster.client.get(pairApplications, shop)).toBeUndefined();
});

test('what is deleted while it is about to become active is gone on the other hub, too, when that follows', async () => {
  const { client } = hubs.second.cluster;
  const late = { namespace: hubs.agentName, name: 'late' };
  await hubs.first.cluster.client.create(pairApplications, application(late));
  await until('the standby has it', async () => (await client.get(pairApplications, late)) !== undefined, logs());
  await hubs.first.cluster.client.mergePatch(pairApplications, late, unmarked);
  await hubs.first.principal.stop('SIGKILL');
  const deletions = async () =>
    (await client.get(configMaps, { namespace, name: 'argocd-agent-deleted-objects' }))?.metadata.resourceVersion;
  const before = await deletions();
  const promotion = hubs.second.admin.promote(true);
  await until('it waits for the Lease', async () => (await deletions()) !== before, logs());
  await client.delete(pairApplications, late);
  expect(await promotion).toBe('active');
  hubs.first.principal.start();
  await until('the other one follows', async () => (await stateOf(hubs.first)) === 'replicating', logs());
  expect(await hubs.first.cluster.client.get(pairApplications, late)).toBeUndefined();
});
