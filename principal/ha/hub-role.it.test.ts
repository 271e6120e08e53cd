import { afterAll, beforeAll, expect, test } from 'vitest';
import { borrowCluster, type SharedCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import { leases, namespaces } from '../../lib/kube/index.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { roleLeft, SharedRole, type SharedRoleOptions } from './hub-role.ts';

let cluster: SharedCluster;
const stop = new AbortController();
const namespace = 'roles';
const key = { namespace, name: 'argocd-agent.hub-role' };

beforeAll(async () => {
  cluster = await borrowCluster();
  await cluster.client.create(namespaces, { metadata: { name: namespace } });
});
afterAll(async () => {
  stop.abort();
  await cluster?.stop();
});

const open = (preferred: SharedRoleOptions['preferred'], pod = 'principal-1') =>
  SharedRole.open({
    client: cluster.client,
    namespace,
    preferred,
    pod,
    logger: createLogger({ level: 'fatal' }),
    signal: stop.signal,
    failed: (error) => {
      throw error;
    },
  });

test('of two principals that change the role at once one does, and all see it', async () => {
  const found = await Promise.all([open('active'), open('active'), open('active')]);
  expect(found.map(({ current }) => current)).toEqual(['active', 'active', 'active']);
  const [one, two, three] = found as [SharedRole, SharedRole, SharedRole];
  const seen = roleLeft(three, 'active', 30_000, stop.signal);
  const changed = await Promise.all([one.change('active', 'demoting'), two.change('active', 'demoting')]);
  expect(changed.filter(Boolean)).toHaveLength(1);
  expect(await seen).toBe(true);
  await until('all are told', () => found.every(({ current }) => current === 'demoting'));
  expect(await one.change('demoting', 'standby')).toBe(true);
});

test('the role outlives its principals, until another one is preferred', async () => {
  expect((await open('active')).current).toBe('standby');
  expect((await open('standby')).current).toBe('standby');
  expect((await open('active')).current).toBe('active');
});

test('a pod that restarts while another role is preferred already does not turn the role back', async () => {
  expect((await open('active', 'old')).current).toBe('active');
  expect((await open('standby', 'new')).current).toBe('standby');
  expect((await open('active', 'old')).current).toBe('standby');
  expect((await open('active', 'newest')).current).toBe('active');
});

test('the state of the one that follows is told to the others', async () => {
  const [one, two] = await Promise.all([open('active'), open('active')]);
  one.report('syncing');
  one.report('replicating');
  await until('it is told', () => two.followerState === 'replicating');
});

test('what the Lease said still holds when somebody deletes it', async () => {
  const role = await open('active');
  await cluster.client.delete(leases, key);
  expect(role.current).toBe('active');
  expect(await role.change('standby', 'promoting')).toBe(false);
  expect(await role.change('active', 'demoting')).toBe(true);
  expect((await open('active')).current).toBe('demoting');
});
