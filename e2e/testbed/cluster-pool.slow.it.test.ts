import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import {
  ApiError,
  type CustomResourceDefinition,
  clusterRoles,
  configMaps,
  crds,
  isNotFound,
  KubeClient,
  type KubeObject,
  namespaces,
  resourceType,
  serviceAccounts,
} from '../../lib/kube/index.ts';
import { openCluster } from './cluster.ts';
import { ClusterPool, type Loan } from './cluster-pool.ts';

const failures: unknown[] = [];
let pool: ClusterPool;
beforeAll(() => {
  pool = new ClusterPool({
    prepare: async ({ client }) => {
      await client.create(configMaps, { metadata: { namespace: 'default', name: 'prepared' }, data: { a: '1' } });
    },
    idleMs: 60_000,
    failed: (error) => failures.push(error),
  });
});
afterAll(() => pool.stop());

const group = 'pool.example.com';
const boxes = resourceType({ group, version: 'v1', kind: 'Box', plural: 'boxes', namespaced: true });
const boxCrd = {
  metadata: { name: `boxes.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { kind: 'Box', plural: 'boxes' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
} as unknown as CustomResourceDefinition;
const finalizers = ['pool.example.com/never'];

/** Leaves what is hard to remove, and changes what the cluster had. */
async function use({ client }: Loan['cluster']): Promise<void> {
  await client.create(namespaces, { metadata: { name: 'team' } });
  await client.create(configMaps, { metadata: { namespace: 'team', name: 'held', finalizers } });
  await client.create(crds, boxCrd);
  await until('the new kind', () =>
    client.create(boxes, { metadata: { namespace: 'team', name: 'box', finalizers } } as KubeObject).catch((error) => {
      if (!isNotFound(error)) {
        throw error;
      }
    }),
  );
  await client.delete(namespaces, { name: 'team' });
  await client.mergePatch(configMaps, { namespace: 'default', name: 'prepared' }, { data: { a: '2', b: '2' } });
  await client.delete(clusterRoles, { name: 'view' });
  await client.create(serviceAccounts, { metadata: { namespace: 'kube-system', name: 'guest' } });
}

it('lends a cluster as it was when it was new, with everything that works in it', async () => {
  const first = await pool.lend();
  const { client } = first.cluster;
  const view = await client.get(clusterRoles, { name: 'view' });
  await use(first.cluster);
  await first.giveBack();
  expect(failures).toEqual([]);

  const second = await pool.lend();
  expect(second.cluster).toBe(first.cluster);
  expect(await client.get(namespaces, { name: 'team' })).toBeUndefined();
  expect(await client.get(configMaps, { namespace: 'team', name: 'held' })).toBeUndefined();
  expect(await client.get(crds, { name: boxCrd.metadata.name })).toBeUndefined();
  await until('the kind to go', async () => {
    const answer = await client.list(boxes).catch((error: unknown) => error);
    return answer instanceof ApiError && answer.status === 404;
  });
  expect((await client.get(configMaps, { namespace: 'default', name: 'prepared' }))?.data).toEqual({ a: '1' });
  expect((await client.get(clusterRoles, { name: 'view' }))?.metadata.uid).toBe(view?.metadata.uid);
  expect(await client.get(serviceAccounts, { namespace: 'kube-system', name: 'guest' })).toBeUndefined();

  // The same names once more, as the next test file uses them.
  await use(second.cluster);
  await until('controllers to work in a namespace of a former name', async () => {
    await client.create(namespaces, { metadata: { name: 'other' } }).catch(() => undefined);
    return client.get(serviceAccounts, { namespace: 'other', name: 'default' });
  });
  await second.giveBack();
  expect(failures).toEqual([]);
});

it('lends a cluster to another process: kubeconfigs and certificates are made there', async () => {
  const { cluster, giveBack } = await pool.lend();
  const { name, server, kubeconfig, authority } = cluster;
  const opened = await openCluster({ name, server, kubeconfig, authority }, cluster.dir);
  const client = KubeClient.fromKubeconfig(await opened.kubeconfigFor({ user: 'jane', groups: ['system:masters'] }));
  expect(await client.get(configMaps, { namespace: 'default', name: 'prepared' })).toBeDefined();
  await Promise.all([client.close(), opened.client.close()]);
  await giveBack();
  expect(failures).toEqual([]);
});

it('has as many clusters as are used at the same time, and gives one that comes back to whoever waits', async () => {
  const [one, other] = await Promise.all([pool.lend(), pool.lend()]);
  expect(one.cluster).not.toBe(other.cluster);
  const returned = one.giveBack();
  const next = await pool.lend();
  await returned;
  expect(next.cluster).toBe(one.cluster);
  await Promise.all([next.giveBack(), other.giveBack()]);
  expect(failures).toEqual([]);
});

it('ends a cluster that cannot be restored, reports it, and lends a new one', async () => {
  const loan = await pool.lend();
  await loan.cluster.etcd.kill();
  await loan.giveBack();
  expect(failures).toHaveLength(1);
  expect(loan.cluster.apiServer.running).toBe(false);
  const next = await pool.lend();
  expect(next.cluster).not.toBe(loan.cluster);
  await next.giveBack();
  expect(failures).toHaveLength(1);
});
