import { expect, test } from 'vitest';
import { borrowCluster } from '../../e2e/testbed/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import { until } from '../../lib/base/testing.ts';
import { configMaps, events, findCondition, secrets } from '../../lib/kube/index.ts';
import { finalizer, gitOpsClusters, keys, managedBy, managedClusterAddOns, manifestWorks } from '../hub/index.ts';
import { confined } from '../testing/confined.ts';
import { useHub } from '../testing/hub.ts';

const hub = useHub(borrowCluster);
const ours = { labelSelector: `${wellKnown.managedByLabel}=${managedBy}` };
const fleet = () => ({ namespace: hub.ns, name: 'fleet' });

test('a GitOpsCluster in a namespace that is not served gets a condition that says what to set, and nothing else', async () => {
  await hub.fixture.namespace('served');
  const client = confined(hub.client, (namespace) => namespace === 'served');
  await hub.fixture.placement(hub.ns, 'placement', [hub.a]);
  await hub.fixture.gitOpsCluster(hub.ns, 'fleet', 'placement');
  await hub.fixture.placement('served', 'placement', [hub.a, hub.b]);
  await hub.fixture.gitOpsCluster('served', 'fleet', 'placement');
  hub.start({ client, watchNamespaces: ['served'] });
  await hub.fixture.conditionIs(['served', 'fleet'], 'Ready', 'True');
  const ready = await hub.fixture.conditionIs([hub.ns, 'fleet'], 'Ready', 'False');
  expect(ready.reason).toBe('NamespaceNotServed');
  expect(ready.message).toContain(`the controller has no rights in namespace ${hub.ns}`);
  expect(ready.message).toContain('controller.gitOpsNamespaces');
  expect(ready.message).toContain('controller.allNamespaces');
  await hub.idle();
  const refused = await hub.client.get(gitOpsClusters, fleet());
  expect(refused?.metadata.finalizers ?? []).toEqual([]);
  expect(await hub.client.list(secrets, { namespace: hub.ns, ...ours })).toEqual([]);
  expect(await hub.client.list(configMaps, { namespace: hub.ns, ...ours })).toEqual([]);
  // It is older, and takes no cluster from the one that is served.
  for (const cluster of [hub.a, hub.b]) {
    expect((await hub.addOn(cluster))?.metadata.annotations?.[keys.owner]).toBe('served/fleet');
  }
  const recorded = await hub.client.list(events, { namespace: hub.ns });
  expect(recorded.filter(({ reason }) => reason === 'RBACReadyFailed')).toHaveLength(1);
  await hub.client.delete(gitOpsClusters, fleet());
  await until('it is gone', async () => (await hub.client.get(gitOpsClusters, fleet())) === undefined);
});

test('a fleet whose namespace is no longer served keeps everything, and goes on when it is served again', async () => {
  await hub.fixture.namespace('served');
  await hub.enroll();
  await hub.idle();
  await hub.stop();
  const state = async () => {
    const { [`gitopsclusters/${hub.ns}/fleet`]: _, ...others } = await hub.versions();
    return others;
  };
  const before = await state();
  const client = confined(hub.client, (namespace) => namespace === 'served');
  hub.start({ client, watchNamespaces: ['served'] });
  await hub.fixture.conditionIs([hub.ns, 'fleet'], 'Ready', 'False', /has no rights in namespace/);
  await hub.idle();
  expect(await state()).toEqual(before);
  const status = (await hub.client.get(gitOpsClusters, fleet()))?.status;
  expect(status).toMatchObject({ clusters: { selected: 2 } });
  await hub.stop();
  hub.start({ watchNamespaces: ['served', hub.ns] });
  await hub.fixture.conditionIs([hub.ns, 'fleet'], 'Ready', 'True');
  await hub.idle();
  expect(await state()).toEqual(before);
});

