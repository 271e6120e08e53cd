import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type ArgoObject,
  application,
  namesOf,
  namespace,
  type PairedHub,
  type PairedPrincipal,
  pairApplications,
  startTwoHubs,
  type TwoHubs,
  uidsOf,
} from '../../e2e/pair/index.ts';
import { borrowCluster, type SharedCluster } from '../../e2e/testbed/index.ts';
import { annotations } from '../../lib/argocd/index.ts';
import { until } from '../../lib/base/testing.ts';
import { leases } from '../../lib/kube/index.ts';

// Two hubs with two principals each, under one Lease in a third cluster. The role is the hub's: whichever principal dies, is asked
// or is started again.

let hubs: TwoHubs;
let third: SharedCluster;

beforeAll(async () => {
  third = await borrowCluster();
  hubs = await startTwoHubs({
    principals: 2,
    principalArgs: [
      `--ha-lease-kubeconfig=${third.kubeconfig}`,
      '--ha-lease-namespace=default',
      '--ha-lease-duration=6s',
      '--ha-lease-renew-deadline=4s',
    ],
  });
  startAll(hubs.first);
  await isActive(hubs.first);
  startAll(hubs.second);
  hubs.agent.start();
});
afterAll(async () => {
  await hubs?.stop();
  await third?.stop();
});

const startAll = ({ principals }: PairedHub) => principals.map(({ principal }) => principal.start());
const all = () => [...hubs.first.principals, ...hubs.second.principals];
const logs = () => ({
  details: () =>
    [...all().map(({ principal }) => principal), hubs.agent].map(({ output }) => output.slice(-3_000)).join('\n---\n'),
});
const stateOf = async ({ admin }: PairedPrincipal) => (await admin.status().catch(() => undefined))?.state;
const statesAre = (hub: PairedHub, state: string) =>
  until(
    `the principals are ${state}`,
    async () => (await Promise.all(hub.principals.map(stateOf))).every((one) => one === state),
    logs(),
  );
const isActive = (hub: PairedHub) => statesAre(hub, 'active');
const isFollowing = (hub: PairedHub) => statesAre(hub, 'replicating');
const appsOf = ({ cluster }: PairedHub) => cluster.client.list(pairApplications, { namespace: hubs.agentName });
const copies = () => hubs.managed.client.list(pairApplications, { namespace });
const create = (hub: PairedHub, name: string) =>
  hub.cluster.client.create(pairApplications, application({ name, namespace: hubs.agentName }));
const has = (what: () => Promise<ArgoObject[]>, wanted: readonly string[]) =>
  until(async () => expect(namesOf(await what())).toEqual([...wanted].sort()), logs());
/** The principal of a standby hub that follows. */
const followerOf = async ({ principals }: PairedHub) =>
  await until(
    'one follows',
    async () => {
      const found = await Promise.all(principals.map(async (one) => ({ one, status: await one.admin.status() })));
      const [follower, ...more] = found.filter(({ status }) => status.peerState === 'active');
      return more.length === 0 && follower?.one;
    },
    logs(),
  );
/** The principal of an active hub that is followed. */
const followed = async ({ principals }: PairedHub) =>
  await until(
    'one is followed',
    async () => {
      const found = await Promise.all(principals.map(async (one) => ({ one, status: await one.admin.status() })));
      return found.find(({ status }) => status.connectedReplicas > 0)?.one;
    },
    logs(),
  );
const other = ({ principals }: PairedHub, than: PairedPrincipal) => {
  const found = principals.find((one) => one !== than);
  if (found === undefined) {
    throw new Error('there is no other one');
  }
  return found;
};

test('one principal of the standby hub follows, both say so, and the one that takes over misses nothing', async () => {
  await create(hubs.first, 'web');
  await isFollowing(hubs.second);
  await has(() => appsOf(hubs.second), ['web']);
  const follower = await followerOf(hubs.second);
  await follower.principal.stop('SIGKILL');
  await create(hubs.first, 'shop');
  await has(() => appsOf(hubs.second), ['web', 'shop']);
  expect(await followerOf({ ...hubs.second, principals: [other(hubs.second, follower)] })).toBeDefined();
  follower.principal.start();
  await isFollowing(hubs.second);
});

