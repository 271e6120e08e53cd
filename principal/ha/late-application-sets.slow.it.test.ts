import { afterAll, beforeAll, expect, test } from 'vitest';
import { namespace, pairApplicationSets, startTwoHubs, type TwoHubs } from '../../e2e/pair/index.ts';
import { until } from '../../lib/base/testing.ts';
import { crds } from '../../lib/kube/index.ts';

let hubs: TwoHubs;

beforeAll(async () => {
  hubs = await startTwoHubs();
});
afterAll(() => hubs?.stop());

test.each(['second', 'first'] as const)(
  'ApplicationSets that cannot be listed on the %s hub at first are said to take no part, and do as soon as they can be',
  async (late) => {
    const name = 'applicationsets.argoproj.io';
    const { client } = hubs[late].cluster;
    const found = await client.get(crds, { name });
    if (found === undefined) {
      throw new Error('the testbed has the CRD');
    }
    await client.delete(crds, { name });
    await until('it is gone', async () => (await client.get(crds, { name })) === undefined);
    hubs.first.principal.start();
    await hubs.first.principal.says(/principal serves agents/);
    hubs.second.principal.start();
    await hubs[late].principal.says(/ApplicationSets are not replicated/);
    await until('the standby follows', async () => (await hubs.second.admin.status()).state === 'replicating');
    const problems = async () => (await hubs[late].admin.status()).problems.join();
    expect(await problems()).toContain('ApplicationSets cannot be listed');
    const {
      uid: _u,
      resourceVersion: _v,
      creationTimestamp: _t,
      managedFields: _m,
      generation: _g,
      ...metadata
    } = found.metadata as typeof found.metadata & Record<string, unknown>;
    const { status: _s, ...crd } = found as typeof found & { status?: unknown };
    await client.create(crds, { ...crd, metadata } as typeof found);
    await until('the set can be made', () =>
      hubs.first.cluster.client
        .create(pairApplicationSets, {
          metadata: { namespace, name: late },
          spec: {
            generators: [],
            template: { metadata: { name: 'x' }, spec: { project: 'default', destination: {} } },
          },
        } as never)
        .then(
          () => true,
          () => false,
        ),
    );
    await until(
      async () => {
        const list = await hubs.second.cluster.client.list(pairApplicationSets, { namespace });
        expect(list.map((one) => one.metadata.name)).toContain(late);
      },
      { timeoutMs: 60_000 },
    );
    await until('nothing is said any more', async () => (await problems()) === '');
    await hubs.second.principal.stop();
    await hubs.first.principal.stop();
  },
);