/** A fleet is enrolled; then its namespace is not served any more. */
async function enrolledThenUnserved(): Promise<void> {
  await hub.fixture.namespace('served');
  await hub.enroll();
  await hub.stop();
  const client = confined(hub.client, (namespace) => namespace === 'served');
  hub.start({ client, watchNamespaces: ['served'] });
  await hub.fixture.conditionIs([hub.ns, 'fleet'], 'Ready', 'False', /has no rights in namespace/);
}

test('a GitOpsCluster that is no longer served can be deleted: its clusters are detached, its Secrets are reported', async () => {
  await enrolledThenUnserved();
  await hub.client.delete(gitOpsClusters, fleet());
  await Promise.all([hub.a, hub.b].map((cluster) => hub.fixture.endCleanUp(cluster)));
  await until('it is gone', async () => (await hub.client.get(gitOpsClusters, fleet())) === undefined);
  for (const namespace of [hub.a, hub.b]) {
    expect(await hub.client.list(manifestWorks, { namespace })).toEqual([]);
    expect(await hub.client.list(managedClusterAddOns, { namespace })).toEqual([]);
  }
  expect((await hub.client.list(secrets, { namespace: hub.ns, ...ours })).length).toBeGreaterThan(0);
  await until('the Event', async () =>
    (await hub.client.list(events, { namespace: hub.ns })).some(({ reason }) => reason === 'SecretsLeft'),
  );
});

test('a GitOpsCluster that is no longer served can be let go: its clusters keep everything', async () => {
  await enrolledThenUnserved();
  await hub.client.mergePatch(gitOpsClusters, fleet(), { metadata: { annotations: { [keys.retain]: 'true' } } });
  const finalizers = async () => [
    ...((await hub.client.get(gitOpsClusters, fleet()))?.metadata.finalizers ?? []),
    ...(await Promise.all(
      [hub.a, hub.b].map(async (cluster) => (await hub.addOn(cluster))?.metadata.finalizers ?? []),
    )),
  ];
  await until('no finalizer', async () => !(await finalizers()).flat().includes(finalizer));
  await hub.client.delete(gitOpsClusters, fleet());
  await until('it is gone', async () => (await hub.client.get(gitOpsClusters, fleet())) === undefined);
  await hub.idle();
  for (const cluster of [hub.a, hub.b]) {
    await hub.enrolled(cluster);
    expect((await hub.addOn(cluster))?.metadata.deletionTimestamp).toBeUndefined();
  }
});

test('a namespace without its Role holds up no other, and is served as soon as it has one', async () => {
  await hub.fixture.namespace('served');
  let hasRole = false;
  const client = confined(hub.client, (namespace) => namespace === 'served' || (hasRole && namespace === hub.ns));
  await hub.fixture.placement('served', 'placement', [hub.a]);
  await hub.fixture.gitOpsCluster('served', 'fleet', 'placement');
  await hub.fixture.placement(hub.ns, 'placement', [hub.b]);
  await hub.fixture.gitOpsCluster(hub.ns, 'fleet', 'placement');
  hub.start({ client, watchNamespaces: ['served', hub.ns] });
  await hub.fixture.conditionIs(['served', 'fleet'], 'Ready', 'True');
  await hub.enrolled(hub.a);
  const refused = await hub.fixture.conditionIs([hub.ns, 'fleet'], 'Ready', 'False', /cannot be read: .* is forbidden/);
  expect(refused.reason).toBe('NamespaceNotReadable');
  expect(hub.controller.missing()).toEqual([]);
  expect((await hub.client.get(gitOpsClusters, fleet()))?.metadata.finalizers ?? []).toEqual([]);
  hasRole = true;
  await hub.enrolled(hub.b);
  await hub.fixture.conditionIs([hub.ns, 'fleet'], 'Ready', 'True');
  const status = (await hub.client.get(gitOpsClusters, fleet()))?.status;
  expect(findCondition(status?.conditions, 'RBACReady')?.status).toBe('True');
});