test('the principal that is followed dies: another one of the hub is followed', async () => {
  const source = await followed(hubs.first);
  await source.principal.stop('SIGKILL');
  await create(hubs.first, 'desk');
  await has(() => appsOf(hubs.second), ['web', 'shop', 'desk']);
  await has(copies, ['web', 'shop', 'desk']);
  source.principal.start();
  await isActive(hubs.first);
});

test('a planned failover, each order given to a principal that neither follows nor is followed', async () => {
  const before = uidsOf(await copies());
  const source = await followed(hubs.first);
  await expect(other(hubs.second, await followerOf(hubs.second)).admin.promote(false)).rejects.toThrow(/still active/);
  await create(hubs.first, 'last');
  expect(await other(hubs.first, source).admin.demote()).toBe('replicating');
  expect(namesOf(await appsOf(hubs.second)), 'acknowledged before the demotion has ended').toContain('last');
  await statesAre(hubs.second, 'disconnected');
  const [, asked] = hubs.second.principals;
  expect(await asked?.admin.promote(false)).toBe('active');
  await isActive(hubs.second);
  await isFollowing(hubs.first);
  await create(hubs.second, 'after');
  await has(copies, ['web', 'shop', 'desk', 'last', 'after']);
  expect(uidsOf(await copies())).toMatchObject(before);
  await has(() => appsOf(hubs.first), ['web', 'shop', 'desk', 'last', 'after']);
});

test('a principal that starts again has the role of its hub, not the preferred one', async () => {
  const [one] = hubs.first.principals;
  await one?.principal.stop('SIGTERM');
  one?.principal.start();
  await isFollowing(hubs.first);
  await isActive(hubs.second);
});

test('the active hub dies: one promotion makes all principals of the other one active', async () => {
  const before = uidsOf(await copies());
  await Promise.all(hubs.second.principals.map(({ principal }) => principal.stop('SIGKILL')));
  await statesAre(hubs.first, 'disconnected');
  const [one] = hubs.first.principals;
  expect(await one?.admin.promote(false)).toBe('active');
  await isActive(hubs.first);
  await until(
    'the agent is connected',
    async () => {
      const found = await Promise.all(hubs.first.principals.map(({ admin }) => admin.status()));
      return found.some(({ connectedAgents }) => connectedAgents === 1);
    },
    logs(),
  );
  expect(uidsOf(await copies())).toEqual(before);
});

test('the former active hub follows when it comes back: the Lease says who was active last', async () => {
  startAll(hubs.second);
  await isFollowing(hubs.second);
  await create(hubs.first, 'again');
  await has(() => appsOf(hubs.second), ['web', 'shop', 'desk', 'last', 'after', 'again']);
  const role = { namespace, name: 'argocd-agent.hub-role' };
  const recorded = await hubs.second.cluster.client.get(leases, role);
  expect(recorded?.metadata.annotations?.[annotations.hubRole]).toBe('standby');
});

test('an order to another principal goes on with a change of the role whose principal has died', async () => {
  const { client } = hubs.second.cluster;
  const role = { namespace, name: 'argocd-agent.hub-role' };
  const [one] = hubs.first.principals;
  expect(await one?.admin.demote()).toBe('replicating');
  // As the one leaves it that dies in between.
  await client.mergePatch(leases, role, { metadata: { annotations: { [annotations.hubRole]: 'promoting' } } });
  await Promise.all(
    hubs.second.principals.map(({ principal }) => principal.says(/principal of the pair is disconnected/)),
  );
  const began = performance.now();
  expect(await hubs.second.principals[1]?.admin.promote(true)).toBe('active');
  expect(performance.now() - began, 'without it: after a minute').toBeLessThan(40_000);
  await isActive(hubs.second);
});
